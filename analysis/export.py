"""The database's tables as Parquet files beside it, for other programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.database import KEYS
from steelyard.analysis.spool import quote

TABLES = ("meta", *KEYS, "accounting", "checks", "gaps")
MARK = "exported"  # holds collected_unix_s of the collect whose export is whole
# Dictionaries for what has few values (run, node), not for counters: half the time, a third
# larger than at level 3.
OPTIONS = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, DICTIONARY_SIZE_LIMIT 1000"

MAGIC = b"PAR1"  # https://parquet.apache.org/docs/file-format/
DAY_S = 86400  # Unix time has no leap seconds: a UTC day is that long
UNKNOWN = "unknown"  # the day of samples without a time, or with one that is none
LATEST_UNIX_S = 253402300800  # the year 10000: dates end there


def export(
    connection: DuckDBPyConnection,
    folder: Path,
    days: Collection[str],
    collected: tuple[str, str],
    progress: Callable[[str, int, int], None],
) -> None:
    """Write every table; of the samples only the days that changed.

    `collected`: collected_unix_s of the collect before and of this one, as text. When the last
    export was not of the collect before, or was not finished, all days are written.
    """
    folder.mkdir(exist_ok=True)
    mark = folder / MARK
    is_current = mark.is_file() and mark.read_text(encoding="utf-8") == collected[0]
    mark.unlink(missing_ok=True)
    for done, table in enumerate(TABLES):
        progress("Parquet", done, len(TABLES) + 1)  # the last are the samples
        part = folder / f".{table}.part"
        connection.execute(f"COPY {table} TO {quote(str(part))} ({OPTIONS})")
        part.replace(folder / f"{table}.parquet")
    export_samples(connection, folder, days if is_current else None)
    mark.write_text(collected[1], encoding="utf-8")
    progress("Parquet", len(TABLES) + 1, len(TABLES) + 1)


def export_samples(
    connection: DuckDBPyConnection, folder: Path, days: Collection[str] | None
) -> None:
    """One folder per day, UTC; None: all days.

    Day by day: DuckDB's PARTITION_BY in one statement takes two and a half times as long.
    """
    part, target = folder / ".samples.part", folder / "samples"
    shutil.rmtree(part, ignore_errors=True)
    if days is None:
        shutil.rmtree(target, ignore_errors=True)
    elif not (days := {*days, *broken_days(target)}):
        return
    target.mkdir(exist_ok=True)
    there = days_of(connection, "samples")
    gone = {path.name.removeprefix("day=") for path in target.iterdir()}
    for day in sorted(there if days is None else (there | gone) & set(days)):
        part.mkdir()
        file = part / "data.parquet"
        connection.execute(
            f"COPY (SELECT * FROM samples WHERE {is_of(day)}) TO {quote(str(file))} ({OPTIONS})"
        )
        shutil.rmtree(target / f"day={day}", ignore_errors=True)
        if day in there:
            part.replace(target / f"day={day}")
        shutil.rmtree(part, ignore_errors=True)


def broken_days(folder: Path) -> set[str]:
    """Days whose files were cut short by something else than us."""
    return {
        path.parent.name.removeprefix("day=")
        for path in folder.glob("day=*/*")
        if not is_whole(path)
    }


def is_whole(path: Path) -> bool:
    """Whether a Parquet file has its end: a footer, its length and the letters PAR1."""
    if path.stat().st_size < len(MAGIC) * 3:
        return False
    with path.open("rb") as file:
        file.seek(-len(MAGIC), os.SEEK_END)
        return file.read() == MAGIC


def is_of(day: str) -> str:
    """The condition that picks a day's samples."""
    if day == UNKNOWN:
        return f"({number_of_day()}) IS NULL"
    begin = datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp()
    return f"unix_s >= {begin} AND unix_s < {begin + DAY_S}"


def number_of_day() -> str:
    """Days since 1970 of a sample; NULL where its time is none (NaN is above all numbers)."""
    return (
        f"CASE WHEN unix_s >= 0 AND unix_s < {LATEST_UNIX_S} "
        f"THEN CAST(floor(unix_s / {DAY_S}) AS BIGINT) END"
    )


def days_of(connection: DuckDBPyConnection, samples: str) -> set[str]:
    """The UTC days, as `2026-11-21`, of a relation of samples."""
    rows = connection.execute(f"SELECT DISTINCT {number_of_day()} FROM {samples}").fetchall()
    return {name_of_day(number) for (number,) in rows}


def name_of_day(number: int | None) -> str:
    """`2026-11-21` of a number of days since 1970; None: the day of samples without a time."""
    if number is None:
        return UNKNOWN
    return datetime.fromtimestamp(number * DAY_S, UTC).date().isoformat()
