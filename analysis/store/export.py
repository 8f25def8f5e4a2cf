"""Exports the database's tables as Parquet files; sample_store.py stores samples."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.store.database import KEYS
from steelyard.analysis.store.row_files import quote_text
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular

TABLES = ("meta", *KEYS, "accounting", "checks", "gaps", "notes")
MARK = "exported"  # contains collected_unix_s of the collect that wrote all files
# Level 1 takes half the time of level 3, and the files are a third larger.
OPTIONS = "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 1, DICTIONARY_SIZE_LIMIT 1000"


def remove_mark(folder: Path) -> None:
    """Remove the mark, before files change."""
    (folder / MARK).unlink(missing_ok=True)


def read_mark(folder: Path) -> str:
    """Return the mark; raise UsageError without one."""
    try:
        return read_regular(folder / MARK, NOTE_BYTES).decode("utf-8")
    except OSError:
        raise UsageError(
            f"{folder} is not whole, a collect writes it now or broke off: when none is at work, "
            "run `steelyard collect` again",
            str(folder),
        ) from None


def compute_mark(connection: DuckDBPyConnection) -> str | None:
    """Return the mark of a database's files; None: nothing was collected yet."""
    rows = connection.execute("SELECT collected_unix_s FROM meta").fetchall()
    return repr(rows[0][0]) if rows else None


def is_complete(folder: Path, collected: str | None) -> bool:
    """Whether all files exist and have this mark."""
    files = (folder / MARK, *(folder / f"{table}.parquet" for table in TABLES))
    if collected is None or not all(file.is_file() for file in files):
        return False
    return read_regular(folder / MARK, NOTE_BYTES).decode("utf-8", "replace") == collected


def export(
    connection: DuckDBPyConnection,
    folder: Path,
    collected: str,
    progress: Callable[[str, int, int], None],
    but: Collection[str] = (),
) -> None:
    """Write every table except `but`, whose files are unchanged; `collected` becomes the mark."""
    folder.mkdir(exist_ok=True)
    tables = [table for table in TABLES if table not in but]
    for done, table in enumerate(tables):
        progress("Parquet", done, len(tables))
        temporary = folder / f".{table}.part"
        connection.execute(f"COPY {table} TO {quote_text(str(temporary))} ({OPTIONS})")
        temporary.replace(folder / f"{table}.parquet")
    (folder / MARK).write_text(collected, encoding="utf-8")
    progress("Parquet", len(tables), len(tables))
