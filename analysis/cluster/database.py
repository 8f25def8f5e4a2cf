"""The database of a cluster's jobs: one collect writes it at a time, in transactions.

A collect also reads here what earlier ones stored of the jobs in an answer of the accounting.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.resources
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from steelyard.analysis.base import locks
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.cluster.job_records import ReadRecord
from steelyard.analysis.cluster.job_row import Key
from steelyard.analysis.sources.cluster_sacct import JobStart
from steelyard.analysis.sources.records import COLUMNS, FORMAT, Record
from steelyard.analysis.sources.records import VERSION as RECORD_VERSION
from steelyard.analysis.store.database import (
    WRITE_ERRORS,
    close,
    connect,
    describe_write_error,
    limit_memory,
    read_table_columns,
)
from steelyard.analysis.store.row_files import Spool

FILE_NAME = "cluster.duckdb"
LOCK = ".lock"
VERSION = 3
DAY = "make_timestamp((1e6 * end_unix_s)::BIGINT)::DATE"  # UTC, not the session's zone
KEY = ("cluster", "job_id", "submit_unix_s")
KEY_COLUMNS = ", ".join(KEY)
# Fields of a record that decide whether its totals are the job's, by the table's column.
BESIDES = {
    "scheduler": "job.scheduler",
    "incomplete_of": "incomplete_of",
    "named": "processes.named",
}
SQL_TYPES = {"text": "VARCHAR", "bool": "BOOLEAN", "int": "BIGINT", "float": "DOUBLE"}


@contextlib.contextmanager
def open_database(folder: Path) -> Iterator[DuckDBPyConnection]:
    """Open the database in a folder exclusively; create it if it does not exist.

    Raises UsageError when another collect works on it or its version differs, and MissingError when
    it cannot be written.
    """
    try:
        folder.mkdir(mode=0o750, parents=True, exist_ok=True)
        with lock_folder(folder):
            connection = connect(folder / FILE_NAME, read_only=False, known=VERSION)
            try:
                limit_memory(connection, folder)
                create_tables(connection)
                yield connection
            finally:
                close(connection, folder)
    except WRITE_ERRORS as error:
        what = f"{folder / FILE_NAME} could not be written; what was collected before is whole"
        raise describe_write_error(what, error, folder) from error


@contextlib.contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock the folder against other collects. The lock ends with its process in any case."""
    fd = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    try:
        try:
            locks.lock_file(fd)
        except BlockingIOError:
            raise UsageError(
                f"another `steelyard collect --cluster` is at work in {folder}: it takes up what is "
                "new, there is nothing to do",
                str(folder),
            ) from None
        except OSError as error:
            if error.errno not in locks.NO_LOCKS:
                raise
            advice = locks.NO_LOCKS_ADVICE.replace("the study's folder", "it")
            raise MissingError(f"{folder} cannot be locked: {advice}") from None
        yield
    finally:
        os.close(fd)


def build_schema() -> str:
    """Return the statements that create the tables."""
    text = importlib.resources.files(__package__).joinpath("schema.sql").read_text("utf-8")
    columns = ", ".join(f'"{name}" {SQL_TYPES[kind]}' for name, (_, kind) in COLUMNS.items())
    return text.replace("@records@", columns)


def create_tables(connection: DuckDBPyConnection) -> None:
    """Create the tables if they do not exist."""
    if read_table_columns(connection, "meta"):
        return
    with transaction(connection):
        connection.execute(build_schema())
        connection.execute(
            "INSERT INTO meta VALUES (?, ?, NULL, ?, NULL, NULL)",
            [VERSION, secrets.token_hex(8), importlib.metadata.version("steelyard")],
        )


@contextlib.contextmanager
def transaction(connection: DuckDBPyConnection) -> Iterator[None]:
    """Run the block as a transaction. After an error or a kill, the earlier content remains."""
    connection.execute("BEGIN")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def replace_jobs(connection: DuckDBPyConnection, jobs: Spool, records: Spool, gaps: Spool) -> None:
    """Replace the rows of jobs and of their records and gaps; mark the days of both for export."""
    connection.execute(f"CREATE OR REPLACE TEMP TABLE fresh AS {jobs.select()}")
    before = f"SELECT end_unix_s FROM jobs SEMI JOIN fresh USING ({KEY_COLUMNS})"
    touched = f"SELECT end_unix_s FROM fresh UNION ALL {before}"
    connection.execute(
        "CREATE OR REPLACE TEMP TABLE touched AS SELECT DISTINCT "
        f"{DAY} AS day FROM ({touched}) WHERE end_unix_s IS NOT NULL"
    )
    for table, rows in (("jobs", "SELECT * FROM fresh"), ("records", records), ("gaps", gaps)):
        connection.execute(
            f"DELETE FROM {table} WHERE ({KEY_COLUMNS}) IN (SELECT ({KEY_COLUMNS}) FROM fresh)"
        )
        select = rows if isinstance(rows, str) else rows.select()
        connection.execute(f"INSERT INTO {table} BY NAME {select}")
    connection.execute(
        "UPDATE days SET revision = revision + 1 WHERE day IN (SELECT day FROM touched)"
    )
    connection.execute(
        "INSERT INTO days SELECT day, 1, 0 FROM touched WHERE day NOT IN (SELECT day FROM days)"
    )
    check_keys(connection)


def check_keys(connection: DuckDBPyConnection) -> None:
    """Raise RuntimeError if a job just stored exists twice, which would be a bug here."""
    doubled = connection.execute(
        f"SELECT {KEY_COLUMNS} FROM jobs SEMI JOIN fresh USING ({KEY_COLUMNS}) GROUP BY {KEY_COLUMNS} "
        "HAVING count(*) > 1 LIMIT 1"
    ).fetchall()
    if doubled:
        raise RuntimeError(f"the job {doubled[0]} would be there twice")


@contextlib.contextmanager
def open_spools(connection: DuckDBPyConnection, scratch: Path) -> Iterator[dict[str, Spool]]:
    """Open a spool for each table of jobs and of their records and gaps."""
    with contextlib.ExitStack() as stack:
        yield {
            table: stack.enter_context(
                Spool(scratch / f"{table}.jsonl", read_table_columns(connection, table))
            )
            for table in ("jobs", "records", "gaps")
        }


@dataclass(frozen=True, slots=True)
class StoredJobs:
    """A job in the database."""

    facts: str
    is_settled: bool


def read_jobs(connection: DuckDBPyConnection, keys: Iterable[Key]) -> dict[Key, StoredJobs]:
    """Return the stored jobs among these keys."""
    rows = connection.execute(
        f"SELECT {KEY_COLUMNS}, facts, is_settled FROM jobs WHERE job_id IN (SELECT unnest(?))",
        [sorted({key[1] for key in keys})],
    ).fetchall()
    return {(row[0], row[1], row[2]): StoredJobs(row[3], row[4]) for row in rows}


def read_starts(
    connection: DuckDBPyConnection, found: Mapping[Key, JobStart]
) -> dict[str, list[tuple[Key, float]]]:
    """Return the starts of all jobs with these ids, of the answer and of the database, by id."""
    rows = connection.execute(
        f"SELECT {KEY_COLUMNS}, start_unix_s FROM jobs WHERE start_unix_s IS NOT NULL "
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
        f"SELECT {KEY_COLUMNS}, {listed} FROM records WHERE job_id IN (SELECT unnest(?))",
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
    document: dict[str, Any] = {"format": FORMAT, "version": RECORD_VERSION, "node": cells["node"]}
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
        f"SELECT {KEY_COLUMNS} FROM jobs WHERE NOT is_over AND state <> 'lost'"
    ).fetchall()
    return [(row[0], row[1], row[2]) for row in rows]
