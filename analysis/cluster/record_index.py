"""The records of many jobs, found together: folders of days are listed once, packs read for all jobs.

One job after another would cost 7 ms for each whose record is packed: three days' lists of jobs, and a
group of rows for one of them.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.analysis.collect.job_view import compute_window
from steelyard.analysis.sources import record_packs
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.record_folders import DAY_S, find_days_around, list_subfolders
from steelyard.analysis.sources.record_packs import PackedFile

Files = list[PackedFile]


class RecordIndex:
    """The days around jobs, in folders of records; what a folder has is asked once.

    No further than the days around, as for a person who asks for one job: of a node without the
    plugin there are none, and a year of days would be looked through for each of its jobs.
    """

    def __init__(self, record_dirs: Sequence[Path]) -> None:
        self.record_dirs = record_dirs
        self._around: dict[tuple[Path, int, int], list[Path]] = {}
        self._loose: dict[Path, set[str]] = {}  # by day, jobs that have a folder there
        self._packs: dict[
            Path, list[tuple[Path, frozenset[str]]]
        ] = {}  # by day, and whose they are
        self._read: dict[tuple[Path, str], Files | OSError] = {}  # by pack and job
        self._rows: list[AccountingRow] = []

    def load(self, rows: Iterable[AccountingRow]) -> None:
        """Read what packs have of these jobs, and forget what was read of others."""
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
        """Whether a sweep has made packs of the job's days, or removed some, since they were listed."""
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
        """List and read anew, of the same jobs."""
        for cache in (self._around, self._loose, self._packs):
            cache.clear()
        self.load(self._rows)

    def find_days(self, record_dir: Path, row: AccountingRow) -> list[Path]:
        """Those around the job; what lies loose is listed before packs are: a sweep takes away a
        file when it is in a pack."""
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
        """Those that have files of the job, by day, a day's newest last."""
        of_days = (self._packs[day] for day in self.find_days(record_dir, row))
        return [pack for packs in of_days for pack, ids in packs if row.job_id in ids]

    def find_folders(self, record_dir: Path, row: AccountingRow) -> list[Path]:
        """Of the job: by day, those that were there when the day was listed."""
        days = self.find_days(record_dir, row)
        return [day / row.job_id for day in days if row.job_id in self._loose[day]]

    def find_content(self, pack: Path, job_id: str) -> Files | OSError:
        """The records of a job in a pack, as they were loaded."""
        return self._read.get((pack, job_id), [])


def read_pack(pack: Path, ids: set[str]) -> dict[tuple[Path, str], Files | OSError]:
    """The records in a pack of these jobs; where it cannot be read, of each as far as it can."""
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
    """Names that end like a record's; [] where there is no such folder."""
    try:
        with os.scandir(folder) as entries:
            return [
                folder / name for name in sorted(e.name for e in entries) if name.endswith(".json")
            ]
    except (FileNotFoundError, NotADirectoryError):
        return []
