"""Parquet files of a cluster's jobs, one for each day of their ends (UTC), and consistent reads.

An export first writes all new files next to the old ones. Then it removes `collected.json`, renames
each file into place, and writes `collected.json` with other content. A reader that finds the same
content of `collected.json` before and after has read consistent files, even during a collect.
"""

from __future__ import annotations

import json
import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import duckdb
from duckdb import DuckDBPyConnection

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.cluster.database import DAY, KEY, VERSION, build_schema, transaction
from steelyard.analysis.store.database import open_side_engine
from steelyard.analysis.store.export import OPTIONS
from steelyard.analysis.store.row_files import quote_path, quote_text
from steelyard.analysis.store.sample_store import format_day
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular

MARK = "collected.json"
FORMAT = "steelyard-cluster"
PATIENCE_S, POLL_S = 20.0, 0.05
Span = tuple[float, float]  # ends of jobs, in seconds since 1970
EVER: Span = (0.0, float("inf"))
Answer = TypeVar("Answer")

OF_DAY = {
    "jobs": f"SELECT * EXCLUDE (facts) FROM jobs WHERE is_over AND {DAY} = $day ORDER BY end_unix_s",
    "records": f"SELECT r.* FROM records AS r SEMI JOIN (SELECT * FROM jobs WHERE is_over AND {DAY} "
    f"= $day) USING ({', '.join(KEY)})",
}


def export_days(connection: DuckDBPyConnection, folder: Path) -> int:
    """Write the files of every day that changed since its export; return the number of days."""
    days = connection.execute("SELECT day, revision FROM days WHERE revision > exported").fetchall()
    ready = []
    for day, _ in days:
        for table, select in OF_DAY.items():
            day_folder = folder / table / f"day={day}"
            day_folder.mkdir(mode=0o750, parents=True, exist_ok=True)
            temporary = day_folder / f".{table}.part"
            query = select.replace("$day", quote_text(str(day)) + "::DATE")
            connection.execute(f"COPY ({query}) TO {quote_text(str(temporary))} ({OPTIONS})")
            ready.append((temporary, day_folder / f"{table}.parquet"))
    folder.mkdir(mode=0o750, parents=True, exist_ok=True)
    mark = write_description(connection)
    if ready:
        (folder / MARK).unlink(missing_ok=True)
    for temporary, day_folder in ready:
        temporary.replace(day_folder)
    temporary = folder / f".{MARK}.part"
    temporary.write_text(json.dumps(mark, indent=1) + "\n", encoding="utf-8")
    temporary.replace(folder / MARK)
    with transaction(connection):
        connection.executemany("UPDATE days SET exported = $2 WHERE day = $1", days or [(None, 0)])
    return len(days)


def write_description(connection: DuckDBPyConnection) -> dict[str, Any]:
    """Return the content of `collected.json`: what the files are, and what they do not contain."""
    names = ("database_id", "cluster", "collected_unix_s", "queried_until_unix_s")
    (row,) = connection.execute(f"SELECT {', '.join(names)} FROM meta").fetchall()
    ((jobs, still),) = connection.execute(
        "SELECT count(*) FILTER (is_over), count(*) FILTER (NOT is_over AND state = 'running') FROM jobs"
    ).fetchall()
    counts = {"jobs": jobs, "running": still, "revision": secrets.token_hex(4)}
    head = {"format": FORMAT, "version": VERSION}
    return head | dict(zip(names, row, strict=True)) | counts


def read_mark(folder: Path) -> dict[str, Any] | None:
    """Return the content of `collected.json`; None: a collect changes the files, or broke off."""
    try:
        found = json.loads(read_regular(folder / MARK, NOTE_BYTES))
    except (OSError, ValueError):
        return None
    is_ours = isinstance(found, dict) and found.get("format") == FORMAT
    return found if is_ours and found.get("version") == VERSION else None


def query_jobs(
    database_dir: Path,
    query: Callable[[DuckDBPyConnection, dict[str, Any]], Answer],
    patience_s: float = PATIENCE_S,
    span: Span = EVER,
) -> Answer:
    """Return what `query` returns for a view `jobs` on consistent files of the days of `span`.

    Raises MissingError as `read_consistently` does.
    """

    def attempt(files: Sequence[Path], mark: dict[str, Any]) -> Answer:
        with tempfile.TemporaryDirectory(prefix="steelyard-") as scratch:
            engine = open_side_engine(Path(scratch, "spill"))
            try:
                create_view(engine, files)
                return query(engine, mark)
            finally:
                engine.close()

    return read_consistently(database_dir, attempt, duckdb.Error, patience_s, span)


def read_consistently(
    database_dir: Path,
    attempt: Callable[[Sequence[Path], dict[str, Any]], Answer],
    torn: type[Exception],
    patience_s: float = PATIENCE_S,
    span: Span = EVER,
) -> Answer:
    """Return what `attempt` returns for files of jobs that did not change meanwhile.

    `torn` is the exception that `attempt` raises when they did change. Raises MissingError if
    nothing has been collected, or an interrupted collect left files of two passes.
    """
    folder = database_dir / "parquet"
    if not folder.is_dir():
        raise MissingError(
            f"{database_dir} has no database of a cluster: make one with `steelyard collect "
            f"--cluster {database_dir}`, or name its folder"
        )
    deadline = time.monotonic() + patience_s
    while True:
        mark = read_mark(folder)
        if mark is not None:
            try:
                answer = attempt(find_files(folder, span), mark)
            except torn:
                if read_mark(folder) == mark:
                    raise
            else:
                if read_mark(folder) == mark:
                    return answer
        if time.monotonic() > deadline:
            raise MissingError(
                f"{folder} is not whole: a collect writes it now, broke off, or is of another "
                f"version; say `steelyard collect --cluster {database_dir}` and ask again"
            )
        time.sleep(POLL_S)


def find_files(folder: Path, span: Span) -> list[Path]:
    """Return the files of all days that a span of job ends touches."""
    first, last = (
        format_day(max(span[0], 0.0)),
        format_day(span[1]),
    )  # `unknown` sorts after all dates
    days = sorted(path.name for path in (folder / "jobs").glob("day=*"))
    days_in_range = (day for day in days if first <= day.removeprefix("day=") <= last)
    return [
        path for day in days_in_range if (path := folder / "jobs" / day / "jobs.parquet").exists()
    ]


def create_view(connection: DuckDBPyConnection, files: Sequence[Path]) -> None:
    """Create the view `jobs` of these files."""
    if not files:
        connection.execute(build_schema())  # no job has ended: create its empty table
        return
    listed = ", ".join(map(quote_path, files))
    query = f"FROM read_parquet([{listed}], hive_partitioning = false)"
    connection.execute(f"CREATE VIEW jobs AS {query}")
