"""A small study whose jobs are those of the recorded Slurm (tests/data/sacct).

Its folder contains the files of submit, the jobs and the nodes: plan, submissions, attempts with
the recorded output of steelyard-fstest, and records with samples in a record folder.
"""

from __future__ import annotations

import contextlib
import functools
import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import duckdb

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.collect import collect as study_collect
from steelyard.analysis.collect.record_import import Gap
from steelyard.analysis.sources import sacct
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.store import sample_store
from steelyard.analysis.store.row_files import quote_text

DATA = Path(__file__).parents[2] / "data"
RELEASE = "22.05"

# By submission: job id, and its number of runs (array tasks).
SUBMITTED = {
    "array": ("2", 4),
    "timeout": ("4", 1),
    "requeue": ("5", 1),
    "cancelled": ("6", 1),
    "held": ("7", 1),
    "heldarray": ("8", 5),
    "twonodes": ("11", 1),
    "twice": ("16", 1),
    "running": ("21", 1),
    "waiting": ("22", 4),
    "unknown": ("4000", 1),
}
PARAMETERS = {"test": "large_file_copy", "size": 1048576, "iterations": 3}
HEADER = (
    "unix_s,elapsed_s,cpu_s,memory_bytes,processes,rchar_bytes,wchar_bytes,read_bytes,"
    "write_bytes,rx_bytes,tx_bytes,sent_segments,retransmitted_segments,pressure_cpu_s,"
    "pressure_io_s,pressure_memory_s,energy_j,energy_j:package-0,rx_bytes:eth0,tx_bytes:eth0"
)


class RecordedSacct(sacct.Sacct):
    """Slurm's recorded accounting; it counts its queries, and can be unavailable."""

    def __init__(self, release: str = RELEASE) -> None:
        super().__init__()
        self.release = release
        self.asked: list[tuple[str, ...]] = []
        self.is_away = False

    def rows(self, job_ids: Sequence[str], since_unix_s: float = 0.0) -> Iterator[AccountingRow]:
        if self.is_away:
            raise MissingError("sacct does not answer: Connection refused")
        self.asked.append(tuple(job_ids))
        for row in recorded_rows(self.release):
            task = f"{row.array_job_id}_{row.array_task_id}"
            if {row.array_job_id, row.job_id, task} & set(job_ids):
                yield row


def recorded_rows(release: str) -> list[AccountingRow]:
    """Return all rows, including steps."""
    folder = DATA / "sacct" / release
    known = set((folder / "helpformat.txt").read_text(encoding="utf-8").split())
    later = {"SLUID", "OriginalSLUID"}  # requested only since a later version
    asked = [name for name in sacct.FIELDS if name in known and name not in later]
    with (folder / "jobs.txt").open(encoding="utf-8", newline="\n") as file:
        return list(sacct.parse_lines(file, asked))


def run_id(name: str, task: int = 0) -> str:
    """Return the run of a submission's task."""
    number = list(SUBMITTED).index(name)
    return f"filesystem-{number:08x}-{task + 1:03d}"


class Study:
    """The study's folder and record folder, and changes to them."""

    def __init__(self, base: Path, release: str = RELEASE) -> None:
        self.dir = base / "x.study"
        self.record_dir = base / "records"
        self.record_dir.mkdir(parents=True)
        self.dir.mkdir()
        self.accounting = RecordedSacct(release)
        self.rows = [row for row in recorded_rows(release) if row.step is None]
        self.submitted_unix_s = min(r.submit_unix_s or 0.0 for r in self.rows) - 1
        # Two minutes after the last recorded time, when the accounting is complete.
        self.now_unix_s = max(r.start_unix_s or 0.0 for r in self.rows) + 125
        self.write_plan()

    def write_plan(self, names: Sequence[str] = tuple(SUBMITTED), planned: int = 1) -> None:
        """Write plan.json and submissions.jsonl of these submissions, and runs never submitted."""
        runs = [
            self.planned(run_id(name, task), place, f"clients={len(name)}")
            for place, name in enumerate(names)
            for task in range(SUBMITTED[name][1])
        ]
        runs += [
            self.planned(f"filesystem-ffffffff-{n + 1:03d}", 99, "clients=9")
            for n in range(planned)
        ]
        study = {"name": "x", "seed": 1, "baseline": {"clients": 1}, "factors": {"clients": [1, 2]}}
        plan = {"format": "steelyard-plan", "version": 1, "study": study, "runs": runs}
        (self.dir / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
        (self.dir / "study.toml").write_text('[study]\nname = "x"\n', encoding="utf-8")
        lines = [
            {
                "submission_id": name,
                "scheduler": "slurm",
                "cluster": "steelyard",
                "job_id": SUBMITTED[name][0],
                "submitted_unix_s": self.submitted_unix_s,
                "block": 0,
                "options": [],
                "run_ids": [run_id(name, task) for task in range(SUBMITTED[name][1])],
            }
            for name in names
        ]
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (self.dir / "submissions.jsonl").write_text(text, encoding="utf-8")

    @staticmethod
    def planned(name: str, position: int, label: str) -> dict[str, Any]:
        return {
            "run_id": name,
            "block": 0,
            "position": position,
            "benchmark": "filesystem",
            "parameters": PARAMETERS,
            "variant": "filesystem test=large_file_copy",
            "condition": {"clients": 1},
            "condition_label": label,
            "is_baseline": label == "clients=1",
            "repeat": 1,
        }

    def row(self, job_id: str, restart: int = 0) -> AccountingRow:
        """Return the recorded row of a start of a job, by raw id."""
        return [r for r in self.rows if r.job_id == job_id and not r.waits_in_array][restart]

    def task_row(self, array: str, task: int) -> AccountingRow:
        """Return the recorded row of an array task."""
        return next(
            r for r in self.rows if r.array_job_id == array and r.array_task_id == str(task)
        )

    def attempt(self, run: str, row: AccountingRow, restart: int = 0, **result: object) -> Path:
        """Write the folder of an attempt, with result.json and the recorded output."""
        folder = self.dir / "runs" / run / f"{row.job_id}.{restart}"
        folder.mkdir(parents=True)
        assert row.start_unix_s is not None
        document = {
            "format": "steelyard-run",
            "version": 1,
            "run_id": run,
            "attempt": folder.name,
            "scheduler": "slurm",
            "job_id": row.job_id,
            "start_unix_s": row.start_unix_s + 0.25,
            "end_unix_s": row.start_unix_s + 0.75,
            "elapsed_s": 0.5,
            "clients": 1,
            "exit_codes": [0],
            "state": "completed",
            "reason": None,
            "nodes": list(row.nodes),
            "missing": {},
        } | result
        (folder / "result.json").write_text(json.dumps(document), encoding="utf-8")
        shutil.copy(DATA / "filesystem" / "large_file_copy.out", folder / "out.0")
        return folder

    def record(
        self, row: AccountingRow, node: str, base: Path | None = None, **fields: object
    ) -> Path:
        """Write the record of a node, with three samples."""
        assert row.start_unix_s is not None
        return write_record(
            (base or self.record_dir) / row.job_id, node, row.start_unix_s, row.job_id, **fields
        )

    def everything(self) -> None:
        """Write the files of all jobs on a day without failures."""
        for task in (0, 3):
            row = self.task_row("2", task)
            self.attempt(run_id("array", task), row)
            self.record(row, row.nodes[0])
        both = self.row("11")
        self.attempt(run_id("twonodes"), both)
        for node in both.nodes:
            self.record(both, node)
        for restart in range(3):
            row = self.row("16", restart)
            state = "completed" if restart == 2 else "started"
            self.attempt(run_id("twice"), row, restart, state=state)
            self.record(row, row.nodes[0], tags={"restart": str(restart)})

    def collect(self, **options: Any) -> study_collect.Collected:
        """Collect at the study's own time."""
        return study_collect.collect(
            self.dir,
            **{
                "record_dirs": [self.record_dir],
                "accounting": {"slurm": self.accounting},
                "now": lambda: self.now_unix_s,
            }
            | options,
        )


def write_record(
    folder: Path, node: str, start_unix_s: float, job_id: str, **fields: object
) -> Path:
    """Write a record of 20 s and its samples at intervals of 10 s."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{node}.{int(start_unix_s)}"
    document = {
        "format": "steelyard-record",
        "version": 1,
        "steelyard": "0.1.0",
        "complete": True,
        "incomplete_reason": None,
        "node": node,
        "job": {"scheduler": "slurm", "job_id": job_id, "exclusive": False},
        "tags": {},
        "start_unix_s": start_unix_s + 0.125,
        "end_unix_s": start_unix_s + 20.125,
        "elapsed_s": 20.0,
        "cpu": {"cpu_s": 5.0},
        "memory": {"max_memory_bytes": 3000},
        "io": {"rchar_bytes": 100, "wchar_bytes": 200, "read_bytes": 300, "write_bytes": 400},
        "network": {
            "rx_bytes": 500,
            "tx_bytes": 600,
            "devices": [{"name": "eth0", "kind": "virtio", "counted": True}],
        },
        "tcp": {"sent_segments": 7, "retransmitted_segments": 0},
        "energy": {"energy_j": None, "zones": []},
        "sampler": {"samples": 3, "samples_lost": 0, "missed_deadlines": 0, "cpu_s": 0.001},
        "samples_file": f"{stem}.csv",
        "probe": {
            "node_type": "virtual",
            "virtualization": {"vm": {"name": "kvm"}, "container": {"name": "none"}},
            "kernel": {"release": "6.1.0"},
            "cpu": {"model": "a processor"},
        },
        "missing": {"energy.energy_j": "no RAPL: /sys/class/powercap is absent"},
    } | fields
    (folder / f"{stem}.json").write_text(json.dumps(document), encoding="utf-8")
    lines = [HEADER] + [
        f"{start_unix_s + 0.125 + 10 * n:.6f},{10 * n:.6f},{2.5 * n:.6f},{1000 * (3 - n)},2,"
        f"{50 * n},{100 * n},{150 * n},{200 * n},{250 * n},{300 * n},{3 * n},0,0.500000,0.250000,0.125000,,,"
        f"{250 * n},{300 * n}"
        for n in range(3)
    ]
    (folder / f"{stem}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / f"{stem}.json"


def query(study: Any, sql: str) -> list[tuple[Any, ...]]:
    """Return rows of the study's database."""
    with attached(study) as engine:
        return engine.execute(sql).fetchall()


@contextlib.contextmanager
def attached(study: Any) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the study's database for reading."""
    engine = one_engine()
    engine.execute(f"ATTACH {quote_text(str(study.dir / 'study.duckdb'))} AS study (READ_ONLY)")
    try:
        engine.execute("USE study")
        sample_store.attach_view(engine, study.dir)
        yield engine
    finally:
        engine.execute("USE memory")
        engine.execute("DETACH study")


def content(study: Any) -> dict[str, list[str]]:
    """Return all rows of all tables as sorted text.

    Omitted are the time of the collect, and data that shows the next collect that nothing has
    changed.
    """
    skip = {"meta": "EXCLUDE collected_unix_s", "attempts": "EXCLUDE stamp"}
    with attached(study) as engine:
        tables = [
            row[0] for row in engine.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        ]
        assert len(tables) == 16
        tables[tables.index("sample_parts")] = "samples"  # the view; names of files may differ
        rows = {
            table: engine.execute(f"SELECT * {skip.get(table, '')} FROM {table}").fetchall()
            for table in tables
        }
    return {table: sorted(map(repr, found)) for table, found in rows.items()}


@functools.cache
def one_engine() -> duckdb.DuckDBPyConnection:
    """Return one shared connection: to open one takes as long as ten queries."""
    return duckdb.connect()


def gap_kinds(gaps: Sequence[Gap]) -> list[str]:
    """Return the kinds of gaps, sorted."""
    return sorted(gap.kind for gap in gaps)
