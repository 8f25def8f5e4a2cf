"""Packs: a day's old records as Parquet, docs/formats.md part 1; made by `steelyard sweep`.

RECORD_DIR/YYYY-MM/DD.packs/records-GID-MODE-N.parquet has a row for each record, and
samples-GID-MODE-N.parquet beside it a row for each of their samples. records-GID-MODE-N.jobs has the
ids of its jobs, a line each, which anybody may read. The file of records is renamed into place last: a
pack counts when that file and its list exist. Each file of a job comes back out of a pack to the byte.
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
from steelyard.analysis.sources import packed_samples
from steelyard.analysis.store.spool import escape_pattern, quote_path

if TYPE_CHECKING:
    import duckdb

SUFFIX, LIST_SUFFIX = ".parquet", ".jobs"
RECORDS, SAMPLES = "records-", "samples-"  # how the names of the two files of a pack begin
FORMAT_VERSION = 1
ROWS_AT_ONCE = 64  # of records, while a pack is read
LINES_AT_ONCE = 100_000  # of samples
SCRATCH, SCRATCH_LOCK = "steelyard-packs-", ".lock"
_LOCK = threading.Lock()


def pack_folder(day: Path) -> Path:
    """Where a day's packs lie: beside its folder, which has a name for each job not packed."""
    return day.with_name(f"{day.name}.packs")


def list_packs(day: Path) -> list[Path]:
    """A day's packs that count, the newest last."""
    try:
        names = {entry.name for entry in os.scandir(pack_folder(day))}
    except OSError:
        return []
    packs = sorted((n for n in names if n.startswith(RECORDS) and n.endswith(SUFFIX)), key=sort_key)
    there = [pack_folder(day) / name for name in packs]
    return [pack for pack in there if pack.with_suffix(LIST_SUFFIX).name in names]


def sort_key(name: str) -> tuple[int, str]:
    """Sorts a day's packs as they were made, as far as they are of the same readers."""
    word = name.removesuffix(SUFFIX).rpartition("-")[2]
    return int(word) if word.isdigit() else 0, name


def samples_path(pack: Path) -> Path:
    """The samples of a pack's records; there is no such file where none of them has any."""
    return pack.with_name(SAMPLES + pack.name.removeprefix(RECORDS))


def pack_files(pack: Path) -> tuple[Path, Path, Path]:
    """The files that a pack can have. The first one makes it count: written last, removed first."""
    return pack, samples_path(pack), pack.with_suffix(LIST_SUFFIX)


def list_job_ids(pack: Path) -> list[str]:
    """Of the jobs that have files in it; [] when it is gone by now."""
    try:
        return pack.with_suffix(LIST_SUFFIX).read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []


def find_packs(day: Path, job_id: str) -> list[Path]:
    """A day's packs that have files of a job."""
    found = []
    for pack in list_packs(day):
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            text = b"\n" + pack.with_suffix(LIST_SUFFIX).read_bytes()
            if b"\n" + os.fsencode(job_id) + b"\n" in text:
                found.append(pack)
    return found


@dataclass(frozen=True, slots=True)
class PackedFile:
    """A file of a job in a pack, and its inode when it was packed; that of samples has only a time."""

    job_id: str
    name: str
    content: bytes
    modified_unix_ns: int
    changed_unix_ns: int = 0
    uid: int = 0
    mode: int = 0
    thinned_s: int | None = None  # so many seconds are between its lines; None: it is complete


KEYS = {"format_version": "INTEGER", **packed_samples.KEYS}
# The columns of records-*.parquet that give the files back; NULL: there is no such file.
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
# What docs/formats.md has of them; the others are columns of the table `records` of a study.
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
    """One for the process: readers look at many packs."""
    from steelyard.analysis.store.database import open_side_engine

    found = open_side_engine(Path(make_scratch_folder(), "spill"))
    found.execute("SET threads = 1; SET memory_limit = '4GB'")
    return found


def read_files(
    pack: Path, among: Collection[str] = (), records_only: bool = False
) -> Iterator[PackedFile]:
    """The files in a pack, of the jobs `among` if any are given, each record before its samples;
    OSError when one cannot be read."""
    import duckdb

    with pack.open("rb"):  # DuckDB's own messages have no errno
        pass
    columns = (*KEYS, *OF_RECORD) if records_only else (*KEYS, *OF_RECORD, *OF_SAMPLES)
    where, values = "true", list[object]([escape_pattern(pack)])
    if among:  # rows are sorted by job: the bounds spare groups of rows
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
    """The record of each row that has one."""
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
    """The rows that have samples, in parts of some LINES_AT_ONCE lines."""
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
    """The samples of these rows."""
    keys = [(row["job_id"], row["node"], row["start_unix_s"]) for row in rows]
    frames = [
        packed_samples.Frame(
            row["samples_header"], row["samples_lines"], row["thinned_s"], row["samples_rest"]
        )
        for row in rows
    ]
    table = f"read_parquet({quote_path(samples_path(pack))})"
    contents = packed_samples.read_texts(cursor, table, keys, frames)
    for row, frame, content in zip(rows, frames, contents, strict=True):
        name = f"{row['node']}.{row['start_unix_s']}.csv"
        modified = row["samples_modified_unix_ns"]
        yield PackedFile(row["job_id"], name, content, modified, thinned_s=frame.thinned_s)


@functools.cache
def make_scratch_folder() -> str:
    """Where files out of packs lie as long as this process lives; its forks leave it alone.

    The lock in it is held until the process and its forks have ended, however they end.
    """
    remove_stale_scratch()
    folder, mine = tempfile.mkdtemp(prefix=SCRATCH), os.getpid()
    fd = os.open(f"{folder}/{SCRATCH_LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with contextlib.suppress(OSError):  # a file system without locks
        locks.lock_file(fd)

    def remove() -> None:
        if os.getpid() == mine:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def remove_stale_scratch() -> None:
    """Folders of this user's processes that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{SCRATCH}*"):
        try:
            fd = os.open(folder / SCRATCH_LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # another's, or made just now
            continue
        try:
            if os.fstat(fd).st_uid == os.geteuid():
                locks.lock_file(fd)
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # its process lives, or there are no locks
            pass
        finally:
            os.close(fd)


def unpack(pack: Path, job_id: str, but: Collection[str] = ()) -> Path:
    """A folder of the job's name with its files out of the pack, but those that lie elsewhere yet.

    The pack itself, in which no file is found, where it cannot be read here.
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
    """A file as it was, its time included, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{threading.get_ident()}")
    part.write_bytes(content)
    os.utime(part, ns=(modified_unix_ns, modified_unix_ns))
    part.replace(path)
