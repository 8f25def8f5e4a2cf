"""Finds records of many jobs at once: lists folders of days once, and reads packs for all jobs.

A search for each job alone would take 7 ms for each packed record: it lists the jobs of three days,
and reads a group of rows for one of them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.analysis.job.job_view import compute_window
from steelyard.analysis.sources import record_packs
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.record_folders import DAY_S, find_days_around, list_subfolders
from steelyard.analysis.sources.record_packs import PackedFile

Files = list[PackedFile]


class RecordIndex:
    """The days around jobs in folders of records; each folder's content is listed once.

    Only days around a job are searched, as for a query of one job. A node without the plugin has no
    records, and searching a year of days for each of its jobs would take too long.
    """

    def __init__(self, record_dirs: Sequence[Path]) -> None:
        self.record_dirs = record_dirs
        self._around: dict[tuple[Path, int, int], list[Path]] = {}
        self._loose: dict[Path, set[str]] = {}  # by day: jobs with a folder there
        self._packs: dict[
            Path, list[tuple[Path, frozenset[str]]]
        ] = {}  # by day: packs and their jobs
        self._read: dict[tuple[Path, str], Files | OSError] = {}  # by pack and job
        self._rows: list[AccountingRow] = []

    def load(self, rows: Iterable[AccountingRow]) -> None:
        """Read the packed records of these jobs, and drop those of other jobs."""
        self._read.clear()
        self._rows = list(rows)
        wanted: dict[Path, set[str]] = defaultdict(set)
        for row in self._rows:
            for record_dir in self.record_dirs:
                for pack in self.find_packs(record_dir, row):
                    wanted[pack].add(row.job_id)
        for pack, ids in wanted.items():
            self._read |= read_pack(pack, ids)

    def is_outdated(self, row: AccountingRow) -> bool:
        """Whether a sweep has made or removed packs of the job's days since they were listed."""
        window = compute_window(row)
        if window is None:
            return False
        for record_dir in self.record_dirs:
            listed = self.find_days(record_dir, row)
            if listed != list(find_days_around(record_dir, window)):
                return True
            packs = ((record_packs.list_packs(day), self._packs[day]) for day in listed)
            if any(there != [pack for pack, _ in known] for there, known in packs):
                return True
        return False

    def reload(self) -> None:
        """List and read the same jobs again."""
        for cache in (self._around, self._loose, self._packs):
            cache.clear()
        self.load(self._rows)

    def find_days(self, record_dir: Path, row: AccountingRow) -> list[Path]:
        """Return the days around the job.

        Loose folders are listed before packs, since a sweep deletes a file once it is in a pack.
        """
        window = compute_window(row)
        if window is None:
            return []
        key = (record_dir, int(window[0] // DAY_S), int(window[1] // DAY_S))
        if key not in self._around:
            self._around[key] = list(find_days_around(record_dir, window))
            for day in self._around[key]:
                if day not in self._loose:
                    self._loose[day] = set(list_subfolders(day))
                    self._packs[day] = [
                        (pack, frozenset(record_packs.list_job_ids(pack)))
                        for pack in record_packs.list_packs(day)
                    ]
        return self._around[key]

    def find_packs(self, record_dir: Path, row: AccountingRow) -> list[Path]:
        """Return the packs with files of the job, by day, the newest of each day last."""
        of_days = (self._packs[day] for day in self.find_days(record_dir, row))
        return [pack for packs in of_days for pack, ids in packs if row.job_id in ids]

    def find_folders(self, record_dir: Path, row: AccountingRow) -> list[Path]:
        """Return the job's folders by day, as listed."""
        days = self.find_days(record_dir, row)
        return [day / row.job_id for day in days if row.job_id in self._loose[day]]

    def find_content(self, pack: Path, job_id: str) -> Files | OSError:
        """Return the records of a job in a pack as they were loaded, or the error."""
        return self._read.get((pack, job_id), [])


def read_pack(pack: Path, ids: set[str]) -> dict[tuple[Path, str], Files | OSError]:
    """Read the packed records of these jobs. If the pack is damaged, read each job separately."""
    found: dict[tuple[Path, str], Files] = {}
    try:
        for file in record_packs.read_files(pack, ids, records_only=True):
            found.setdefault((pack, file.job_id), []).append(file)
    except OSError as error:
        if len(ids) == 1:
            return {(pack, job_id): error for job_id in ids}
        return {
            key: one for job_id in sorted(ids) for key, one in read_pack(pack, {job_id}).items()
        }
    return dict(found)


def list_record_names(folder: Path) -> list[Path]:
    """Return files that may be records, sorted by name; [] if the folder does not exist."""
    try:
        with os.scandir(folder) as entries:
            return [
                folder / name for name in sorted(e.name for e in entries) if name.endswith(".json")
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
