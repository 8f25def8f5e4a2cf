"""Packs: a day's old records as Parquet, docs/formats.md part 1; made by `steelyard sweep`.

RECORD_DIR/YYYY-MM/DD.packs/pack-GID-MODE-N.parquet has the bytes of every file of jobs, and beside
it pack-GID-MODE-N.jobs their ids, a line each, which anybody may read. A pack without its list does
not count: it was not finished.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import shutil
import tempfile
import threading
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.store.spool import no_pattern

if TYPE_CHECKING:
    import duckdb

SUFFIX, LIST_SUFFIX = ".parquet", ".jobs"
_LOCK = threading.Lock()


def folder_of(day: Path) -> Path:
    """Where a day's packs lie: beside its folder, which has a name for each job not packed."""
    return day.with_name(f"{day.name}.packs")


def packs_of(day: Path) -> list[Path]:
    """A day's packs that count, the newest last."""
    try:
        names = {entry.name for entry in os.scandir(folder_of(day))}
    except OSError:
        return []
    packs = sorted((n for n in names if n.endswith(SUFFIX) and not n.startswith(".")), key=number)
    there = [folder_of(day) / name for name in packs]
    return [pack for pack in there if pack.with_suffix(LIST_SUFFIX).name in names]


def number(name: str) -> tuple[int, str]:
    """Sorts a day's packs as they were made, as far as they are of the same readers."""
    word = name.removesuffix(SUFFIX).rpartition("-")[2]
    return int(word) if word.isdigit() else 0, name


def job_ids(pack: Path) -> list[str]:
    """Of the jobs that have files in it; [] when it is gone by now."""
    try:
        return pack.with_suffix(LIST_SUFFIX).read_text(encoding="utf-8").split("\n")[:-1]
    except FileNotFoundError:
        return []


def packs_with(day: Path, job_id: str) -> list[Path]:
    """A day's packs that have files of a job."""
    found = []
    for pack in packs_of(day):
        with contextlib.suppress(FileNotFoundError):  # removed meanwhile
            text = b"\n" + pack.with_suffix(LIST_SUFFIX).read_bytes()
            if b"\n" + os.fsencode(job_id) + b"\n" in text:
                found.append(pack)
    return found


@dataclass(frozen=True, slots=True)
class Packed:
    """A file in a pack, and what its inode told when it was packed."""

    job_id: str
    name: str
    uid: int
    mode: int
    modified_unix_ns: int
    changed_unix_ns: int
    thinned_s: int | None  # so many seconds lie between its lines; None: it is whole
    form: str | None  # how it is stored; None: as it was
    stored: bytes

    @property
    def content(self) -> bytes:
        """The file; OSError where it is damaged, or in a form that this version does not know."""
        if self.form is None:
            return self.stored
        from steelyard.analysis.sources import packed_samples

        if self.form != packed_samples.FORM:
            raise OSError(
                0, f"{self.name} is packed as {self.form}: use a newer Steelyard", self.name
            )
        try:
            return packed_samples.decoded(self.stored)
        except ValueError as error:
            raise OSError(0, f"{self.name} is damaged in its pack: {error}", self.name) from None


COLUMNS = "job_id, name, uid, mode, modified_unix_ns, changed_unix_ns, thinned_s, form, content"
RECORDS = "name LIKE '%.json'"  # and no samples


@functools.cache
def connection() -> duckdb.DuckDBPyConnection:
    """One for the process: readers look at many packs."""
    from steelyard.analysis.store.database import side_engine

    found = side_engine(Path(scratch(), "spill"))
    found.execute("SET threads = 1; SET memory_limit = '4GB'")
    return found


def files(pack: Path, among: Collection[str] = (), only: str = "true") -> Iterator[Packed]:
    """The files in a pack, of the jobs `among` if any are given, and of what `only` says in SQL;
    OSError when it cannot be read. One at a time is in memory, and its group of rows."""
    import duckdb

    with pack.open("rb"):  # DuckDB's own words tell no errno
        pass
    with _LOCK:
        cursor = connection().cursor()
    where = only
    values: list[object] = [no_pattern(pack)]
    if among:  # the bounds spare groups of rows, which are sorted by job
        where += " AND job_id BETWEEN ? AND ? AND job_id IN (SELECT unnest(?))"
        values += [min(among), max(among), list(among)]
    try:
        found = cursor.execute(f"SELECT {COLUMNS} FROM read_parquet(?) WHERE {where}", values)
        while row := found.fetchone():
            yield Packed(*row)
    except duckdb.Error as error:
        raise OSError(0, f"no pack that can be read: {error}", str(pack)) from None
    finally:
        cursor.close()


@functools.cache
def scratch() -> str:
    """Where files out of packs lie as long as this process lives; its forks leave it alone."""
    folder, mine = tempfile.mkdtemp(prefix="steelyard-packs-"), os.getpid()

    def remove() -> None:
        if os.getpid() == mine:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


def unpack(pack: Path, job_id: str, but: Collection[str] = ()) -> Path:
    """A folder of the job's name with its files out of the pack, but those that lie elsewhere yet.

    The pack itself, in which no file is found, where it cannot be read here.
    """
    folder = Path(tempfile.mkdtemp(dir=scratch())) / job_id
    try:
        for file in files(pack, [job_id]):
            if file.name not in but and Path(file.name).name == file.name:
                write(folder / file.name, file.content, file.modified_unix_ns)
    except OSError:
        return pack
    return folder


def write(path: Path, content: bytes, modified_unix_ns: int) -> None:
    """A file as it was, its time included, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{threading.get_ident()}")
    part.write_bytes(content)
    os.utime(part, ns=(modified_unix_ns, modified_unix_ns))
    part.replace(path)
