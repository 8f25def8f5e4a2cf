"""Opens the database of a study for writing, with its schema and its lock."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import duckdb

from steelyard.analysis.base import locks
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.store.row_files import Spool, quote_text, replace_lone_surrogates
from steelyard.analysis.store.schema import build_schema

FILE_NAME = "study.duckdb"
SCHEMA_VERSION = 13
MEMORY_LIMIT = "1GB"  # DuckDB's own; Python needs the same amount for 100,000 records
SIDE_MEMORY_LIMIT = "500MB"
SPILL_FOLDER = ".collect.spill"  # DuckDB creates it when needed, and uses it until it is closed

UNUSABLE = frozenset("?\\")  # DuckDB inserts `.wal` before a `?`, and reads `\` as `/`

HEADERS_BYTES = 3 * 4096  # https://duckdb.org/docs/stable/internals/storage: the minimum size
MAKING_S = 1.0  # seconds; DuckDB needs milliseconds: an older file's creator is dead

WRITE_ERRORS = (
    duckdb.IOException,
    duckdb.OutOfMemoryException,
    duckdb.TransactionException,  # a commit without disk space
    OSError,
)
THEIRS = "Collect as {owner}, whose it is, or copy {folder} and collect the copy"
# What to do about an error of the file system.
ADVICE = {
    errno.ENOSPC: "Free room on the disk of {folder} and collect again: nothing is lost",
    errno.EDQUOT: "Free room below your quota and collect again: nothing is lost",
    errno.EFBIG: "Raise the limit of a file's size (ulimit -f) and collect again: nothing is lost",
    errno.EROFS: "Copy {folder} to a disk that can be written, and collect the copy",
    errno.EACCES: THEIRS,
    errno.EPERM: THEIRS,
}

KEYS = {
    "runs": ("run_id",),
    "attempts": ("run_id", "attempt"),
    "results": ("run_id", "attempt", "client", "iteration", "metric"),
    "records": ("run_id", "attempt", "node"),
    "tags": ("run_id", "attempt", "node", "key"),
    "environment": ("run_id", "attempt", "node", "path", "sha256"),
    "command_usage": ("run_id", "attempt"),
    "spans": ("run_id", "attempt", "span", "iteration"),
    "sources": ("path",),
    "sample_parts": ("path",),
    "network": ("run_id", "attempt", "node"),
}


class InUseError(UsageError):
    """Another process has the database open for writing."""


@contextlib.contextmanager
def open_for_writing(study_dir: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open the study's database for one transaction; create it if it does not exist.

    The transaction is committed at the end and rolled back on an error or a kill. Raises UsageError
    when another process has the database open or its version differs, and MissingError when it
    cannot be written.
    """
    connection = connect(study_dir / FILE_NAME, read_only=False)
    try:
        limit_memory(connection, study_dir)
        version = read_schema_version(connection)
        connection.execute("BEGIN")
        if version is None:
            connection.execute(build_schema())
        else:
            connection.execute(build_schema("schema_views.sql"))  # this version's
        yield connection
        connection.execute("COMMIT")
    except WRITE_ERRORS as error:
        what = f"{study_dir / FILE_NAME} could not be written and is as it was before"
        raise describe_write_error(what, error, study_dir) from error
    finally:
        close(connection, study_dir)  # without a commit this is a rollback


def describe_write_error(what: str, error: Exception, study_dir: Path) -> Exception:
    """Return the error for a failed write: what happened, why, and what to do.

    An error that is a bug is returned unchanged.
    """
    code = find_errno(error)
    if code is not None:
        advice = ADVICE[code].format(folder=study_dir, owner=find_owner(study_dir))
        return MissingError(f"{what}: {os.strerror(code)}. {advice}")
    if isinstance(error, duckdb.TransactionException):
        return error  # a bug in Steelyard
    if isinstance(error, OSError) and error.filename is not None:
        named = f"{error.filename}: {error.strerror}"
        return MissingError(f"{what}: {named}. See what is there, and collect again")
    message = str(error).strip().splitlines()[0]
    advice = f"Is the disk of {study_dir} full? Collect again when there is room"
    return MissingError(f"{what}: {message}. {advice}")


def find_errno(error: Exception) -> int | None:
    """Return the errno, if ADVICE has it. DuckDB's errors have only its message."""
    if isinstance(error, OSError):
        return error.errno if error.errno in ADVICE else None
    return next((code for code in ADVICE if os.strerror(code) in str(error)), None)


def find_owner(path: Path) -> str:
    """Return the owner's name, or its number if it has no name."""
    try:
        return path.owner()
    except KeyError:
        return f"user {path.stat().st_uid}"


def limit_memory(connection: duckdb.DuckDBPyConnection, study_dir: Path) -> None:
    """Limit DuckDB's memory to MEMORY_LIMIT; larger data go to the study's disk."""
    # A killed collect may have left this folder. Its only possible user would have the database
    # locked.
    shutil.rmtree(study_dir / SPILL_FOLDER, ignore_errors=True)
    connection.execute(f"SET memory_limit = '{MEMORY_LIMIT}'")
    connection.execute(f"SET temp_directory = {quote_text(str(study_dir / SPILL_FOLDER))}")
    connection.execute("SET preserve_insertion_order = false")


def open_side_engine(spill: Path) -> duckdb.DuckDBPyConnection:
    """Open a DuckDB without a database, outside the transaction of any other.

    Data that do not fit into memory go to the folder `spill`, which DuckDB creates and removes.
    """
    engine = duckdb.connect()
    engine.execute(f"SET memory_limit = '{SIDE_MEMORY_LIMIT}'")
    engine.execute(f"SET temp_directory = {quote_text(str(spill))}")
    engine.execute("SET preserve_insertion_order = false")
    return engine


def close(connection: duckdb.DuckDBPyConnection, study_dir: Path) -> None:
    """Close a connection whose memory was limited, and remove its spill folder."""
    connection.close()
    shutil.rmtree(study_dir / SPILL_FOLDER, ignore_errors=True)


def connect(
    path: Path, *, read_only: bool, known: int = SCHEMA_VERSION
) -> duckdb.DuckDBPyConnection:
    """Return a connection to a database whose schema version is `known`.

    Raises UsageError for another version or a database in use, and MissingError when the file
    cannot be opened.
    """
    check_path(path, read_only=read_only)
    if not read_only:
        remove_incomplete_database(path)
    was_there = path.exists()
    try:
        connection = duckdb.connect(str(path), read_only=read_only)
    except duckdb.IOException as error:
        raise describe_open_error(path, error, was_there) from None
    except duckdb.ConnectionException:
        raise UsageError(
            f"{path} is open in this very process (steelyard.analysis.load): close it first",
            str(path),
        ) from None
    try:
        version = read_schema_version(connection)
        if version is not None:
            check_version(path, version, known)
    except (duckdb.Error, UsageError):
        connection.close()
        raise
    return connection


def check_version(path: Path, version: int, known: int = SCHEMA_VERSION) -> None:
    """Raise UsageError for a database of another schema version."""
    if version != known:
        raise UsageError(
            f"{path} has schema version {version}, this Steelyard knows {known}: use the "
            f"Steelyard that made it, or move it away and collect again",
            str(path),
        )


def check_path(path: Path, *, read_only: bool) -> None:
    """Raise UsageError for a path that DuckDB would misread or block on."""
    if not read_only and (
        UNUSABLE & {*str(path)} or replace_lone_surrogates(str(path)) != str(path)
    ):
        raise UsageError(
            f"{replace_lone_surrogates(str(path))}: DuckDB cannot write a database below a folder whose name has "
            "? or \\ or is not UTF-8: rename the folder",
            replace_lone_surrogates(str(path)),
        )
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise UsageError(f"{path} is no regular file: move it away", str(path))


def describe_open_error(path: Path, error: duckdb.IOException, had_existed: bool) -> Exception:
    """Return the error for a database that cannot be opened."""
    without_locks = locks.is_missing_lock_error(str(error))
    if "lock" in str(error) and not without_locks:
        return InUseError(
            f"{path} is in use by another process (a collect or a report of this study): "
            f"wait for it to end",
            str(path),
        )
    if not had_existed:  # remove a partial header, which the next collect could not read
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)
    if without_locks:
        return MissingError(f"{path} cannot be locked: {locks.NO_LOCKS_ADVICE}")
    if find_errno(error) is not None:
        return describe_write_error(f"{path} cannot be opened", error, path.parent)
    return UsageError(f"{path} cannot be opened: {error}", str(path))


def remove_incomplete_database(path: Path) -> None:
    """Remove a database whose creator was killed before it was complete: DuckDB cannot open it."""
    with contextlib.suppress(FileNotFoundError):
        status = path.stat()
        if status.st_size < HEADERS_BYTES and time.time() - status.st_mtime > MAKING_S:
            path.unlink()


def read_schema_version(connection: duckdb.DuckDBPyConnection) -> int | None:
    """Return the schema version; None: the database is empty.

    This must run outside a transaction, which the error of a missing table would abort.
    """
    try:
        rows = connection.execute("SELECT schema_version FROM meta").fetchall()
    except duckdb.CatalogException:
        return None
    return int(rows[0][0]) if rows else None


def read_table_columns(connection: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    """Return names and types of a table's columns, in order."""
    rows = connection.execute(
        "SELECT column_name, data_type FROM duckdb_columns() "
        "WHERE table_name = ? AND schema_name = 'main' ORDER BY column_index",
        [table],
    ).fetchall()
    return dict(rows)


def replace_rows(
    connection: duckdb.DuckDBPyConnection, table: str, rows: Spool | str, but: str | None = None
) -> None:
    """Replace all rows of a table by a spool or SELECT; attempts in the table `but` keep theirs."""
    others = f" WHERE (run_id, attempt) NOT IN (SELECT run_id, attempt FROM {but})" if but else ""
    connection.execute(f"DELETE FROM {table}{others}")
    select = rows if isinstance(rows, str) else rows.select()
    connection.execute(f"INSERT INTO {table} BY NAME {select}")


def check_keys(connection: duckdb.DuckDBPyConnection) -> None:
    """Raise RuntimeError if a key exists twice, which would be a bug: it must not be committed."""
    for table, key in KEYS.items():
        columns = ", ".join(key)
        doubled = connection.execute(
            f"SELECT {columns} FROM {table} GROUP BY {columns} HAVING count(*) > 1 LIMIT 1"
        ).fetchall()
        if doubled:
            raise RuntimeError(f"table {table} would have the key {doubled[0]} twice")
