"""Stores samples as Parquet files below `parquet/samples/day=YYYY-MM-DD/` (docs/collect.md).

The table `sample_parts` of the database names the valid files, so that samples become visible
completely or not at all, as all other tables do. A file that it does not name is from a killed
collect. `samples` is a temporary view over the valid files.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.store.row_files import quote_path, quote_text
from steelyard.analysis.store.schema import SAMPLE_COLUMNS
from steelyard.jobscripts.regular_files import ANY_BYTES, open_regular

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FOLDER = Path("parquet", "samples")
# Dictionaries help columns of few values (run, node), not counters, whose differences version 2 of
# the format packs: half the size of version 1 in the same time.
OPTIONS = (
    "FORMAT parquet, PARQUET_VERSION V2, COMPRESSION zstd, COMPRESSION_LEVEL 1, "
    "DICTIONARY_SIZE_LIMIT 1000"
)
KEY = {"run_id": "VARCHAR", "attempt": "VARCHAR", "node": "VARCHAR"}
ALL_COLUMNS = {**KEY, **SAMPLE_COLUMNS}

SMALL_BYTES = 2_000_000
SMALL_PARTS = 8  # small files of a day; if there are more, they are merged

MAGIC = b"PAR1"  # https://parquet.apache.org/docs/file-format/
DAY_S = 86400  # Unix time has no leap seconds, so that every UTC day has this length
HALF = ".part"  # suffix of incomplete files, whose names begin with a period
UNKNOWN = "unknown"  # the day of samples without a valid time
LATEST_UNIX_S = 253402300800  # the year 10000, the end of dates

# DuckDB sorts NaN above all numbers.
DAY_OF_ROW = (
    f"CASE WHEN unix_s >= 0 AND unix_s < {LATEST_UNIX_S} "
    f"THEN CAST(make_date(CAST(floor(unix_s / {DAY_S}) AS INTEGER)) AS VARCHAR) "
    f"ELSE '{UNKNOWN}' END"
)


@dataclass(frozen=True, slots=True)
class Part:
    """A file of samples of one UTC day; `name` is its path below FOLDER."""

    name: str
    day: str
    samples: int
    size_bytes: int
    path: Path  # its current path: a new file is in the scratch folder


def format_day(unix_s: float) -> str:
    """Return `2026-11-21`, or `unknown` for an invalid time."""
    if not 0 <= unix_s < LATEST_UNIX_S:
        return UNKNOWN
    return datetime.fromtimestamp(unix_s, UTC).date().isoformat()


def is_complete(path: Path) -> bool:
    """Whether a Parquet file has its end: a footer, its length and the letters PAR1."""
    try:
        with open_regular(path, ANY_BYTES) as file:
            if file.seek(0, os.SEEK_END) < len(MAGIC) * 3:
                return False
            file.seek(-len(MAGIC), os.SEEK_END)
            return file.read() == MAGIC
    except OSError:
        return False


def make_scan(paths: Sequence[Path], *, filename: bool = False) -> str:
    """Return SQL for these files with ALL_COLUMNS; `filename` adds the column of that name."""
    if not paths:
        return f"(SELECT {', '.join(f'NULL::{t} AS {n}' for n, t in ALL_COLUMNS.items())} LIMIT 0)"
    names = ", ".join(ALL_COLUMNS) + (", filename" if filename else "")
    files = ", ".join(map(quote_path, paths))
    return (
        f"(SELECT {names} FROM read_parquet([{files}], hive_partitioning = false, "
        f"filename = {filename}))"
    )


def read_stored_parts(connection: DuckDBPyConnection, study_dir: Path) -> list[Part]:
    """Return the files that the table `sample_parts` names."""
    rows = connection.execute(
        "SELECT path, day, samples, size_bytes FROM sample_parts ORDER BY path"
    ).fetchall()
    return [
        Part(name, day, samples, size_bytes, study_dir / FOLDER / name)
        for name, day, samples, size_bytes in rows
    ]


def is_unchanged(part: Part) -> bool:
    """Whether the file is complete and has its size."""
    return is_complete(part.path) and part.path.stat().st_size == part.size_bytes


def make_view(connection: DuckDBPyConnection, parts: Sequence[Part]) -> None:
    """Make the view `samples` over these files."""
    relation = make_scan([part.path for part in parts])
    connection.execute(f"CREATE OR REPLACE TEMP VIEW samples AS FROM {relation}")


def find_lost_parts(connection: DuckDBPyConnection, study_dir: Path) -> list[Part]:
    """Return the files that are missing or truncated."""
    return [part for part in read_stored_parts(connection, study_dir) if not is_unchanged(part)]


def attach_view(connection: DuckDBPyConnection, study_dir: Path) -> None:
    """Make the view `samples` for a reader, over the files that are complete."""
    parts = read_stored_parts(connection, study_dir)
    make_view(connection, [part for part in parts if is_unchanged(part)])


def remove_uncounted_files(connection: DuckDBPyConnection, study_dir: Path) -> None:
    """Remove files that are not valid.

    The database must be open for writing, so that no other process adds files.
    """
    folder = study_dir / FOLDER
    named = {part.path for part in read_stored_parts(connection, study_dir)}
    for path in (*folder.glob("*/*.parquet"), *folder.glob(f"*/.*{HALF}")):
        if path not in named and not path.is_dir():  # Spark makes folders with such names
            path.unlink(missing_ok=True)
    for day in folder.glob("day=*/"):
        if not any(day.iterdir()):
            day.rmdir()


def move_file(source: Path, target: Path) -> None:
    """Move a file completely or not at all.

    `parquet` may be a link to another file system.
    """
    try:
        source.replace(target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        half = target.with_name(f".{target.name}{HALF}")
        shutil.copyfile(source, half)
        half.replace(target)
        source.unlink()


def sync_file(path: Path) -> None:
    """Write a file to disk, before its sources are removed."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


class Parts:
    """The files of samples of a study during a collect; new ones are in `scratch`."""

    def __init__(self, connection: DuckDBPyConnection, study_dir: Path, scratch: Path) -> None:
        self._connection = connection
        self._folder = study_dir / FOLDER
        self._scratch = scratch
        named = read_stored_parts(connection, study_dir)
        self._parts = {part.name: part for part in named if is_unchanged(part)}
        self.broken = len(self._parts) < len(named)  # some are missing or truncated
        self._serial = max((int(Path(part.name).stem) for part in named), default=0)
        self.refresh()

    def write(
        self, select: str, day: str | None, connection: DuckDBPyConnection | None = None
    ) -> list[Part]:
        """Write the rows of a SELECT with ALL_COLUMNS to new files.

        `day` states that all rows are of that day. None: several days, which takes DuckDB twice the
        time. `connection` is the one that has the SELECT's relations; None: that of the database.
        """
        connection = connection or self._connection
        self._serial += 1
        if day is None:
            return self._write_days(select, connection)
        path = self._scratch / f"{self._serial}.parquet"
        connection.execute(f"COPY ({select}) TO {quote_text(str(path))} ({OPTIONS})")
        rows, of_day = connection.execute(
            f"SELECT count(*), count(*) FILTER ({DAY_OF_ROW} = ?) "
            f"FROM read_parquet({quote_path(path)})",
            [day],
        ).fetchall()[0]
        if of_day == rows:
            return self._add(path, day, rows)
        parts = self._write_days(f"FROM {make_scan([path])}", connection)
        path.unlink()
        return parts

    def rewrite(self, select: str, day: str | None) -> None:
        """Do the same as `write` with samples that may have no other copy: sync the files."""
        for part in self.write(select, day):
            sync_file(part.path)

    def _write_days(self, select: str, connection: DuckDBPyConnection) -> list[Part]:
        """Write one file for each day."""
        folder = self._scratch / f"{self._serial}"
        connection.execute(
            f"COPY (SELECT *, {DAY_OF_ROW} AS day FROM ({select})) TO {quote_text(str(folder))} "
            f"({OPTIONS}, PARTITION_BY (day))"
        )
        parts = []
        for path in sorted(folder.glob("day=*/*.parquet")):
            self._serial += 1
            count = f"SELECT count(*) FROM read_parquet({quote_path(path)})"
            ((rows,),) = connection.execute(count).fetchall()
            parts += self._add(path, path.parent.name.removeprefix("day="), rows)
        return parts

    def _add(self, path: Path, day: str, rows: int) -> list[Part]:
        """Add a written file; remove it if it has no rows."""
        if not rows:
            path.unlink()
            return []
        name = f"day={day}/{self._serial:06}.parquet"
        self._parts[name] = Part(name, day, rows, path.stat().st_size, path)
        return [self._parts[name]]

    def _drop(self, part: Part) -> None:
        """Remove a file from the valid ones. A new one is deleted now, others after the commit."""
        del self._parts[part.name]
        if part.path.is_relative_to(self._scratch):
            part.path.unlink()

    def remove(self, keys: str) -> None:
        """Remove the rows of these (run_id, attempt, node) by rewriting their files.

        `keys` is the name of a relation.
        """
        parts = {str(part.path): part for part in self._parts.values()}
        relation = make_scan([part.path for part in parts.values()], filename=True)
        touched = self._connection.execute(
            f"SELECT DISTINCT filename FROM {relation} SEMI JOIN {keys} USING (run_id, attempt, node)"
            if parts
            else "SELECT '' LIMIT 0"
        ).fetchall()
        for (path,) in touched:
            part = parts[path]
            self.rewrite(
                f"FROM {make_scan([part.path])} ANTI JOIN {keys} USING (run_id, attempt, node)",
                part.day,
            )
            self._drop(part)

    def refresh(self) -> None:
        """Update the view `samples`."""
        make_view(self._connection, list(self._parts.values()))

    def merge_small(self) -> None:
        """Merge small files of a day, which several collects wrote."""
        days = defaultdict(list)
        for part in self._parts.values():
            if part.size_bytes < SMALL_BYTES:
                days[part.day].append(part)
        for day, small in days.items():
            if len(small) > SMALL_PARTS:
                self.rewrite(f"FROM {make_scan([part.path for part in small])}", day)
                for part in small:
                    self._drop(part)

    def publish(self) -> None:
        """Move new files to their folder and store all names; the caller commits."""
        self.merge_small()
        for name, part in self._parts.items():
            if part.path != self._folder / name:
                (self._folder / name).parent.mkdir(parents=True, exist_ok=True)
                move_file(part.path, self._folder / name)
        self._connection.execute("DELETE FROM sample_parts")
        rows = [(p.name, p.day, p.samples, p.size_bytes) for p in self._parts.values()]
        if rows:
            self._connection.executemany("INSERT INTO sample_parts VALUES (?, ?, ?, ?)", rows)


@contextlib.contextmanager
def make_scratch_folder(study_dir: Path) -> Iterator[Path]:
    """Make an empty folder for the time of a collect; remove that of a killed collect first."""
    # The database is open, so that no other collect of this study is running.
    folder = study_dir / ".collect"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def store_samples(connection: DuckDBPyConnection, study_dir: Path, select: str) -> None:
    """Store the rows of a SELECT with ALL_COLUMNS as new files of a study."""
    with make_scratch_folder(study_dir) as scratch:
        parts = Parts(connection, study_dir, scratch)
        parts.rewrite(select, None)
        parts.publish()
