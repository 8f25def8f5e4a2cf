"""The files in a folder of records, classified for a sweep."""

from __future__ import annotations

import contextlib
import heapq
import os
import stat
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.analysis.sources import record_folders, record_packs
from steelyard.analysis.sources.records import INT64, parse_record_name
from steelyard.jobscripts.regular_files import RECORD_BYTES, read_regular

# A job without samples writes nothing while it runs. A record this old that has no end is from a
# node that never came back.
UNFINISHED_S = 60 * 86400
TEMPORARY_S = 7 * 86400
MOST_BYTES = 64 << 20  # a larger file is never packed: each is in memory once
PACKED_KINDS = (".json", ".csv")
# Reasons why a file is never packed.
LARGE = "over 64 MB"
PRIVATE = "not for their group"
OTHER = "others"  # not a file of ours, or a name that no list of jobs can contain


@dataclass(frozen=True, slots=True)
class File:
    """A file of a job."""

    path: Path
    status: os.stat_result

    @property
    def job_id(self) -> str:
        """The name of its folder, which is the job's id."""
        return self.path.parent.name

    @property
    def access(self) -> tuple[int, int]:
        """Group and mode of a pack that may contain it: readable by others if the file is."""
        return self.status.st_gid, 0o444 if self.status.st_mode & stat.S_IROTH else 0o440


@dataclass(frozen=True, slots=True)
class Sorted:
    """A job's files, classified for a sweep."""

    packed: Sequence[File] = ()  # can go into a pack
    stay: Mapping[str, Sequence[File]] = field(default_factory=dict)  # never packed, by reason
    waits: bool = False  # one may still be written to: no file is touched


class Jobs:
    """Jobs' folders by day. A folder of the flat layout belongs to the day of its last record.
    Other entries are an administrator's, and not listed.

    A folder of records may contain millions: names of the flat layout are kept as text, ten bytes
    each; all others are listed when their day is processed."""

    def __init__(self, record_dir: Path, when_empty: Callable[[Path], None]) -> None:
        """`when_empty` is called for each empty job folder in the flat layout."""
        self.record_dir = record_dir
        self._flat: dict[Path, bytearray] = defaultdict(bytearray)
        for name in record_folders.list_subfolders(record_dir):
            if record_folders.MONTH.fullmatch(name):
                continue
            names = list(list_names(record_dir / name))
            starts = [parts[1] for one in names if (parts := parse_name(Path(one)))]
            if starts:
                self._flat[record_dir / record_folders.format_day(max(starts))] += name_bytes(name)
            elif not names and name[:1].isdigit():
                when_empty(record_dir / name)

    def list_days(self) -> list[Path]:
        """Return the days with job folders or packs, the oldest first."""
        return sorted({*record_folders.list_days(self.record_dir), *self._flat})

    def list_folders(self, day: Path) -> Iterator[Path]:
        """Yield the folders of a day, sorted by name, so that those of one job are adjacent."""
        by_day = sorted(record_folders.list_subfolders(day))
        flat = sorted(map(os.fsdecode, filter(None, bytes(self._flat.get(day, b"")).split(END))))
        folders = ((day / name for name in by_day), (self.record_dir / name for name in flat))
        return heapq.merge(*folders, key=lambda folder: folder.name)


END = b"\0"  # no file name contains it


def name_bytes(name: str) -> bytes:
    """Return a name as an entry of a list of names."""
    return os.fsencode(name) + END


def list_names(folder: Path) -> Iterator[str]:
    """Yield the names in a folder; none if it no longer exists."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (entry.name for entry in entries)


def parse_name(path: Path) -> tuple[str, int] | None:
    """Return node and start of a record or its samples; None for another file. Samples count
    because a job killed early may have no record."""
    if path.suffix not in PACKED_KINDS or not is_text(path.name):
        return None
    parts = parse_record_name(path.with_suffix(".json"))
    return parts if parts and path.stem == f"{parts[0]}.{parts[1]}" and parts[1] < INT64 else None


def list_files(folder: Path) -> list[File]:
    """Return a job's files, hidden ones included; [] if the folder no longer exists."""
    try:
        return sorted(
            (File(Path(e.path), e.stat(follow_symlinks=False)) for e in os.scandir(folder)),
            key=lambda file: file.path.name,
        )
    except FileNotFoundError:
        return []


def sort_files(folder: Path, before_unix_s: float, now_unix_s: float) -> Sorted:
    """Classify a job's files; if one may still be written to, only set `waits`."""
    files = list_files(folder)
    newest = max((file.status.st_mtime for file in files), default=0.0)
    if newest >= before_unix_s or (
        newest >= now_unix_s - UNFINISHED_S and not all(is_finished(file) for file in files)
    ):
        return Sorted(waits=True)
    return separate_kinds(folder, files)


def separate_kinds(folder: Path, files: Sequence[File]) -> Sorted:
    """Classify the files of an ended job: those that can be packed, and those that never are."""
    starts: dict[str, list[File]] = defaultdict(list)
    for file in files:
        if not file.path.name.startswith("."):
            starts[file.path.stem if file.path.suffix in PACKED_KINDS else file.path.name] += [file]
    stay: dict[str, list[File]] = defaultdict(list)
    packed: list[File] = []
    for mine in starts.values():
        why = OTHER if not is_text(folder.name) else unpackable_reason(mine)
        (stay[why] if why else packed).extend(mine)
    return Sorted(packed, stay)


def is_text(name: str) -> bool:
    """Return whether a name can be in a list of jobs and in a row of a pack."""
    return name.isprintable() and all(ord(letter) < 0xD800 for letter in name)


def is_finished(file: File) -> bool:
    """Return whether a file is neither a record without an end nor a temporary file."""
    if file.path.suffix != ".json":
        return not file.path.name.startswith(".")
    try:
        return b'"end_unix_s": null' not in read_regular(file.path, RECORD_BYTES)
    except OSError:
        return False


def unpackable_reason(files: Sequence[File]) -> str:
    """Return why a record and its samples, or another file, are never packed; "" if they can be.

    Record and samples stay together, and a pack has no more readers than each of its files."""
    statuses = [file.status for file in files]
    if any(parse_name(file.path) is None for file in files) or not all(
        stat.S_ISREG(status.st_mode) for status in statuses
    ):
        return OTHER
    if any(status.st_size > MOST_BYTES for status in statuses):
        return LARGE
    is_open = all(status.st_mode & stat.S_IRGRP for status in statuses)
    return "" if is_open and len({file.access for file in files}) == 1 else PRIVATE


def temporary_files(folder: Path, now_unix_s: float) -> Iterator[Path]:
    """Yield temporary files that killed writers left in a job's folder: no file of the start was
    changed for a week. A living sampler's temporary file is empty, and is created again when
    needed."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        if not any(entry.name.endswith(".json.tmp") for entry in entries):
            return  # true of nearly all folders: their files need no stat
    files = list_files(folder)
    for file in files:
        name = file.path.name
        if (
            name.startswith(".")
            and name.endswith(".json.tmp")
            and stat.S_ISREG(file.status.st_mode)
        ):
            start = name[1:].removesuffix(".json.tmp")
            mine = [f for f in files if f is file or f.path.name.startswith(f"{start}.")]
            if max(f.status.st_mtime for f in mine) < now_unix_s - TEMPORARY_S:
                yield file.path


def list_incomplete_packs(day: Path) -> Iterator[Path]:
    """Yield what a killed sweep left in a day's packs: hidden files, and files of a pack without
    records."""
    folder = record_packs.pack_folder(day)
    if not folder.is_dir():
        return
    paths = sorted(folder.iterdir())
    packs = [path for path in paths if path.name.startswith(record_packs.RECORDS)]
    packs = [path for path in packs if path.suffix == record_packs.SUFFIX]
    beside = {record_packs.samples_path(path) for path in packs}
    beside |= {path.with_suffix(record_packs.LIST_SUFFIX) for path in packs}
    for path in paths:
        if path.name.startswith(".") or (path not in beside and belongs_to_pack(path)):
            yield path


def belongs_to_pack(path: Path) -> bool:
    """Return whether the file is useless without the records of its pack."""
    return path.suffix == record_packs.LIST_SUFFIX or path.name.startswith(record_packs.SAMPLES)


def disk_bytes(path: Path) -> int:
    """Return the bytes on disk of a file, or of a folder without its content."""
    return path.lstat().st_blocks * 512


def used_bytes(path: Path) -> int:
    """Return the bytes on disk of everything below a folder; links are not followed."""
    total, below = 0, [os.scandir(path)]
    while below:
        entry = next(below[-1], None)
        if entry is None:
            below.pop().close()
            continue
        with contextlib.suppress(FileNotFoundError):
            total += entry.stat(follow_symlinks=False).st_blocks * 512
            if entry.is_dir(follow_symlinks=False):
                below.append(os.scandir(entry))
    return total
