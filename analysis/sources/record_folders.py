"""Finds records below a folder of records (docs/formats.md part 1).

A job's files are in RECORD_DIR/JOB. If the owner has created the mark in RECORD_DIR, new ones are
in RECORD_DIR/YYYY-MM/DD/JOB, by the UTC day on which the node's record starts. Files from before
the mark stay in place and are found as well. So are the packs of `steelyard sweep`.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.sources import record_packs
from steelyard.analysis.sources.records import parse_record_name
from steelyard.jobscripts.regular_files import RECORD_BYTES, read_regular

MARK = ".steelyard-records"
DAY_S = 86400
MONTH = re.compile(r"\d{4}-\d{2}")
DAY = re.compile(r"\d{2}")
FIRST_YEAR = 2020  # no record is older,
UNSET = "1970-01"  # except those of clocks that were never set
NEAR_DAYS = 2  # days by which a node's clock may be wrong
MANY_DAYS = 40  # longer windows list the existing days; windows without an end are this long

# Start and end of a job in the accounting, in seconds since 1970 UTC.
Window = tuple[float, float]


def format_day(unix_s: float) -> str:
    """Return `2026-11/23` in UTC. Times outside the calendar are clamped."""
    return format_day_number(int(min(max(unix_s, 0.0), 4e9) // DAY_S))


@functools.lru_cache(maxsize=10_000)
def format_day_number(number: int) -> str:
    """Format a day by its number since 1970."""
    return time.strftime("%Y-%m/%d", time.gmtime(number * DAY_S))


def find_job_folders(record_dir: Path, job_id: str, window: Window | None = None) -> list[Path]:
    """Return the folders with a job's files, that of the flat layout first, then by day.

    Packed files are unpacked into a folder of this process, except those that still exist as files.
    With a window, only its days, NEAR_DAYS before and after, and 1970-01 (clocks that were never
    set) are searched, since a run without a record must not cost a search of every day. Without a
    window all days are searched. No folder of jobs is listed.
    """
    sources = find_job_sources(record_dir, job_id, window)
    loose = [source for source in sources if source.suffix != record_packs.SUFFIX]
    if len(loose) == len(sources):
        return loose
    there = {name for folder in loose for name in list_file_names(folder)}
    unpacked = []
    for pack in (source for source in reversed(sources) if source not in loose):
        folder = record_packs.unpack(pack, job_id, there)
        there |= list_file_names(folder)  # files of the newest pack have precedence
        if folder.is_dir() or folder == pack:
            unpacked.append(folder)
    return [*loose, *reversed(unpacked)]


def list_file_names(folder: Path) -> set[str]:
    """Return the names of a job's files; empty if a sweep has removed the folder."""
    try:
        return {path.name for path in folder.iterdir()}
    except (FileNotFoundError, NotADirectoryError):
        return set()


def find_job_sources(record_dir: Path, job_id: str, window: Window | None = None) -> list[Path]:
    """Do the same as `find_job_folders` without unpacking: return folders and packs."""
    flat = record_dir / job_id
    found = [flat] if flat.is_dir() else []
    if window is None:
        return found + find_in_days(list_days(record_dir), job_id)
    unset = list_days_of_month(record_dir / UNSET)
    nearby_days = (day for day in find_days_around(record_dir, window) if day not in unset)
    return [*found, *find_in_days(unset, job_id), *find_in_days(nearby_days, job_id)]


def find_in_days(among: Iterable[Path], job_id: str) -> list[Path]:
    """Return the job's folders and packs in these folders of days."""
    found = []
    for day in among:
        if (day / job_id).is_dir():
            found.append(day / job_id)
        found += record_packs.find_packs(day, job_id)
    return found


def find_days_around(record_dir: Path, window: Window) -> Iterator[Path]:
    """Yield existing folders of the window's days and of NEAR_DAYS before and after."""
    first = format_day(window[0] - NEAR_DAYS * DAY_S)
    last = format_day(min(window[1], window[0] + MANY_DAYS * DAY_S) + NEAR_DAYS * DAY_S)
    if MANY_DAYS * DAY_S < window[1] - window[0] < float("inf"):
        last = format_day(window[1] + NEAR_DAYS * DAY_S)
        yield from (
            day for day in list_days(record_dir) if first <= "/".join(day.parts[-2:]) <= last
        )
        return
    months: dict[str, bool] = {}
    for number in range(MANY_DAYS + 2 * NEAR_DAYS + 2):
        day = format_day(window[0] + (number - NEAR_DAYS) * DAY_S)
        if day > last:
            return
        month = day.partition("/")[0]
        if month not in months:
            months[month] = (record_dir / month).is_dir()
        if months[month]:
            yield record_dir / day


def list_days(record_dir: Path) -> Iterator[Path]:
    """Yield every folder of a day, in order.

    Months are tried by name, since the folder may have a million jobs of the flat layout.
    """
    this_year = time.gmtime().tm_year
    names = [
        f"{year}-{month:02}" for year in range(FIRST_YEAR, this_year + 2) for month in range(1, 13)
    ]
    for name in (UNSET, *names):
        yield from list_days_of_month(record_dir / name)


def list_days_of_month(month: Path) -> list[Path]:
    """Return the days of a month, in order."""
    if not month.is_dir():
        return []
    names = {path.name.removesuffix(".packs") for path in month.iterdir()}
    return [month / name for name in sorted(names) if DAY.fullmatch(name)]


def list_job_ids(record_dir: Path) -> set[str]:
    """Return the id of every job that has files. This lists all folders."""
    there = list(list_days(record_dir))
    packs = (pack for day in there for pack in record_packs.list_packs(day))
    ids = {name for pack in packs for name in record_packs.list_job_ids(pack)}
    ids |= {name for day in there for name in list_subfolders(day)}
    return ids | {name for name in list_subfolders(record_dir) if not MONTH.fullmatch(name)}


def list_subfolders(folder: Path) -> Iterator[str]:
    """Yield the names of subfolders from the listing alone.

    A stat call for each of a million would take half a minute.
    """
    try:
        with os.scandir(folder) as entries:
            yield from (e.name for e in entries if e.is_dir() and not e.name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return


@dataclass(frozen=True, slots=True)
class FoundRecord:
    """A record of a job on a node, not parsed yet."""

    job_id: str
    path: Path  # of a packed record: PACK/JOB/NODE.START.json
    content: bytes | None = None

    def read(self) -> bytes:
        """Return the document; raise OSError when it cannot be read."""
        return read_regular(self.path, RECORD_BYTES) if self.content is None else self.content


def iterate_records(
    record_dir: Path, since_unix_s: float = 0.0, until_unix_s: float = float("inf")
) -> Iterator[FoundRecord]:
    """Yield every record that starts in [since, until), by day, then those of the flat layout.

    Lists all folders of these days, and all folders of the flat layout. Raises OSError when a pack
    cannot be read.
    """
    for folder in list_days(record_dir):
        day = "/".join(folder.parts[-2:])
        if format_day(since_unix_s) <= day <= format_day(until_unix_s):
            yield from find_records(list_job_folders(folder), since_unix_s, until_unix_s)
            yield from find_packed_records(record_dir, folder, since_unix_s, until_unix_s)
    yield from find_records(list_flat_folders(record_dir), since_unix_s, until_unix_s)


def find_packed_records(
    record_dir: Path, day: Path, since_unix_s: float, until_unix_s: float
) -> Iterator[FoundRecord]:
    """Yield the records in a day's packs that start in [since, until) and have no file."""
    listed = set()
    for pack in reversed(record_packs.list_packs(day)):
        for file in record_packs.read_files(pack, records_only=True):
            path = pack / file.job_id / file.name
            parts = parse_record_name(path)
            if parts is None or not since_unix_s <= parts[1] < until_unix_s:
                continue
            loose = (above / file.job_id / file.name for above in (day, record_dir))
            if (file.job_id, file.name) not in listed and not any(one.exists() for one in loose):
                listed.add((file.job_id, file.name))
                yield FoundRecord(file.job_id, path, file.content)


def list_flat_folders(record_dir: Path) -> Iterator[Path]:
    """Return the jobs' folders of the flat layout."""
    return (p for p in list_job_folders(record_dir) if not MONTH.fullmatch(p.name))


def list_job_folders(folder: Path) -> Iterator[Path]:
    """Return the job folders of a day or of the flat layout, by name."""
    return (folder / name for name in sorted(list_subfolders(folder)))


def find_records(
    folders: Iterable[Path], since_unix_s: float, until_unix_s: float
) -> Iterator[FoundRecord]:
    """Yield the records in jobs' folders that start in [since, until)."""
    for folder in folders:
        for path in sorted(list_json_files(folder)):
            parts = parse_record_name(path)
            if parts is not None and since_unix_s <= parts[1] < until_unix_s:
                yield FoundRecord(folder.name, path)


def list_json_files(folder: Path) -> list[Path]:
    """Return a folder's JSON files.

    glob() would take twice as long, and there may be 100,000s of folders.
    """
    try:
        with os.scandir(folder) as entries:
            return [Path(entry.path) for entry in entries if entry.name.endswith(".json")]
    except (FileNotFoundError, NotADirectoryError):
        return []
