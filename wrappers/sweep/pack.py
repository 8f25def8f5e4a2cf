"""A day's files into packs, and out of their folders once they are in one, byte by byte the same."""

from __future__ import annotations

import errno
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import duckdb

from steelyard.analysis.sources import record_packs
from steelyard.analysis.store.spool import quote_path
from steelyard.jobscripts.userfiles import read_regular
from steelyard.wrappers.sweep.folders import MOST_BYTES, File

MOST_FILES = 20_000  # of a pack
AT_ONCE = 500  # rows on their way into DuckDB
# A group of rows is what a reader of one job reads.
COPY = "COPY files TO {path} (FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 2048)"
COLUMNS = (
    "job_id VARCHAR, name VARCHAR, node VARCHAR, start_unix_s BIGINT, cluster VARCHAR, uid BIGINT, "
    "mode INTEGER, modified_unix_ns BIGINT, changed_unix_ns BIGINT, content BLOB"
)


def pack(day: Path, files: Iterable[File]) -> int:
    """Write new packs of a day; their number. OSError: there is no room, and nothing has changed."""
    by_access: dict[tuple[int, int], list[File]] = defaultdict(list)
    for file in files:
        by_access[file.access].append(file)
    made = 0
    for access, mine in sorted(by_access.items()):
        mine.sort(key=lambda file: (file.job_id, file.path.name))
        for part in parts(mine):
            write_pack(day, access, part)
            made += 1
    return made


def parts(files: Sequence[File]) -> Iterator[Sequence[File]]:
    """Of no more than MOST_FILES, where a job does not have more."""
    begin = 0
    while begin < len(files):
        end = min(begin + MOST_FILES, len(files))
        while end < len(files) and files[end].job_id == files[end - 1].job_id:
            end += 1
        yield files[begin:end]
        begin = end


def write_pack(day: Path, access: tuple[int, int], files: Sequence[File]) -> None:
    """One pack: whole under its name, its list of jobs there before it, both on the disk."""
    folder = record_packs.folder_of(day)
    for path in (folder.parent, folder):
        path.mkdir(mode=0o755, exist_ok=True)
    gid, mode = access
    stem = f"pack-{gid}-{mode:o}"
    number = 1
    while any((folder / f"{stem}-{number}{end}").exists() for end in (".parquet", ".jobs")):
        number += 1
    made, listing = (folder / f".{stem}-{number}.{kind}.tmp" for kind in ("parquet", "jobs"))
    try:
        copy(files, made)
        jobs = "".join(f"{job_id}\n" for job_id in sorted({file.job_id for file in files}))
        with listing.open("wb") as listed:
            listed.write(jobs.encode())
            settle(listed, -1, 0o444)
        with made.open("rb") as file:
            settle(file, gid, mode)
        listing.rename(folder / f"{stem}-{number}.jobs")
        made.rename(folder / f"{stem}-{number}.parquet")
    except BaseException:
        for path in (made, listing):
            path.unlink(missing_ok=True)
        raise
    for path in (folder, folder.parent, folder.parent.parent):
        sync_folder(path)


def settle(file: BinaryIO, gid: int, mode: int) -> None:
    """Its readers, and all of it on the disk."""
    file.flush()
    os.fchown(file.fileno(), -1, gid)
    os.fchmod(file.fileno(), mode)
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """The names in it, too."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def copy(files: Sequence[File], path: Path) -> None:
    """The files into a Parquet file; OSError when that cannot be written."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
    try:
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.execute(f"CREATE TABLE files ({COLUMNS})")
            for begin in range(0, len(files), AT_ONCE):
                insert(connection, files[begin : begin + AT_ONCE])
            connection.execute(COPY.format(path=quote_path(path)))
    except duckdb.Error as error:
        is_full = os.strerror(errno.ENOSPC) in str(error)
        code = errno.ENOSPC if is_full else 0
        raise OSError(code, f"no pack could be written: {error}", str(path)) from None


def insert(connection: duckdb.DuckDBPyConnection, files: Sequence[File]) -> None:
    """Rows of a pack; what was removed or replaced by no file meanwhile is left out."""
    columns: list[list[object]] = [[] for _ in COLUMNS.split(", ")]
    for file in files:
        try:
            content = read_regular(file.path, MOST_BYTES)
        except OSError:
            continue
        for column, value in zip(columns, row(file, content), strict=True):
            column.append(value)
    kinds = (kind.split()[1] for kind in COLUMNS.split(", "))
    unnest = ", ".join(f"unnest(?::{kind}[])" for kind in kinds)
    connection.execute(f"INSERT INTO files SELECT {unnest}", columns)


def row(file: File, content: bytes) -> tuple[object, ...]:
    """Key columns, and the file as it is."""
    node, _, start = file.path.stem.rpartition(".")
    status = file.status
    number = int(start) if start.isdigit() and len(start) < 19 else None
    return (
        file.job_id, file.path.name, node, number, cluster_of(content), status.st_uid,
        status.st_mode & 0o7777, status.st_mtime_ns, status.st_ctime_ns, content,
    )  # fmt: skip


def cluster_of(content: bytes) -> str | None:
    """`job.cluster` of a record."""
    found = re.search(rb'"cluster": "([^"\\]{1,200})"', content[:65536])
    return found[1].decode("utf-8", "replace") if found else None


def remove_packed(day: Path, folders: Sequence[Path]) -> tuple[int, int]:
    """Remove files that lie in a pack of the day as they are; jobs' folders and files removed."""
    by_job: dict[str, list[Path]] = defaultdict(list)
    for folder in folders:
        by_job[folder.name].append(folder)
    files, seen = 0, set()
    for one in record_packs.packs_of(day):
        mine = [job_id for job_id in record_packs.job_ids(one) if job_id in by_job]
        seen.update(mine)
        for job_id, name, content in (
            record_packs.rows(one, "job_id, name, content", mine) if mine else ()
        ):
            for folder in by_job[str(job_id)]:
                files += remove_same(folder / str(name), content)
    return sum(remove_empty(folder) for job_id in seen for folder in by_job[job_id]), files


def remove_same(path: Path, content: object) -> bool:
    """Remove a file that has this content and no other."""
    try:
        if read_regular(path, MOST_BYTES) != content:
            return False
        path.unlink()
    except OSError:
        return False
    return True


def remove_empty(folder: Path) -> bool:
    """Remove a folder that has nothing left in it."""
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
