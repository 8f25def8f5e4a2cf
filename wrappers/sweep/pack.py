"""A day's files into packs, and out of their folders once they are in one, byte by byte the same."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import BinaryIO, Self

import duckdb

from steelyard.analysis.sources import packed_samples, record_packs
from steelyard.analysis.store.database import side_engine
from steelyard.analysis.store.spool import quote_path
from steelyard.jobscripts.userfiles import read_regular
from steelyard.wrappers.sweep.folders import MOST_BYTES, File, Jobs, by_kind, files_in

SPILL = ".spill"
Access = tuple[int, int]

# Of a pack. It is made in memory, and of the disk if it must.
MOST_FILES = 20_000
PACK_BYTES = 64 << 20
BATCH_BYTES = 16 << 20  # rows on their way into DuckDB
BATCH_FILES = 500
# A group of rows is what a reader of one job reads: of records, and of samples, which lie behind them.
GROUP_BYTES = 2 << 20
COPY = (
    "COPY (FROM files ORDER BY name NOT LIKE '%.json', job_id, name) TO {path} "
    f"(FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE_BYTES {GROUP_BYTES})"
)
COLUMNS = {
    "job_id": "VARCHAR",
    "name": "VARCHAR",
    "node": "VARCHAR",
    "start_unix_s": "BIGINT",
    "cluster": "VARCHAR",
    "uid": "BIGINT",
    "mode": "INTEGER",
    "modified_unix_ns": "BIGINT",
    "changed_unix_ns": "BIGINT",
    "thinned_s": "BIGINT",
    "form": "VARCHAR",
    "content": "BLOB",
}
Row = tuple[object, ...]
Stored = tuple[int | None, str | None, bytes]  # thinned_s, form, content


def pack(day: Path, access: Access, files: Iterator[File], every_s: int | None) -> Iterator[Pack]:
    """Write new packs of a day, of files of the same readers by job; each as soon as it is on the
    disk. OSError: there is no room, and what is not in a pack lies where it lay."""
    file = next(files, None)
    while file is not None:
        with Pack(day, access) as new:
            while file is not None and not new.is_full:
                new.add(file, every_s)
                file = next(files, None)
            new.write()
        yield new


class Pack:
    """A pack on its way: whole under its name, its list of jobs there before it, both on the disk."""

    def __init__(self, day: Path, access: Access) -> None:
        self.folder = record_packs.folder_of(day)
        self.gid, self.mode = access
        for path in (self.folder.parent, self.folder):
            path.mkdir(mode=0o755, exist_ok=True)
        stem = f"pack-{self.gid}-{self.mode:o}"
        number = 1
        while any(
            (self.folder / f"{stem}-{number}{end}").exists() for end in (".parquet", ".jobs")
        ):
            number += 1
        self.path = self.folder / f"{stem}-{number}{record_packs.SUFFIX}"
        self.files = self.bytes = self.thinned = 0
        self.seals: dict[tuple[str, str], bytes] = {}  # by job and name
        self._jobs: set[str] = set()
        self._rows: list[Row] = []
        self._waiting_bytes = 0
        # Not the folder of whoever started it: a unit of systemd has `/`, and may not write there.
        self._engine = side_engine(self.folder / SPILL)
        self._engine.execute("SET threads = 1")
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        self._engine.execute(f"CREATE TABLE files ({columns})")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._engine.close()
        shutil.rmtree(self.folder / SPILL, ignore_errors=True)
        if error is not None:
            for path in self._parts():
                path.unlink(missing_ok=True)

    @property
    def is_full(self) -> bool:
        """No more goes into it."""
        return self.bytes >= PACK_BYTES or self.files >= MOST_FILES

    def add(self, file: File, every_s: int | None) -> None:
        """A file; one that was removed or replaced by no file meanwhile is left out."""
        try:
            content = read_regular(file.path, MOST_BYTES)
        except OSError:
            return
        kept = stored(file.path.name, content, every_s)
        self._rows.append(row(file, cluster_of(content), kept))
        self._jobs.add(file.job_id)
        self.seals[file.job_id, file.path.name] = seal(content, kept[2])
        self.files += 1
        self.thinned += kept[0] is not None
        self.bytes += len(kept[2])
        self._waiting_bytes += len(kept[2])
        if self._waiting_bytes >= BATCH_BYTES or len(self._rows) >= BATCH_FILES:
            self._insert()

    def _insert(self) -> None:
        """What waits into DuckDB."""
        if self._rows:
            unnest = ", ".join(f"unnest(?::{kind}[])" for kind in COLUMNS.values())
            columns = [list(column) for column in zip(*self._rows, strict=True)]
            try:
                self._engine.execute(f"INSERT INTO files SELECT {unnest}", columns)
            except duckdb.Error as error:
                raise unwritten(error, self.path) from None
        self._rows, self._waiting_bytes = [], 0

    def _parts(self) -> tuple[Path, Path]:
        """What it is called before it is whole."""
        return self.path.with_name(f".{self.path.stem}.parquet.tmp"), self.path.with_name(
            f".{self.path.stem}.jobs.tmp"
        )

    def write(self) -> None:
        """Onto the disk; OSError when that cannot be."""
        self._insert()
        made, listing = self._parts()
        copy(self._engine, made)
        with listing.open("wb") as listed:
            listed.write("".join(f"{job_id}\n" for job_id in sorted(self._jobs)).encode())
            settle(listed, -1, 0o444)
        with made.open("rb") as file:
            settle(file, self.gid, self.mode)
        listing.rename(self.path.with_suffix(record_packs.LIST_SUFFIX))
        made.rename(self.path)
        for path in (self.folder, self.folder.parent, self.folder.parent.parent):
            sync_folder(path)


def copy(engine: duckdb.DuckDBPyConnection, path: Path) -> None:
    """The table `files` into a Parquet file; OSError when that cannot be written."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
    try:
        engine.execute(COPY.format(path=quote_path(path)))
    except duckdb.Error as error:
        raise unwritten(error, path) from None


def unwritten(error: duckdb.Error, path: Path) -> OSError:
    """With the number that says of a full disk that it is one."""
    is_full = os.strerror(errno.ENOSPC) in str(error)
    return OSError(errno.ENOSPC if is_full else 0, f"no pack could be written: {error}", str(path))


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


def stored(name: str, content: bytes, every_s: int | None, check: bool = True) -> Stored:
    """A file as a pack has it; `check`: what comes back is the file."""
    if not name.endswith(".csv"):
        return None, None, content
    fewer = None if every_s is None else packed_samples.thinned(content, every_s)
    text, thinned_s = (content, None) if fewer is None else (fewer, every_s)
    columns = packed_samples.encoded(text, check)
    return (thinned_s, None, text) if columns is None else (thinned_s, packed_samples.FORM, columns)


def seal(content: bytes, kept: bytes) -> bytes:
    """Of a file and what a pack has of it, which were found to be the same."""
    return hashlib.sha256(b"%d " % len(content) + content + kept).digest()


def row(file: File, cluster: str | None, kept: Stored) -> Row:
    """Key columns, what the inode tells, and the file."""
    node, _, start = file.path.stem.rpartition(".")
    status = file.status
    number = int(start) if start.isdigit() and len(start) < 19 else None
    return (
        file.job_id, file.path.name, node, number, cluster, status.st_uid,
        status.st_mode & 0o7777, status.st_mtime_ns, status.st_ctime_ns, *kept,
    )  # fmt: skip


def cluster_of(content: bytes) -> str | None:
    """`job.cluster` of a record."""
    found = re.search(rb'"cluster": "([^"\\]{1,200})"', content[:65536])
    return found[1].decode("utf-8", "replace") if found else None


def by_access(record_dir: Path, files: Iterable[File]) -> dict[Access, list[str]]:
    """Jobs' folders below the folder of records by who may read their files, as they come."""
    found: dict[Access, list[str]] = defaultdict(list)
    for file in files:
        folder = str(file.path.parent.relative_to(record_dir))
        if found[file.access][-1:] != [folder]:
            found[file.access].append(folder)
    return found


def of_access(record_dir: Path, folders: Iterable[str], access: Access) -> Iterator[File]:
    """The files of jobs that are over, as far as these may read them."""
    for name in folders:
        folder = record_dir / name
        files = by_kind(folder, files_in(folder)).packed
        yield from (file for file in files if file.access == access)


def remove_packed(
    one: Path,
    jobs: Jobs,
    day: Path,
    among: Iterable[str] = (),
    seals: Mapping[tuple[str, str], bytes] = MappingProxyType({}),
) -> tuple[int, int]:
    """Remove files that lie in a pack of a day as they are; jobs' folders and files removed.

    `seals`: of the sweep that has just made it."""
    seen, files = set(), 0
    for file in record_packs.files(one, list(among)):
        for folder in (day / file.job_id, jobs.record_dir / file.job_id):
            files += remove_same(folder / file.name, file, seals.get((file.job_id, file.name)))
            seen.add(folder)
    return sum(map(remove_empty, seen)), files


def remove_same(path: Path, packed: record_packs.Packed, sealed: bytes | None) -> bool:
    """Remove a file that was packed so: no other has this name by now."""
    try:
        content = read_regular(path, MOST_BYTES)
        if sealed != seal(content, packed.stored) and not is_stored_so(path.name, content, packed):
            return False
        path.unlink()
    except OSError:
        return False
    return True


def is_stored_so(name: str, content: bytes, packed: record_packs.Packed) -> bool:
    """Whether what is made of a file is what the pack has: takes as long as packing it."""
    kept = packed.thinned_s, packed.form, packed.stored
    return stored(name, content, packed.thinned_s, check=False) == kept


def remove_empty(folder: Path) -> bool:
    """Remove a folder that has nothing left in it."""
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
