"""libFuzzer over our parsers: fuzz.py [--seconds S] FUZZER…

Each begins with its seeds and with the corpus of earlier runs. An input that fails is stored, and
its path is printed with the command that repeats it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SEEDS = Path(__file__).with_name("seeds")
DATA = Path(__file__).parents[1] / "data"
# In addition to the seeds: files that were recorded on real machines.
RECORDED = {
    "cgroup": ["cgroups/*/*", "torque/cgroups/*"],
    "mounts": ["trees/*/proc/self/mountinfo", "mounts/*/mountinfo"],
    "totals": ["records/*/*.json"],
    "reader": ["records/*/*.csv"],
}
BETWEEN = b"\n%%\n"
MOST_BYTES = 4096


def name_of(fuzzer: Path) -> str:
    return fuzzer.name.removeprefix("fuzz_")


def seeded(fuzzer: Path) -> Path:
    """Return the folder of a fuzzer's corpus."""
    name = name_of(fuzzer)
    corpus = fuzzer.parent / "corpus" / name
    corpus.mkdir(parents=True, exist_ok=True)
    texts = (SEEDS / f"{name}.txt").read_bytes().removesuffix(b"\n").split(BETWEEN)
    for pattern in RECORDED.get(name, []):
        texts += [
            path.read_bytes()[:MOST_BYTES] for path in sorted(DATA.glob(pattern)) if path.is_file()
        ]
    for number, text in enumerate(texts):
        (corpus / f"seed-{number}").write_bytes(text)
        (corpus / f"seed-{number}-line").write_bytes(text + b"\n")
    return corpus


def command(fuzzer: Path, seconds: float, found: Path) -> list[str]:
    words = SEEDS / f"{name_of(fuzzer)}.dict"
    return [
        str(fuzzer), f"-max_total_time={max(1, round(seconds))}", "-timeout=10", "-rss_limit_mb=2048",
        f"-max_len={MOST_BYTES}", "-print_final_stats=1", f"-artifact_prefix={found}/",
        *([f"-dict={words}"] if words.exists() else []), str(seeded(fuzzer)),
    ]  # fmt: skip


def run(fuzzer: Path, seconds: float) -> str:
    """Run a fuzzer; return a line about it, with its message and how to repeat it if it failed."""
    found = fuzzer.parent / "found" / name_of(fuzzer)
    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="steelyard-fuzz-") as folder:
        done = subprocess.run(
            command(fuzzer, seconds, found), capture_output=True, check=False,
            env=os.environ | {"TMPDIR": folder, "ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1"},
        )  # fmt: skip
    said = done.stderr.decode(errors="replace")
    stats = dict(line.split(": ") for line in said.splitlines() if line.startswith("stat::"))
    runs = int(stats.get("stat::number_of_executed_units", "0"))
    if done.returncode == 0:
        return f"ok {name_of(fuzzer)}: {runs} inputs" if runs else f"not ok {fuzzer}: no input"
    inputs = [line.split(" to ", 1)[1] for line in said.splitlines() if "unit written to" in line]
    again = "\n".join(f"# again: {fuzzer} {path}" for path in inputs)
    return f"not ok {name_of(fuzzer)} after {runs} inputs\n{said[-5000:]}\n{again}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("fuzzers", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=60, help="all of them together")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    each = options.seconds * options.jobs / len(options.fuzzers)
    red = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for said in pool.map(lambda fuzzer: run(fuzzer, each), options.fuzzers):
            print(said, flush=True)
            red += said.startswith("not ok")
    return int(red > 0)


if __name__ == "__main__":
    shutil.which("clang") or sys.exit("fuzz.py: needs clang (Debian: clang, libclang-rt-dev)")
    sys.exit(main(sys.argv[1:]))
