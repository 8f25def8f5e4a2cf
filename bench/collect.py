"""What merging a study costs: `steelyard collect` of 1 million accounting rows, 100 million
samples.

The peers are pandas on the same files, 200 at a time, and DuckDB's read_csv, which only reads the
samples and stores nothing. --scale selects a part of that study (0.05: 500 runs, 50,000 rows, 5
million samples; that takes two or three minutes, including its preparation). --samples gives every
node fewer samples, so that the number of small files dominates: --scale 1 --samples 30 --no-peer
measures the accounting, and a collect with nothing new, whose budget is 5 s. Budget (DESIGN), at
scale 1: 120 s, 2 GB.

Last line: JSON with rows, samples, seconds, rss_mb (largest resident set), ratio_pandas (our
seconds / pandas' seconds; null without the peer), ratio_pandas_cpu (of CPU seconds), cpu_s,
again_seconds and again_cpu_s (a second collect with nothing new), read_csv_seconds, read_csv_cpu_s,
ratio_read_csv (of CPU seconds), load (one minute's mean before and after), runs, scale. On a busy
machine CPU seconds are more reliable than seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import collect_study

from steelyard.analysis.base import file_changes
from steelyard.wrappers.base.signals import ending_on_sigterm

BUDGET_S, BUDGET_MB = 120.0, 2000.0


Cost = tuple[float, float, float]  # seconds, CPU seconds, MB (largest resident set)


def measured(arguments: list[str], environment: dict[str, str] | None = None) -> Cost:
    """Return what a program costs; raise RuntimeError if it fails.

    Python's compiled files are stored, as after an installation by pip: to compile Steelyard takes
    0.2 s.
    """
    around = dict(environment or os.environ)
    around.pop("PYTHONDONTWRITEBYTECODE", None)
    begin = time.monotonic()
    null = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawn(
        arguments[0],
        arguments,
        around,
        file_actions=[(os.POSIX_SPAWN_DUP2, null, 1)],
    )
    os.close(null)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(
            f"{' '.join(arguments[:4])} … ended with {os.waitstatus_to_exitcode(status)}"
        )
    elapsed = time.monotonic() - begin
    return elapsed, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def collect(made: collect_study.Made) -> Cost:
    """Return the cost of `steelyard collect` as a user calls it."""
    program = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "collect"]
    where = [str(made.study_dir), "--record-dir", str(made.record_dir)]
    path = f"{made.bin_dir}:{os.environ['PATH']}"
    return measured([*program, *where], os.environ | {"PATH": path})


def pandas(made: collect_study.Made, out: Path) -> Cost:
    """Return the cost of the peer with pandas."""
    peer = str(Path(__file__).with_name("collect_peer_pandas.py"))
    where = (made.study_dir, made.record_dir, made.accounting_dir, out)
    return measured([sys.executable, "-P", peer, *map(str, where)])


def read_csv(made: collect_study.Made) -> Cost:
    """Return the cost of reading only the samples."""
    program = str(Path(__file__).with_name("collect_peer_read_csv.py"))
    return measured([sys.executable, "-P", program, str(made.record_dir)])


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.05, help="1 is the whole study")
    parser.add_argument("--samples", type=int, default=collect_study.SAMPLES, help="per node")
    parser.add_argument("--no-peer", action="store_true", help="without pandas")
    parser.add_argument("--dir", help="work in a folder of this one: 45 GB at scale 1")
    return parser.parse_args()


def main() -> int:
    """Make the study, measure, print."""
    asked = arguments()
    with tempfile.TemporaryDirectory(prefix="sy-collect-", dir=asked.dir) as name:
        folder = Path(name)
        made = collect_study.make(folder, asked.scale, asked.samples)
        measured([sys.executable, "-P", "-c", "import steelyard.analysis.collect.collect"])
        time.sleep(file_changes.RACE_NS / 1e9)  # as in a study whose runs ended earlier
        load = [os.getloadavg()[0]]
        ours = collect(made)
        load.append(os.getloadavg()[0])
        again = collect(made)
        bare = read_csv(made)
        peer = None if asked.no_peer else pandas(made, folder / "pandas")
    print(
        f"{made.runs} runs, {made.rows} rows of sacct, {made.samples} samples "
        f"({made.sample_bytes / 1e9:.1f} GB of CSV)"
    )
    print(f"{'':<22} {'s':>8} {'CPU s':>8} {'MB':>8}")
    rows = (
        ("steelyard collect", ours),
        ("  again, nothing new", again),
        ("DuckDB's read_csv", bare),
        ("pandas", peer),
    )
    for words, figures in rows:
        if figures is not None:
            print(f"{words:<22} {figures[0]:>8.1f} {figures[1]:>8.1f} {figures[2]:>8.0f}")
    print(
        f"budget at scale 1: {BUDGET_S:g} s, {BUDGET_MB:g} MB; load {load[0]:.1f} … {load[1]:.1f}"
    )
    figures = {
        "cpu_s": round(ours[1], 2),
        "rows": made.rows, "samples": made.samples, "seconds": round(ours[0], 2),
        "rss_mb": round(ours[2], 1), "ratio_pandas": round(ours[0] / peer[0], 3) if peer else None,
        "again_seconds": round(again[0], 2), "again_cpu_s": round(again[1], 2),
        "ratio_pandas_cpu": round(ours[1] / peer[1], 3) if peer else None, "read_csv_seconds": round(bare[0], 2),
        "read_csv_cpu_s": round(bare[1], 2), "ratio_read_csv": round(ours[1] / bare[1], 3),
        "load": [round(one, 1) for one in load], "runs": made.runs, "scale": asked.scale,
    }  # fmt: skip
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
