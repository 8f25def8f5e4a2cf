"""Reads packs: a day's old records as Parquet, made by `steelyard sweep` (docs/formats.md part 1).

RECORD_DIR/YYYY-MM/DD.packs/records-GID-MODE-N.parquet has a row for each record, and
samples-GID-MODE-N.parquet next to it a row for each of their samples. records-GID-MODE-N.jobs has
the ids of its jobs, a line each, which any user may read. The file of records is renamed into place
last: a pack is valid when that file and its list exist. Each file of a job is restored byte for
byte.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis.base import locks
from steelyard.analysis.sources import sample_packs
from steelyard.analysis.store.row_files import escape_pattern, quote_path

if TYPE_CHECKING:
    import duckdb

SUFFIX, LIST_SUFFIX = ".parquet", ".jobs"
RECORDS, SAMPLES = "records-", "samples-"  # prefixes of the names of a pack's two files
FORMAT_VERSION = 1
ROWS_AT_ONCE = 64  # of records, while a pack is read
LINES_AT_ONCE = 100_000  # of samples
SCRATCH, SCRATCH_LOCK = "steelyard-packs-", ".lock"
_LOCK = threading.Lock()


def pack_folder(day: Path) -> Path:
    """Return the folder of a day's packs, next to the day's folder of unpacked jobs."""
    return day.with_name(f"{day.name}.packs")


def list_packs(day: Path) -> list[Path]:
    """Return a day's valid packs, the newest last."""
    try:
        names = {entry.name for entry in os.scandir(pack_folder(day))}
    except OSError:
        return []
    packs = sorted((n for n in names if n.startswith(RECORDS) and n.endswith(SUFFIX)), key=sort_key)
    there = [pack_folder(day) / name for name in packs]
    return [pack for pack in there if pack.with_suffix(LIST_SUFFIX).name in names]


def sort_key(name: str) -> tuple[int, str]:
    """Return a key that sorts a day's packs of the same readers by age."""
    word = name.removesuffix(SUFFIX).rpartition("-")[2]
    return int(word) if word.isdigit() else 0, name


def samples_path(pack: Path) -> Path:
    """Return the file of samples of a pack's records; it does not exist if none has samples."""
    return pack.with_name(SAMPLES + pack.name.removeprefix(RECORDS))


def pack_files(pack: Path) -> tuple[Path, Path, Path]:
    """Return the possible files of a pack.

    The first makes it valid: written last, removed first.
    """
    return pack, samples_path(pack), pack.with_suffix(LIST_SUFFIX)


def list_job_ids(pack: Path) -> list[str]:
    """Return the ids of the jobs with files in the pack; [] if the pack was removed."""
    try:
        return pack.with_suffix(LIST_SUFFIX).read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []


def find_packs(day: Path, job_id: str) -> list[Path]:
    """Return a day's packs that have files of a job."""
    found = []
    for pack in list_packs(day):
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            text = b"\n" + pack.with_suffix(LIST_SUFFIX).read_bytes()
            if b"\n" + os.fsencode(job_id) + b"\n" in text:
                found.append(pack)
    return found


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a job in a pack, with its inode's fields (for samples only a time)."""

    job_id: str
    name: str
    content: bytes
    modified_unix_ns: int
    changed_unix_ns: int = 0
    uid: int = 0
    mode: int = 0
    thinned_s: int | None = None  # seconds between its lines; None: complete


KEYS = {"format_version": "INTEGER", **sample_packs.KEYS}
# Columns of records-*.parquet that restore the files; NULL: there is no such file.
OF_RECORD = {
    "uid": "BIGINT",
    "mode": "INTEGER",
    "modified_unix_ns": "BIGINT",
    "changed_unix_ns": "BIGINT",
    "record": "VARCHAR",
    "record_rest": "BLOB",  # of a record that is no UTF-8
}
OF_SAMPLES = {
    "samples_modified_unix_ns": "BIGINT",
    "samples_header": "VARCHAR",
    "samples_lines": "BIGINT",
    "samples_rest": "BLOB",
    "thinned_s": "BIGINT",
}
# Their descriptions in docs/formats.md. The others are columns of the table `records` of a study.
MEANINGS = {
    "format_version": "1",
    "job_id": "as in the path",
    "node": "as in the path",
    "start_unix_s": "as in the path",
    "cluster": "`job.cluster` of the record",
    "uid": "of the record's inode; NULL: samples only",
    "mode": "of the record's inode",
    "modified_unix_ns": "of the record's inode",
    "changed_unix_ns": "of the record's inode",
    "record": "the record to the byte",
    "record_rest": "the record, where it is not UTF-8",
    "samples_modified_unix_ns": "of the samples' file; NULL: none",
    "samples_header": "its first line; NULL: rows cannot rebuild the file",
    "samples_lines": "its rows",
    "samples_rest": "a truncated last line; where samples_header is NULL the complete file",
    "thinned_s": "of thinned samples (part 2)",
}


@functools.cache
def open_connection() -> duckdb.DuckDBPyConnection:
    """Return this process's one connection, since readers open many packs."""
    from steelyard.analysis.store.database import open_side_engine

    found = open_side_engine(Path(make_scratch_folder(), "spill"))
    found.execute("SET threads = 1; SET memory_limit = '4GB'")
    return found


def read_files(
    pack: Path, among: Collection[str] = (), records_only: bool = False
) -> Iterator[PackedFile]:
    """Yield the files in a pack, each record before its samples.

    `among`: only of these jobs, if any are given. Raises OSError when a file cannot be read.
    """
    import duckdb

    with pack.open("rb"):  # raises an OSError with an errno, which DuckDB's errors lack
        pass
    columns = (*KEYS, *OF_RECORD) if records_only else (*KEYS, *OF_RECORD, *OF_SAMPLES)
    where, values = "true", list[object]([escape_pattern(pack)])
    if among:  # rows are sorted by job: with bounds DuckDB skips row groups
        where = "job_id BETWEEN ? AND ? AND job_id IN (SELECT unnest(?))"
        values += [min(among), max(among), list(among)]
    with _LOCK:
        cursor, of_samples = open_connection().cursor(), open_connection().cursor()
    try:
        cursor.execute(f"SELECT {', '.join(columns)} FROM read_parquet(?) WHERE {where}", values)
        while found := cursor.fetchmany(ROWS_AT_ONCE):
            rows = [dict(zip(columns, row, strict=True)) for row in found]
            yield from make_records(rows)
            if not records_only:
                for some in split_into_batches(rows):
                    yield from read_samples(pack, some, of_samples)
    except (duckdb.Error, ValueError) as error:
        raise OSError(0, f"no pack that can be read: {error}", str(pack)) from None
    finally:
        cursor.close()
        of_samples.close()


def make_records(rows: Iterable[Mapping[str, Any]]) -> Iterator[PackedFile]:
    """Yield the record of each row that has one."""
    for row in rows:
        if row["format_version"] != FORMAT_VERSION:
            raise ValueError(f"its format is {row['format_version']}: use a newer Steelyard")
        if row["modified_unix_ns"] is not None:
            text, rest = row["record"], row["record_rest"]
            yield PackedFile(
                row["job_id"], f"{row['node']}.{row['start_unix_s']}.json",
                rest if text is None else text.encode(), row["modified_unix_ns"],
                row["changed_unix_ns"], row["uid"], row["mode"],
            )  # fmt: skip


def split_into_batches(rows: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """Yield the rows that have samples, in batches of about LINES_AT_ONCE lines."""
    some, lines = list[Mapping[str, Any]](), 0
    for row in rows:
        if row["samples_modified_unix_ns"] is not None:
            some.append(row)
            lines += row["samples_lines"]
        if lines >= LINES_AT_ONCE:
            yield some
            some, lines = [], 0
    yield some


def read_samples(
    pack: Path, rows: Sequence[Mapping[str, Any]], cursor: duckdb.DuckDBPyConnection
) -> Iterator[PackedFile]:
    """Yield the samples of these rows."""
    keys = [(row["job_id"], row["node"], row["start_unix_s"]) for row in rows]
    frames = [
        sample_packs.Frame(
            row["samples_header"], row["samples_lines"], row["thinned_s"], row["samples_rest"]
        )
        for row in rows
    ]
    table = f"read_parquet({quote_path(samples_path(pack))})"
    contents = sample_packs.read_texts(cursor, table, keys, frames)
    for row, frame, content in zip(rows, frames, contents, strict=True):
        name = f"{row['node']}.{row['start_unix_s']}.csv"
        modified = row["samples_modified_unix_ns"]
        yield PackedFile(row["job_id"], name, content, modified, thinned_s=frame.thinned_s)


@functools.cache
def make_scratch_folder() -> str:
    """Return this process's folder for unpacked files. Its forks do not remove it.

    The lock in it is kept until the process and its forks have ended in any way.
    """
    remove_stale_scratch()
    folder, mine = tempfile.mkdtemp(prefix=SCRATCH), os.getpid()
    fd = os.open(f"{folder}/{SCRATCH_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system may have no locks
        locks.lock_file(fd)

    def remove() -> None:
        if os.getpid() == mine:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def remove_stale_scratch() -> None:
    """Remove the folders of this user's killed processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        try:
            fd = os.open(folder / SCRATCH_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # another user's, or just created
            continue
        try:
            if os.fstat(fd).st_uid == os.geteuid():
                locks.lock_file(fd)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its process lives, or locks are not supported
            pass
        finally:
            os.close(fd)


def unpack(pack: Path, job_id: str, but: Collection[str] = ()) -> Path:
    """Unpack a job's files into a new folder with the job's name, except the names in `but`.

    Returns the pack itself, in which no file is found, if it cannot be read.
    """
    folder = Path(tempfile.mkdtemp(dir=make_scratch_folder())) / job_id
    try:
        for file in read_files(pack, [job_id]):
            if file.name not in but and Path(file.name).name == file.name:
                write_file(folder / file.name, file.content, file.modified_unix_ns)
    except OSError:
        return pack
    return folder


def write_file(path: Path, content: bytes, modified_unix_ns: int) -> None:
    """Write a file with its modification time, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{threading.get_ident()}")
    temporary.write_bytes(content)
    os.utime(temporary, ns=(modified_unix_ns, modified_unix_ns))
    temporary.replace(path)
