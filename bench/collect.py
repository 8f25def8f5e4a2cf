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

The study has 10,000 runs on two nodes each. At scale 1 it has 1 million rows of sacct, 20,000
records and 100 million samples. It is made from the recorded record, output and accounting of
tests/data, so that every reader gets realistic input.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.base import file_changes
from steelyard.analysis.sources.sacct import DELIMITER, FIELDS
from steelyard.facts import quantities
from steelyard.wrappers.base.signals import ending_on_sigterm

DATA = Path(__file__).parents[1] / "tests" / "data"
RUNS, STEPS, SAMPLES = 10_000, 99, 5_000  # at scale 1; rows per run without the job's own; per node
CONDITIONS, BLOCKS = 100, 10
NODES = ("n1", "n2")
# Long ago: the accounting of recent jobs may change and is requested again.
BEGIN, RUN_S, RATE_HZ = 1_790_000_000, 600, 10.0
BODIES = 16  # different bodies of samples, assigned in turn

COLUMNS = (
    *(column.name for column in quantities.COLUMNS),
    *("energy_j:package-0", "rx_bytes:eth0", "tx_bytes:eth0"),
)
# The `sacct` of the benchmark prints the recorded answer for each array's id from a file.
SACCT = """#!/bin/sh
for last; do :; done
if [ "$last" = --helpformat ]; then cat "{folder}/helpformat.txt"; exit; fi
IFS=,
for id in $last; do cat "{folder}/$id.txt"; done
"""


@dataclass(frozen=True)
class Made:
    """The study on disk and its size."""

    study_dir: Path
    record_dir: Path
    bin_dir: Path  # contains `sacct`
    accounting_dir: Path
    runs: int
    rows: int
    samples: int
    sample_bytes: int


def make(folder: Path, scale: float, samples_per_node: int = SAMPLES) -> Made:
    """Make a study of scale x 10,000 runs below `folder`."""
    runs = max(round(RUNS * scale), BLOCKS)
    study_dir, record_dir = folder / "bench.study", folder / "records"
    accounting_dir, bin_dir = folder / "accounting", folder / "bin"
    for path in (study_dir, record_dir, accounting_dir, bin_dir):
        path.mkdir(parents=True)
    blocks = [list(range(runs))[n::BLOCKS] for n in range(BLOCKS)]
    jobs = {run: JobId(str(100 + n * runs), place) for n, b in enumerate(blocks)
            for place, run in enumerate(b)}  # fmt: skip
    write_plan(study_dir, runs, blocks)
    bodies = [body(n, samples_per_node) for n in range(BODIES)]
    template = (DATA / "records" / "complete" / "n1.1795251583.json").read_text(encoding="utf-8")
    for run in range(runs):
        write_run(study_dir, run, jobs[run])
        write_records(record_dir, run, jobs[run], json.loads(template), bodies)
    write_accounting(accounting_dir, blocks, jobs)
    program = bin_dir / "sacct"
    program.write_text(SACCT.format(folder=accounting_dir), encoding="utf-8")
    program.chmod(0o755)
    size = sum(len(bodies[run % BODIES]) for run in range(runs)) * len(NODES)
    samples = runs * len(NODES) * samples_per_node
    return Made(
        study_dir, record_dir, bin_dir, accounting_dir, runs, runs * (STEPS + 1), samples, size
    )


@dataclass(frozen=True)
class JobId:
    """The id of a task in a block's array."""

    array: str
    task: int

    @property
    def raw(self) -> str:
        """Return the raw id: the array itself has the last one; here the first task has it."""
        return str(int(self.array) + self.task)


def run_id(run: int) -> str:
    return f"filesystem-{run % CONDITIONS:08x}-{run // CONDITIONS + 1:03d}"


def start_of(run: int) -> int:
    return BEGIN + run * 60


def write_plan(study_dir: Path, runs: int, blocks: list[list[int]]) -> None:
    """Write plan.json, submissions.jsonl and study.toml."""
    planned = [planned_run(run, position) for position, run in enumerate(range(runs), 1)]
    study = {"name": "bench", "seed": 1, "baseline": {"level": 0},
             "factors": {"level": list(range(CONDITIONS))}}  # fmt: skip
    plan = {"format": "steelyard-plan", "version": 1, "study": study, "runs": planned}
    (study_dir / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    (study_dir / "study.toml").write_text('[study]\nname = "bench"\n', encoding="utf-8")
    with (study_dir / "submissions.jsonl").open("w", encoding="utf-8") as file:
        for number, block in enumerate(blocks):
            line = {
                "submission_id": f"b{number:03}", "scheduler": "slurm", "cluster": "steelyard",
                "job_id": str(100 + number * runs), "submitted_unix_s": BEGIN - 10,
                "block": number, "options": [], "run_ids": [run_id(run) for run in block],
            }  # fmt: skip
            file.write(json.dumps(line) + "\n")


def planned_run(run: int, position: int) -> dict[str, object]:
    """Return a run of plan.json."""
    level = run % CONDITIONS
    return {
        "run_id": run_id(run), "block": run % BLOCKS, "position": position,
        "benchmark": "filesystem", "variant": "filesystem test=large_file_copy",
        "parameters": {"test": "large_file_copy", "size": 1048576, "iterations": 3},
        "condition": {"level": level}, "condition_label": f"level={level}",
        "is_baseline": level == 0, "repeat": run // CONDITIONS + 1,
    }  # fmt: skip


def write_run(study_dir: Path, run: int, job: JobId) -> None:
    """Write the attempt's folder."""
    folder = study_dir / "runs" / run_id(run) / f"{job.raw}.0"
    folder.mkdir(parents=True)
    start = start_of(run) + 0.25
    result = {
        "format": "steelyard-run", "version": 1, "run_id": run_id(run), "attempt": folder.name,
        "scheduler": "slurm", "job_id": job.raw, "start_unix_s": start,
        "end_unix_s": start + RUN_S, "elapsed_s": RUN_S + run % 7, "clients": 1,
        "exit_codes": [0], "state": "completed", "reason": None, "nodes": list(NODES),
        "tries": [], "missing": {},
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    out = (DATA / "filesystem" / "large_file_copy.out").read_bytes()
    (folder / "out.0").write_bytes(out)


def write_records(
    record_dir: Path, run: int, job: JobId, record: dict[str, object], bodies: list[bytes]
) -> None:
    """Write the records of both nodes with their samples."""
    folder = record_dir / job.raw
    folder.mkdir()
    start = start_of(run)
    for node in NODES:
        stem = f"{node}.{start}"
        mine = record | {
            "node": node, "start_unix_s": start + 0.5, "end_unix_s": start + RUN_S,
            "complete": True, "incomplete_reason": None, "samples_file": f"{stem}.csv",
        }  # fmt: skip
        (folder / f"{stem}.json").write_text(json.dumps(mine), encoding="utf-8")
        (folder / f"{stem}.csv").write_bytes(
            ",".join(COLUMNS).encode() + b"\n" + bodies[run % BODIES]
        )
        for suffix in ("json", "csv"):
            (folder / f"{stem}.{suffix}").chmod(0o440)  # as by the node program


def body(number: int, samples: int) -> bytes:
    """Return the lines of samples of one job; its day depends on `number`."""
    begin = BEGIN + number * 6 * 3600
    return "".join(body_lines(begin, samples, random.Random(number))).encode()


def body_lines(begin: float, samples: int, noise: random.Random) -> Iterator[str]:
    """Yield one line per period.

    All counters grow, by different amounts: the lines are as hard to compress as those of a real
    job.
    """
    cpu_s = energy_j = pressure_s = 0.0
    rchar, wchar, read, write, rx, tx, segments = [0] * 7
    for n in range(samples):
        at = n / RATE_HZ + noise.uniform(0, 2e-4) * (n > 0)
        if n:
            cpu_s += noise.uniform(0.05, 0.2)
            energy_j += noise.gauss(9.5, 0.8)
            pressure_s += noise.uniform(0, 1e-3)
            rchar += noise.randrange(131072)
            wchar += noise.randrange(65536)
            read += 4096 * noise.randrange(8)
            write += 4096 * noise.randrange(4)
            rx += noise.randrange(30000)
            tx += noise.randrange(9000)
            segments += noise.randrange(7)
        rtt = f"{noise.gauss(0.025, 1e-4):.6f}" if n % 10 == 9 else ""  # at most once per second
        cells = {
            "unix_s": begin + at, "elapsed_s": at, "cpu_s": cpu_s,
            "memory_bytes": 104857600 + 4096 * noise.randrange(2000), "processes": 2 + n % 3,
            "rchar_bytes": rchar, "wchar_bytes": wchar, "read_bytes": read, "write_bytes": write,
            "rx_bytes": rx, "tx_bytes": tx, "sent_segments": segments,
            "retransmitted_segments": n // 400, "pressure_cpu_s": pressure_s,
            "pressure_io_s": 0.2 * pressure_s, "pressure_memory_s": 0.0, "energy_j": energy_j,
            "energy_j:package-0": energy_j, "rtt_s": rtt, "rx_bytes:eth0": rx, "tx_bytes:eth0": tx,
        }  # fmt: skip
        yield ",".join(cell_text(cells.get(name, "")) for name in COLUMNS) + "\n"


def cell_text(value: float | str) -> str:
    """Format a value as the sampler does."""
    return f"{value:.6f}" if isinstance(value, float) else str(value)


def write_accounting(folder: Path, blocks: list[list[int]], jobs: dict[int, JobId]) -> None:
    """Write sacct's answer for each array, in the recorded form of 24.11 with field Restarts."""
    (folder / "helpformat.txt").write_text(" ".join(FIELDS), encoding="utf-8")
    for block in blocks:
        array = jobs[block[0]].array
        with (folder / f"{array}.txt").open("w", encoding="utf-8") as file:
            for run in block:
                file.writelines(accounting_lines(run, jobs[run]))


def accounting_lines(run: int, job: JobId) -> Iterator[str]:
    """Yield the job's row and those of its steps."""
    start = start_of(run)
    shared = {
        "Cluster": "steelyard", "Account": "root", "State": "COMPLETED", "ExitCode": "0:0",
        "Submit": str(BEGIN), "Eligible": str(BEGIN), "Start": str(start), "End": str(start + RUN_S),
        "ElapsedRaw": str(RUN_S), "CPUTimeRAW": str(2 * RUN_S), "TotalCPU": "09:18.123",
        "UserCPU": "09:00.000", "SystemCPU": "00:18.123", "ConsumedEnergyRaw": "0", "NNodes": "2",
        "NCPUS": "2", "NodeList": "n[1-2]", "AllocTRES": "billing=2,cpu=2,node=2", "Restarts": "0",
    }  # fmt: skip
    own = {"User": "root", "Partition": "main", "JobName": "bench", "TimelimitRaw": "20"}
    yield accounting_line(job, "", shared | own)
    for step in ("batch", "extern", *map(str, range(STEPS - 2))):
        numbers = {"JobName": step, "NTasks": "2", "MaxRSS": "1609728", "MaxDiskRead": "0.01M"}
        yield accounting_line(job, f".{step}", shared | numbers)


def accounting_line(job: JobId, step: str, values: dict[str, str]) -> str:
    """Return a line of `sacct -P`."""
    ids = {"JobID": f"{job.array}_{job.task}{step}", "JobIDRaw": f"{job.raw}{step}"}
    return DELIMITER.join((values | ids).get(name, "") for name in FIELDS) + "\n"


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


def collect(made: Made) -> Cost:
    """Return the cost of `steelyard collect` as a user calls it."""
    program = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "collect"]
    where = [str(made.study_dir), "--record-dir", str(made.record_dir)]
    path = f"{made.bin_dir}:{os.environ['PATH']}"
    return measured([*program, *where], os.environ | {"PATH": path})


def pandas(made: Made, out: Path) -> Cost:
    """Return the cost of the peer with pandas."""
    peer = str(Path(__file__).with_name("collect_peer_pandas.py"))
    where = (made.study_dir, made.record_dir, made.accounting_dir, out)
    return measured([sys.executable, "-P", peer, *map(str, where)])


def read_csv(made: Made) -> Cost:
    """Return the cost of reading only the samples."""
    program = str(Path(__file__).with_name("collect_peer_read_csv.py"))
    return measured([sys.executable, "-P", program, str(made.record_dir)])


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.05, help="1 is the whole study")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="per node")
    parser.add_argument("--no-peer", action="store_true", help="without pandas")
    parser.add_argument("--dir", help="work in a folder of this one: 45 GB at scale 1")
    return parser.parse_args()


def main() -> int:
    """Make the study, measure, print."""
    asked = arguments()
    with tempfile.TemporaryDirectory(prefix="sy-collect-", dir=asked.dir) as name:
        folder = Path(name)
        made = make(folder, asked.scale, asked.samples)
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
