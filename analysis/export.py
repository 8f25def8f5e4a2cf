"""The database's tables as Parquet files beside it, for other programs."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.database import KEYS
from steelyard.analysis.spool import quote

TABLES = ("meta", *KEYS, "accounting", "gaps")
MARK = "exported"  # holds collected_unix_s of the collect whose export is whole
OPTIONS = "FORMAT parquet, COMPRESSION zstd"

# The day of a sample, UTC; without its time it has none.
DAY = (
    "coalesce(strftime(make_timestamp(CAST(unix_s * 1e6 AS BIGINT)), '%Y-%m-%d'), 'unknown') AS day"
)


def export(
    connection: DuckDBPyConnection, folder: Path, days: Collection[str], collected: tuple[str, str]
) -> None:
    """Write every table; of the samples only the days that changed.

    `collected`: collected_unix_s of the collect before and of this one, as text. When the last
    export was not of the collect before, or was not finished, all days are written.
    """
    folder.mkdir(exist_ok=True)
    mark = folder / MARK
    is_current = mark.is_file() and mark.read_text(encoding="utf-8") == collected[0]
    mark.unlink(missing_ok=True)
    for table in TABLES:
        part = folder / f".{table}.part"
        connection.execute(f"COPY {table} TO {quote(str(part))} ({OPTIONS})")
        part.replace(folder / f"{table}.parquet")
    export_samples(connection, folder, days if is_current else None)
    mark.write_text(collected[1], encoding="utf-8")


def export_samples(
    connection: DuckDBPyConnection, folder: Path, days: Collection[str] | None
) -> None:
    """One folder per day; None: all days."""
    if days is not None and not days:
        return
    part, target = folder / ".samples.part", folder / "samples"
    shutil.rmtree(part, ignore_errors=True)
    wanted = "" if days is None else f"WHERE day IN ({', '.join(map(quote, sorted(days)))})"
    connection.execute(
        f"COPY (SELECT * FROM (SELECT *, {DAY} FROM samples) {wanted}) TO {quote(str(part))} "
        f"({OPTIONS}, PARTITION_BY (day))"
    )
    if days is None:
        shutil.rmtree(target, ignore_errors=True)
    for day in days or ():
        shutil.rmtree(target / f"day={day}", ignore_errors=True)
    target.mkdir(exist_ok=True)
    for new in part.iterdir() if part.is_dir() else ():
        new.replace(target / new.name)
    shutil.rmtree(part, ignore_errors=True)
