"""What `steelyard report` costs for 10,000 runs in 100 conditions (10 blocks).

The peer, in turn with it, is a script with pandas and matplotlib on the same database
(bench/report_peer.py): means with Student's intervals, overheads, one bar figure. It has no tests
and no findings, draws one figure where the report draws all, and lists no runs, so that a ratio
above 1 is the cost of these. `--json`, and `compare` of two conditions, are measured, too. Budget
(DESIGN): 5 s, 3 MB. The report draws in two processes, so that with two free cores it takes fewer
seconds than CPU seconds; on a busy machine only CPU seconds are comparable.

Last line: JSON with runs, conditions, seconds, cpu_s, mb (of the page), rss_mb, ratio_pandas (our
CPU seconds / the peer's, medians), json_cpu_s, compare_cpu_s, load.

The study: 10,000 runs in 100 conditions, 10 blocks. It is written by the writers of collect. Every
run has its own value of every metric, so that nothing is skipped for a missing spread, a complete
record (tests/data) and a sample per second.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collect import Cost, measured

from steelyard.analysis.sources.records import COLUMNS, Record
from steelyard.analysis.store import sample_store
from steelyard.analysis.store.database import (
    SCHEMA_VERSION,
    check_keys,
    open_for_writing,
    read_table_columns,
    replace_rows,
)
from steelyard.analysis.store.row_files import Spool
from steelyard.wrappers.base.signals import ending_on_sigterm

RECORD = Path(__file__).parents[1] / "tests/data/records/complete/n1.1795251583.json"
FACTORS: dict[str, list[Any]] = {
    "network": ["none", *(f"delay={delay}ms" for delay in range(5, 50, 5))],
    "node_type": ["physical", "virtual"],
    "clients": [1, 2, 4, 8, 16],
}
BASELINE = {"network": "none", "node_type": "physical"}
BLOCKS, BEGIN, SECONDS = 10, 1_795_250_000.0, 20

Row = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """One execution of one run."""

    place: int  # the position in the order of execution
    block: int
    repeat: int
    condition: Mapping[str, Any]
    number: int  # of the condition
    seconds: float
    chance: random.Random

    @property
    def key(self) -> Row:
        run_id = f"xrootd-{self.number:08x}-{self.repeat:03d}"
        return {"run_id": run_id, "attempt": f"{1000 + self.place}.0"}

    @property
    def start_unix_s(self) -> float:
        return BEGIN + 30 * self.place


def make(folder: Path, runs: int) -> Path:
    """Make NAME.study in `folder` with `runs` runs (a multiple of 100)."""
    study_dir = folder / "bench.study"
    study_dir.mkdir()
    (study_dir / "plan.json").write_text("{}", encoding="utf-8")
    planned = list(executed(runs))
    document = json.loads(RECORD.read_bytes())
    rows: dict[str, Iterator[Row]] = {
        "meta": iter([meta_row()]),
        "runs": (run_row(run) for run in planned),
        "attempts": (attempt_row(run) for run in planned),
        "results": (result_row(run) for run in planned),
        "records": (record_row(run, document) for run in planned),
    }
    with open_for_writing(study_dir) as connection:
        for table, found in rows.items():
            columns = read_table_columns(connection, table)
            with Spool(folder / f"{table}.jsonl", columns) as spool:
                for row in found:
                    spool.write([row.get(name) for name in columns])
            replace_rows(connection, table, spool)
            spool.path.unlink()
        sample_store.store_samples(connection, study_dir, SAMPLES)
        check_keys(connection)
    return study_dir


MADE = {
    "run_id": "run_id", "attempt": "attempt", "node": "node", "unix_s": "start_unix_s + s",
    "elapsed_s": "s", "cpu_s": "0.9 * s", "memory_bytes": "100000000 + 1000000 * s",
    "processes": "3", "energy_j": "95.0 * s", "rx_bytes": "40000000 * least(s, 7)",
    "tx_bytes": "900000 * s",
}  # fmt: skip
# A job that first reads and then computes.
SAMPLES = f"""
SELECT {", ".join(f"{MADE.get(name, 'NULL')}::{kind} AS {name}" for name, kind in sample_store.ALL_COLUMNS.items())}
FROM records CROSS JOIN generate_series(0, {SECONDS}) AS t (s)
"""


def executed(runs: int) -> Iterator[Run]:
    """Yield the runs of successive blocks, each with all conditions equally often, shuffled."""
    chance = random.Random(1)
    conditions = [dict(zip(FACTORS, c, strict=True)) for c in itertools.product(*FACTORS.values())]
    each = runs // (BLOCKS * len(conditions))
    places = itertools.count()
    for block in range(BLOCKS):
        order = [(number, again) for number in range(len(conditions)) for again in range(each)]
        for number, again in chance.sample(order, len(order)):
            condition = conditions[number]
            seconds = mean_seconds(condition) * chance.gauss(1, 0.03)
            repeat = block * each + again + 1
            yield Run(next(places), block, repeat, condition, number, seconds, chance)


def mean_seconds(condition: Mapping[str, Any]) -> float:
    """Return a mean that grows with delay, virtual nodes and the number of clients."""
    delay = FACTORS["network"].index(condition["network"])
    virtual = 1.12 if condition["node_type"] == "virtual" else 1.0
    return (10 + 0.4 * delay) * virtual * (1 + 0.02 * int(condition["clients"]))


def meta_row() -> Row:
    return {
        "schema_version": SCHEMA_VERSION, "study": "bench", "seed": 1, "steelyard": "bench",
        "collected_unix_s": BEGIN + 1e6, "baseline": BASELINE, "factors": FACTORS,
    }  # fmt: skip


def run_row(run: Run) -> Row:
    return run.key | {
        "block": run.block, "position": run.place, "benchmark": "xrootd", "variant": "xrootd",
        "parameters": {}, "condition": run.condition,
        "condition_label": ", ".join(f"{name}={level}" for name, level in run.condition.items()),
        "is_baseline": all(run.condition[name] == level for name, level in BASELINE.items()),
        "repeat": run.repeat, "attempts": 1, "state": "completed", "valid": True,
    }  # fmt: skip


def attempt_row(run: Run) -> Row:
    return run.key | {
        "scheduler": "slurm", "cluster": "bench", "job_id": str(1000 + run.place),
        "restart_count": 0, "state": "completed", "start_unix_s": run.start_unix_s,
        "end_unix_s": run.start_unix_s + run.seconds, "elapsed_s": run.seconds, "wait_s": 1.5,
        "exit_code": 0, "clients": run.condition["clients"], "tries": 1, "nodes": [node_of(run)],
    }  # fmt: skip


def node_of(run: Run) -> str:
    """Return one of forty nodes, half of which are virtual."""
    return f"{run.condition['node_type'][0]}{run.place % 20:02d}"


def result_row(run: Run) -> Row:
    return run.key | {
        "client": 0, "iteration": 1, "metric": "seconds", "value": 0.9 * run.seconds, "unit": "s",
        "better": "lower", "is_primary": True,
    }  # fmt: skip


def record_row(run: Run, document: Row) -> Row:
    """Return the recorded record with the totals of this run."""
    found = Record(RECORD, document).columns()
    chance, seconds = run.chance, run.seconds
    virtual = run.condition["node_type"] == "virtual"
    totals = {name: int(1e8 * chance.gauss(1, 0.05)) for name in COLUMNS if name.endswith("_bytes")}
    return run.key | found | totals | {
        "node": node_of(run), "complete": True, "incomplete_reason": None, "elapsed_s": seconds,
        "node_type": run.condition["node_type"], "vm": "kvm" if virtual else "none",
        "start_unix_s": run.start_unix_s, "end_unix_s": run.start_unix_s + seconds,
        "energy_j": 95 * seconds * chance.gauss(1, 0.02), "cpu_s": seconds * chance.gauss(0.9, 0.01),
        "samples": SECONDS + 1, "samples_lost": 0, "missed_deadlines": 0, "record": document,
    }  # fmt: skip


BUDGET_S, BUDGET_MB = 5.0, 3.0
STEELYARD = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli"]


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    seconds, cpu, memory = (statistics.median(column) for column in zip(*costs, strict=True))
    return seconds, cpu, memory


def run(study_dir: Path, folder: Path, repeat: int) -> dict[str, Cost]:
    """Run all programs in turn, so that other load of the machine affects them equally."""
    peer = str(Path(__file__).with_name("report_peer.py"))
    delay = "network=delay=45ms, node_type=virtual, clients=16"
    programs = {
        "steelyard report": [*STEELYARD, "report", str(study_dir), "-o", str(folder / "r.html")],
        "  --json": [*STEELYARD, "report", str(study_dir), "--json"],
        "steelyard compare": [
            *STEELYARD, "compare", str(study_dir),
            "network=none, node_type=physical, clients=16", delay,
        ],
        "pandas + matplotlib": [
            sys.executable, "-P", peer, str(study_dir / "study.duckdb"), str(folder / "p.html")
        ],
    }  # fmt: skip
    costs: dict[str, list[Cost]] = {name: [] for name in programs}
    for _ in range(repeat):
        for name, arguments in programs.items():
            costs[name].append(measured(arguments))
    return {name: median(found) for name, found in costs.items()}


def main() -> int:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="a multiple of 1,000")
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sy-report-") as name:
        folder = Path(name)
        costs = run(make(folder, asked.runs), folder, asked.repeat)
        mb = (folder / "r.html").stat().st_size / 1e6
    print(
        f"{asked.runs} runs, load of the machine {os.getloadavg()[0]:.1f}; medians of {asked.repeat}"
    )
    print(f"{'':<22} {'s':>8} {'CPU s':>8} {'MB':>8}")
    for words, figures in costs.items():
        print(f"{words:<22} {figures[0]:>8.2f} {figures[1]:>8.2f} {figures[2]:>8.0f}")
    print(f"the page has {mb:.2f} MB; budget {BUDGET_S:g} s, {BUDGET_MB:g} MB")
    ours, peer = costs["steelyard report"], costs["pandas + matplotlib"]
    figures = {
        "runs": asked.runs, "conditions": 100, "seconds": round(ours[0], 2),
        "cpu_s": round(ours[1], 2), "mb": round(mb, 2), "rss_mb": round(ours[2], 1),
        "ratio_pandas": round(ours[1] / peer[1], 2),
        "json_cpu_s": round(costs["  --json"][1], 2),
        "compare_cpu_s": round(costs["steelyard compare"][1], 2),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
