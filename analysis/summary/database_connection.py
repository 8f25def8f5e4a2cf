"""Opens the study's database for reading; each fault of it is reported in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.base import locks
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.store import sample_store
from steelyard.analysis.store.database import FILE_NAME, check_version

if TYPE_CHECKING:
    import duckdb


@contextmanager
def open_database(folder: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the study's database read-only; raises MissingError if it is missing or damaged."""
    import duckdb

    damage = (
        duckdb.IOException,
        duckdb.InvalidInputException,  # a Parquet file whose bytes have changed
        duckdb.SerializationException,
        duckdb.InternalException,
        duckdb.FatalException,
        duckdb.CatalogException,  # a table or a column is missing
        duckdb.BinderException,
    )
    connection = connect_to_database(folder)
    try:
        yield connection
    except duckdb.Error as error:
        # duckdb.Error itself, no subclass, is raised for unreadable pages of a Parquet file.
        if isinstance(error, damage) or type(error) is duckdb.Error:
            raise describe_unreadable(folder / FILE_NAME, error) from error
        raise
    finally:
        connection.close()


def connect_to_database(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection as open_database() does; the caller must close it."""
    import duckdb

    path = folder / FILE_NAME
    if not path.is_file():
        raise MissingError(f"{path} is not there: run `steelyard collect` first")
    try:
        connection = duckdb.connect(str(path), read_only=True)
    except duckdb.IOException as error:
        raise describe_unreadable(path, error) from error
    try:
        check_schema(connection, path)
        sample_store.attach_view(connection, folder)
    except BaseException:
        connection.close()
        raise
    return connection


def describe_unreadable(path: Path, error: duckdb.Error) -> MissingError:
    """Return an error that advises to wait or to recreate the file."""
    first = str(error).splitlines()[0]
    if locks.is_missing_lock_error(first):
        return MissingError(f"{path} cannot be locked: {locks.NO_LOCKS_ADVICE}")
    if "lock" in first:
        return MissingError(
            f"{path} is held by another process: {first}. Is a collect still running? Wait for its end"
        )
    if match := re.search(r'file "([^"]+\.parquet)"', first):
        return MissingError(
            f"{match[1]} is damaged: {first}. Remove it and run `steelyard collect`: it is made "
            "from the records' samples, which are kept"
        )
    return MissingError(
        f"{path} is damaged, or no database of a study: {first}. Move it away and run `steelyard "
        "collect`: it is made from accounting, records and output, which are kept"
    )


def check_schema(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Check that this version knows the schema; raises UsageError if not."""
    import duckdb

    try:
        rows = connection.execute("SELECT schema_version FROM meta").fetchall()
    except duckdb.CatalogException as error:
        if not connection.execute("SELECT 1 FROM duckdb_tables() LIMIT 1").fetchall():
            raise MissingError(
                f"{path} has nothing in it: its first collect broke off. Run `steelyard collect` again"
            ) from error
        raise UsageError(f"{path} is no study's database: it has no table meta") from error
    if not rows:
        raise MissingError(f"{path} is empty: run `steelyard collect` again")
    check_version(path, rows[0][0])
