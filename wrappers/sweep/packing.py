"""Packs a day's files into Parquet, and removes the loose files that a pack reproduces byte by
byte."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import stat
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO, Self

import duckdb

from steelyard.analysis.sources import record_packs, records, sample_packs
from steelyard.analysis.sources.sample_packs import Frame, SampleTable, split_file
from steelyard.analysis.store.database import open_side_engine
from steelyard.analysis.store.row_files import quote_path, replace_lone_surrogates
from steelyard.jobscripts.regular_files import read_regular
from steelyard.wrappers.sweep.record_files import (
    MOST_BYTES,
    PACKED_KINDS,
    File,
    Jobs,
    list_files,
    parse_name,
    separate_kinds,
)

SPILL = ".spill"
Access = tuple[int, int]
Name = tuple[str, str]  # job id and file name

# A pack is built in memory; DuckDB spills to disk what memory cannot hold.
MOST_FILES = 20_000
MOST_LINES = 1_000_000  # of samples
MOST_COLUMNS = 300  # of samples; a pack with as many takes no more files
PACK_BYTES = 64 << 20  # of records, and of text that is not stored as rows
BATCH_BYTES = 16 << 20  # of files that wait for DuckDB
BATCH_STARTS, BATCH_LINES = 250, 250_000
# A row group is the unit that a reader of one job reads.
RECORDS_GROUP_BYTES = 2 << 20
SAMPLES_GROUP_ROWS = 20_480
# Version 2 of Parquet has the delta encodings.
PARQUET = "FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2"
COPY_RECORDS = (
    "COPY (FROM records ORDER BY job_id, node, start_unix_s) TO {path} "
    f"({PARQUET}, ROW_GROUP_SIZE_BYTES {RECORDS_GROUP_BYTES})"
)
COPY_SAMPLES = f"COPY samples TO {{path}} ({PARQUET}, ROW_GROUP_SIZE {SAMPLES_GROUP_ROWS})"
KINDS = {"bool": "BOOLEAN", "text": "VARCHAR", "int": "BIGINT", "float": "DOUBLE"}
# Columns of the document, as in the table `records`, for readers of a pack without Steelyard.
OF_DOCUMENT = {
    "cluster": "VARCHAR",
    **{
        name: KINDS[kind]
        for name, (_, kind) in records.COLUMNS.items()
        if name not in sample_packs.KEYS
    },
}
COLUMNS = record_packs.KEYS | OF_DOCUMENT | record_packs.OF_RECORD | record_packs.OF_SAMPLES
Row = dict[str, object]


@dataclass(frozen=True, slots=True)
class Start:
    """The files of one start of a job on a node, and their bytes."""

    key: sample_packs.Key
    record: tuple[File, bytes] | None
    samples: tuple[File, bytes] | None

    @property
    def files(self) -> list[tuple[File, bytes]]:
        """Return the files that exist, with their bytes."""
        return [one for one in (self.record, self.samples) if one is not None]


def list_starts(folder: Path, access: Access) -> Iterator[Start]:
    """Yield the files, by start, of a job that has ended, as far as they have this access. Only one
    start is in memory at a time."""
    found: dict[sample_packs.Key, dict[str, File]] = defaultdict(dict)
    for file in separate_kinds(folder, list_files(folder)).packed:
        named = parse_name(file.path)
        if file.access == access and named is not None:
            found[file.job_id, *named][file.path.suffix] = file
    for key in sorted(found):
        yield Start(key, *(read_file(found[key].get(suffix)) for suffix in PACKED_KINDS))


def read_file(file: File | None) -> tuple[File, bytes] | None:
    """Return a file with its bytes; None if there is no file, or if it cannot be read any
    longer."""
    with contextlib.suppress(OSError):
        return None if file is None else (file, read_regular(file.path, MOST_BYTES))
    return None


def pack_day(
    day: Path, access: Access, starts: Iterator[Start], every_s: int | None
) -> Iterator[Pack]:
    """Write new packs of a day, with files of the same access in the order of jobs, and yield each
    when it is on disk. Raises OSError if a pack cannot be written; files that are in no pack stay
    in their folders."""
    start = next(starts, None)
    while start is not None:
        with Pack(day, access, every_s) as new:
            while start is not None and not new.is_full:
                new.add(start)
                start = next(starts, None)
            if new.seals:
                new.write()
        yield new


class Pack:
    """A pack under construction. Its files get their names when all of them are on disk."""

    def __init__(self, day: Path, access: Access, every_s: int | None) -> None:
        self.folder = record_packs.pack_folder(day)
        self.gid, self.mode = access
        self.every_s = every_s
        for path in (self.folder.parent, self.folder):
            path.mkdir(mode=0o755, exist_ok=True)
        self.path = self._free_name()
        self.bytes = self.thinned = 0
        self.seals: dict[Name, bytes] = {}  # SHA-256 of each file's bytes when it was read
        self._waiting: list[Start] = []
        self._waiting_bytes = self._waiting_lines = 0
        # Spill next to the pack, not in the working folder: a systemd unit has `/`, and may not
        # write there.
        self._engine = open_side_engine(self.folder / SPILL)
        self._engine.execute("SET threads = 1")
        columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
        self._engine.execute(f"CREATE TABLE records ({columns})")
        self._samples = SampleTable(self._engine)

    def _free_name(self) -> Path:
        """Return the path of the records, with the first number that no pack of this access has."""
        number = 1
        while True:
            name = f"{record_packs.RECORDS}{self.gid}-{self.mode:o}-{number}{record_packs.SUFFIX}"
            path = self.folder / name
            if not any(one.exists() for one in record_packs.pack_files(path)):
                return path
            number += 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        self._engine.close()
        shutil.rmtree(self.folder / SPILL, ignore_errors=True)
        if error is not None:
            for path in self._parts().values():
                path.unlink(missing_ok=True)

    @property
    def is_full(self) -> bool:
        """Whether the pack takes no more files."""
        return (
            len(self.seals) >= MOST_FILES
            or self._samples.rows >= MOST_LINES
            or len(self._samples.columns) >= MOST_COLUMNS
            or self.bytes >= PACK_BYTES
        )

    def add(self, start: Start) -> None:
        """Add a start's files. If the pack has one of their names already, they wait for the next
        sweep."""
        names = {(file.job_id, file.path.name): content for file, content in start.files}
        if not names or names.keys() & self.seals.keys():
            return
        self.seals |= {name: make_seal(content) for name, content in names.items()}
        self._waiting.append(start)
        self.bytes += len(start.record[1]) if start.record else 0
        self._waiting_bytes += sum(map(len, names.values()))
        self._waiting_lines += start.samples[1].count(b"\n") if start.samples else 0
        if (
            len(self._waiting) >= BATCH_STARTS
            or self._waiting_bytes >= BATCH_BYTES
            or self._waiting_lines >= BATCH_LINES
        ):
            self._insert()

    def _insert(self) -> None:
        """Insert the waiting starts into DuckDB. Raises OSError if that fails."""
        starts, self._waiting = self._waiting, []
        self._waiting_bytes = self._waiting_lines = 0
        with_samples = [start for start in starts if start.samples is not None]
        texts = [split_file(one.key, one.samples[1]) for one in with_samples if one.samples]
        try:
            frames = self._samples.insert(texts, self.every_s)
            by_key = dict(zip((start.key for start in with_samples), frames, strict=True))
            rows = [make_row(start, by_key.get(start.key)) for start in starts]
            unnest = ", ".join(f"unnest(?::{kind}[])" for kind in COLUMNS.values())
            if rows:
                columns = [[row.get(name) for row in rows] for name in COLUMNS]
                self._engine.execute(f"INSERT INTO records SELECT {unnest}", columns)
        except duckdb.Error as error:
            raise explain_error(error, self.path) from None
        self.thinned += sum(frame.thinned_s is not None for frame in frames)
        self.bytes += sum(len(frame.rest) for frame in frames)

    def _parts(self) -> dict[Path, Path]:
        """Return the pack's files with their temporary names; the file that completes the pack
        comes last."""
        records, samples, jobs = record_packs.pack_files(self.path)
        paths = (samples, jobs, records) if self._samples.rows else (jobs, records)
        return {path: path.with_name(f".{path.name}.tmp") for path in paths}

    def write(self) -> None:
        """Write the pack to disk. Raises OSError if that fails."""
        self._insert()
        records, samples, jobs = record_packs.pack_files(self.path)
        made = self._parts()
        if samples in made:
            # Samples are in the order of jobs already. The records are sorted by the query, and
            # only their row groups' bytes are limited.
            self._engine.execute("SET preserve_insertion_order = true")
            self._copy("samples", COPY_SAMPLES, made[samples])
            self._engine.execute("SET preserve_insertion_order = false")
        self._copy("records", COPY_RECORDS, made[records])
        with made[jobs].open("wb") as listed:
            ids = sorted({job_id for job_id, _ in self.seals})
            listed.write("".join(f"{job_id}\n" for job_id in ids).encode())
            set_access(listed, -1, 0o444)
        for path, temporary in made.items():
            temporary.rename(path)
        for folder in (self.folder, self.folder.parent, self.folder.parent.parent):
            sync_folder(folder)

    def _copy(self, table: str, copy: str, path: Path) -> None:
        """Copy a table to a Parquet file and compare what is read back. Raises OSError if they
        differ or writing fails."""
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600))
        try:
            self._engine.execute(copy.format(path=quote_path(path)))
            meant, read = (
                self._engine.execute(
                    f"SELECT count(*), sum(hash(t)::HUGEINT) FROM {source} AS t"
                ).fetchone()
                for source in (table, f"read_parquet({quote_path(path)})")
            )
        except duckdb.Error as error:
            raise explain_error(error, path) from None
        if read != meant:
            raise OSError(errno.EIO, f"{read} was read again where {meant} was written", str(path))
        with path.open("rb") as file:
            set_access(file, self.gid, self.mode)


def explain_error(error: duckdb.Error, path: Path) -> OSError:
    """Return DuckDB's error as an OSError, with ENOSPC for a full disk."""
    is_full = os.strerror(errno.ENOSPC) in str(error)
    return OSError(errno.ENOSPC if is_full else 0, f"no pack could be written: {error}", str(path))


def set_access(file: BinaryIO, gid: int, mode: int) -> None:
    """Set a file's readers and wait until it is on disk."""
    file.flush()
    os.fchown(file.fileno(), -1, gid)
    os.fchmod(file.fileno(), mode)
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def make_seal(content: bytes) -> bytes:
    """Return the SHA-256 of a file's bytes."""
    return hashlib.sha256(content).digest()


def is_sealed(sealed: bytes, content: bytes) -> bool:
    """Return whether a file has the bytes that were packed."""
    return make_seal(content) == sealed


def make_row(start: Start, frame: Frame | None) -> Row:
    """Return a row of records: the key, the document's columns, and what restores the two files."""
    keys = dict(zip(sample_packs.KEYS, start.key, strict=True))
    row: Row = {"format_version": record_packs.FORMAT_VERSION, **keys}
    if start.record is not None:
        file, content = start.record
        status = file.status
        row |= document_columns(file.path, content) | {
            "uid": status.st_uid,
            "mode": stat.S_IMODE(status.st_mode),
            "modified_unix_ns": status.st_mtime_ns,
            "changed_unix_ns": status.st_ctime_ns,
        }
        try:
            row["record"] = content.decode()
        except UnicodeDecodeError:
            row["record_rest"] = content
    if start.samples is not None and frame is not None:
        row |= {
            "samples_modified_unix_ns": start.samples[0].status.st_mtime_ns,
            "samples_header": frame.header,
            "samples_lines": frame.lines,
            "samples_rest": frame.rest,
            "thinned_s": frame.thinned_s,
        }
    return row


def document_columns(path: Path, content: bytes) -> Row:
    """Return a document's columns of the table `records`; {} for a document that is not a
    record."""
    try:
        record = records.parse_record(path, content)
    except records.RecordError:
        return {}
    cluster = record.get("job.cluster")
    columns = record.columns() | {"cluster": cluster if isinstance(cluster, str) else None}
    return {
        name: replace_lone_surrogates(value) if isinstance(value, str) else value
        for name, value in columns.items()
        if name in OF_DOCUMENT
    }


def group_by_access(record_dir: Path, files: Iterable[File]) -> dict[Access, list[str]]:
    """Return the jobs' folders below the folder of records, grouped by their files' access, in the
    order of `files`."""
    found: dict[Access, list[str]] = defaultdict(list)
    for file in files:
        folder = str(file.path.parent.relative_to(record_dir))
        if found[file.access][-1:] != [folder]:
            found[file.access].append(folder)
    return found


def list_accessible(record_dir: Path, folders: Iterable[str], access: Access) -> Iterator[Start]:
    """Yield the files of these folders' jobs, by start, as far as they have this access."""
    for name in folders:
        yield from list_starts(record_dir / name, access)


def remove_sealed(new: Pack, jobs: Jobs, day: Path) -> tuple[int, int]:
    """Remove files that a new pack contains; return the numbers of removed job folders and
    files."""
    folders, files = set(), 0
    for (job_id, name), sealed in new.seals.items():
        for folder in (day / job_id, jobs.record_dir / job_id):
            files += remove_file_if(folder / name, partial(is_sealed, sealed))
            folders.add(folder)
    return sum(map(remove_empty, folders)), files


def remove_packed(one: Path, jobs: Jobs, day: Path, among: Sequence[str]) -> tuple[int, int]:
    """Remove loose files of jobs in a pack of an earlier sweep; return numbers as remove_sealed
    does."""
    folders, files = set(), 0
    for file in read_packed(one, among):
        for folder in (day / file.job_id, jobs.record_dir / file.job_id):
            files += remove_file_if(folder / file.name, partial(is_packed, file))
            folders.add(folder)
    return sum(map(remove_empty, folders)), files


def read_packed(one: Path, job_ids: Sequence[str]) -> Iterator[record_packs.PackedFile]:
    """Yield the undamaged files of jobs in a pack; some may come twice."""
    try:
        yield from record_packs.read_files(one, job_ids)
    except OSError:
        if len(job_ids) > 1:
            for job_id in job_ids:
                yield from read_packed(one, [job_id])


def remove_file_if(path: Path, is_packed: Callable[[bytes], bool]) -> bool:
    """Remove a file if its bytes are in a pack: a new file may have its name. Return whether it is
    removed."""
    try:
        if not is_packed(read_regular(path, MOST_BYTES)):
            return False
        path.unlink()
    except OSError:
        return False
    return True


def is_packed(packed: record_packs.PackedFile, content: bytes) -> bool:
    """Return whether the pack has the file's bytes, or what thinning makes of them."""
    if packed.thinned_s is None:
        return content == packed.content
    return sample_packs.thin(content, packed.thinned_s) == packed.content


def remove_empty(folder: Path) -> bool:
    """Remove a folder if it is empty; return whether it is removed."""
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
