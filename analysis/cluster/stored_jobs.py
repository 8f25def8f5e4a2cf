"""Reads the rows of many jobs from a cluster's database at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from steelyard.analysis.cluster.database import KEY
from steelyard.analysis.cluster.job_row import Key
from steelyard.analysis.cluster.record_trust import ReadRecord
from steelyard.analysis.sources.cluster_sacct import JobStart
from steelyard.analysis.sources.records import COLUMNS, FORMAT, VERSION, Record

KEYS = ", ".join(KEY)
# Fields of a record that decide whether its totals are the job's, by the table's column.
BESIDES = {
    "scheduler": "job.scheduler",
    "incomplete_of": "incomplete_of",
    "named": "processes.named",
}


@dataclass(frozen=True, slots=True)
class StoredJobs:
    """A job in the database."""

    facts: str
    is_settled: bool


def read_jobs(connection: DuckDBPyConnection, keys: Iterable[Key]) -> dict[Key, StoredJobs]:
    """Return the stored jobs among these keys."""
    rows = connection.execute(
        f"SELECT {KEYS}, facts, is_settled FROM jobs WHERE job_id IN (SELECT unnest(?))",
        [sorted({key[1] for key in keys})],
    ).fetchall()
    return {(row[0], row[1], row[2]): StoredJobs(row[3], row[4]) for row in rows}


def read_starts(
    connection: DuckDBPyConnection, found: Mapping[Key, JobStart]
) -> dict[str, list[tuple[Key, float]]]:
    """Return the starts of all jobs with these ids, of the answer and of the database, by id."""
    rows = connection.execute(
        f"SELECT {KEYS}, start_unix_s FROM jobs WHERE start_unix_s IS NOT NULL "
        "AND job_id IN (SELECT unnest(?))",
        [sorted({key[1] for key in found})],
    ).fetchall()
    begins = {(row[0], row[1], row[2]): row[3] for row in rows}
    begins |= {k: b.row.start_unix_s for k, b in found.items() if b.row.start_unix_s is not None}
    by_id: dict[str, list[tuple[Key, float]]] = {}
    for key, at in begins.items():
        by_id.setdefault(key[1], []).append((key, at))
    return by_id


def read_records(
    connection: DuckDBPyConnection, keys: Collection[Key]
) -> dict[Key, dict[str, ReadRecord]]:
    """Return the stored records of these jobs, by node."""
    if not keys:
        return {}
    names = ["node", "file", "sha256", "marks", *BESIDES, *COLUMNS]
    listed = ", ".join(f'"{name}"' for name in names)
    rows = connection.execute(
        f"SELECT {KEYS}, {listed} FROM records WHERE job_id IN (SELECT unnest(?))",
        [sorted({key[1] for key in keys})],
    ).fetchall()
    found: dict[Key, dict[str, ReadRecord]] = {}
    for row in rows:
        cells = dict(zip(names, row[len(KEY) :], strict=True))
        record = Record(Path(cells["file"]), build_document(cells))
        checked = ReadRecord(record, cells["sha256"], tuple(cells["marks"]))
        found.setdefault((row[0], row[1], row[2]), {})[cells["node"]] = checked
    return found


def build_document(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Rebuild a record's document from the stored fields."""
    document: dict[str, Any] = {"format": FORMAT, "version": VERSION, "node": cells["node"]}
    paths = {name: path for name, (path, _) in COLUMNS.items()} | BESIDES
    for name, path in paths.items():
        *parents, last = path.split(".")
        section = document
        for parent in parents:
            section = section.setdefault(parent, {})
        section[last] = cells[name]
    return document


def read_open_jobs(connection: DuckDBPyConnection) -> list[Key]:
    """Return the keys of jobs that had not ended when they were last queried."""
    rows = connection.execute(
        f"SELECT {KEYS} FROM jobs WHERE NOT is_over AND state <> 'lost'"
    ).fetchall()
    return [(row[0], row[1], row[2]) for row in rows]
