"""Finds and reads the records of jobs, and decides how far each is trusted.

Records of many jobs are found at once: folders of days are listed once, and packs are read for all
jobs. A search for each job alone would take 7 ms for each packed record: it lists the jobs of three
days, and reads a group of rows for one of them.

Records belong to the job's user, who may change them. What the sampler wrote into the accounting as
root, and what Slurm counted itself, has precedence (docs/cluster.md has the bounds). A record is
compared with earlier reads of it.
"""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.analysis.collect.record_import import (
    describe_clock_set,
    find_incomplete_reason,
    format_stray_record,
)
from steelyard.analysis.job.job_view import (
    JobView,
    compute_window,
    make_node_views,
    parse_record_node,
    select_last_start,
)
from steelyard.analysis.sources import admin_comment, record_packs
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.record_folders import DAY_S, find_days_around, list_subfolders
from steelyard.analysis.sources.record_packs import PackedFile
from steelyard.analysis.sources.records import Record, RecordError, parse_record, parse_record_name
from steelyard.facts.quantities import METRICS, TOTALS
from steelyard.jobscripts.regular_files import RECORD_BYTES, WRITABLE, open_regular

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


TOUCHED_S = 60.0  # seconds; the sampler writes, renames and chowns a record within milliseconds
LATE_S = 600.0  # seconds; a record is written when its job ends; two hosts' clocks may differ

# AdminComment is written when the batch script ends. Counters only grow from then on, while steps
# on other nodes end. The record may be larger by half, and by so much per node. It may be smaller
# by the rounding to six decimals.
GROWTH = 1.5
GROWTH_OF = {"J": 500.0, "s": 30.0, "bytes": 256e6}
ROUNDING = 1e-6
# Share of TotalCPU and seconds per node, as in collect's checks (analysis/collect/checks.py).
CPU_SHARE, CPU_S_PER_NODE = 0.05, 0.5


@dataclass(frozen=True, slots=True)
class ReadRecord:
    """A record as its file was when it was read."""

    record: Record
    sha256: str
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Inode:
    """Owner, mode and times of a record's file, as they are or were when it was packed."""

    uid: int
    mode: int
    modified_unix_s: float
    changed_unix_s: float


def read_checked_record(
    path: Path, row: AccountingRow, packed: PackedFile | None = None
) -> ReadRecord:
    """Return a record, from its file or from a pack, with marks of a touched file.

    Raises RecordError when it cannot be used.
    """
    try:
        inode, data = read_packed_inode(packed) if packed is not None else read_inode(path)
    except OSError as error:
        raise RecordError("record", f"{path} cannot be read: {error.strerror}") from None
    record = parse_record(path, data)
    if reason := find_mismatch(record, row):
        raise RecordError("changed", f"{path} {reason}: left out")
    return ReadRecord(
        record, hashlib.sha256(data).hexdigest(), tuple(find_inode_marks(inode, path, row))
    )


def read_inode(path: Path) -> tuple[Inode, bytes]:
    """Return inode and content of a file."""
    with open_regular(path, RECORD_BYTES) as file:
        status = os.fstat(file.fileno())
        return Inode(status.st_uid, status.st_mode, status.st_mtime, status.st_ctime), file.read()


def read_packed_inode(file: PackedFile) -> tuple[Inode, bytes]:
    """Return inode and content of a packed file.

    Its user could change the file until it was packed.
    """
    times = file.modified_unix_ns / 1e9, file.changed_unix_ns / 1e9
    return Inode(file.uid, file.mode, *times), file.content


def find_mismatch(record: Record, row: AccountingRow) -> str | None:
    """Return why this cannot be the sampler's record of this job and node; None: it can."""
    expected = {"job.job_id": row.job_id, "job.cluster": row.cluster}
    for name, known in expected.items():
        found = record.get(name)
        if found and known and str(found).casefold() != known.casefold():
            return f"says {name} {str(found)[:40]!r} where the accounting has {known!r}"
    if not record.path.name.startswith(f"{record.node}."):
        return f"says that its node is {record.node[:40]!r}"
    return None


def find_inode_marks(inode: Inode, path: Path, row: AccountingRow) -> Iterator[str]:
    """Yield marks of a file that a user other than root may have changed."""
    if inode.uid == 0:
        return
    if inode.mode & WRITABLE:
        yield f"{path.name} can be written by its owner"
    if (after := inode.changed_unix_s - inode.modified_unix_s) > TOUCHED_S:
        yield f"{path.name} was touched {after:.0f} s after it was written"
    if row.end_unix_s is not None and (after := inode.modified_unix_s - row.end_unix_s) > LATE_S:
        yield f"{path.name} was written {after:.0f} s after the job's end"


def find_comment_total(comment: dict[str, Any] | None, column: str) -> float | None:
    """Return a job's total over all its nodes from AdminComment; None: it has none."""
    if comment is None or admin_comment.is_partial(comment):
        return None
    if comment.get("so_far"):  # later steps may have used more
        return None
    if METRICS[column].is_of_node and comment["exclusive"] is not True:
        return None
    found = comment.get(column)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found)


def is_consistent_with_comment(column: str, value: float, reported: float, nodes: int) -> bool:
    """Whether a total of the records agrees with AdminComment's value."""
    most = GROWTH * reported + GROWTH_OF[TOTALS[column].unit] * nodes
    return reported * (1 - ROUNDING) - ROUNDING <= value <= most


def is_consistent_with_cpu(value: float, accounted: float | None, nodes: int) -> bool:
    """Whether CPU time of the records agrees with Slurm's, which may be smaller but not larger."""
    if accounted is None:
        return True
    return value >= accounted - CPU_SHARE * accounted - CPU_S_PER_NODE * nodes


CHANGED = "{} was changed since it was first read: what it said then counts"


@dataclass(slots=True)
class FoundRecords:
    """The records of a job; gaps are (node, kind, reason)."""

    by_node: dict[str, ReadRecord] = field(default_factory=dict)  # by node
    gaps: list[tuple[str | None, str, str]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)


def list_sources(
    record_index: RecordIndex, row: AccountingRow, found: FoundRecords
) -> dict[Path, PackedFile | None]:
    """Return all records of a job id from the days around this start, with a pack's entry or None.

    A pack that cannot be read is added to the gaps of `found`.
    """
    sources: dict[Path, PackedFile | None] = {}
    for record_dir in record_index.record_dirs:
        sources |= dict.fromkeys(list_record_names(record_dir / row.job_id))
        for folder in record_index.find_folders(record_dir, row):
            sources |= dict.fromkeys(list_record_names(folder))
        # Loose files come first, then those of the newest pack.
        for pack in reversed(record_index.find_packs(record_dir, row)):
            there = {path.name for path in sources}
            files = record_index.find_content(pack, row.job_id)
            if isinstance(files, OSError):
                found.gaps.append((None, "record", f"{pack} cannot be read: {files.strerror}"))
                continue
            mine = ((pack / Path(file.name).name, file) for file in files)
            sources |= {path: file for path, file in mine if path.name not in there}
    return {path: file for path, file in sources.items() if parse_record_name(path)}


def read_job_records(
    view: JobView, record_index: RecordIndex, before: Mapping[str, ReadRecord]
) -> FoundRecords:
    """Read the records of the start that `view` is of, and set its nodes.

    `near` must have loaded the row. `before` has the records that were read earlier, by node: a
    complete one stays valid if its file changes or disappears. If a record is missing and a sweep
    has run, its files are listed again, since it may be in a pack.
    """
    assert view.row is not None
    found = list_records(view, record_index, before)
    while not found.by_node.keys() >= {*view.row.nodes} and record_index.is_outdated(view.row):
        record_index.reload()
        found = list_records(view, record_index, before)
    return found


def list_records(
    view: JobView, record_index: RecordIndex, before: Mapping[str, ReadRecord]
) -> FoundRecords:
    """Read the records as they were listed when `near` was loaded."""
    assert view.row is not None
    found = FoundRecords()
    sources = list_sources(record_index, view.row, found)
    paths = list(sources)
    for path in select_last_start(view, paths):
        node = parse_record_node(path)
        try:
            checked = read_checked_record(path, view.row, sources[path])
        except RecordError as error:
            found.gaps.append((node, error.kind, str(error)))
            continue
        old = before.get(node)
        if old is not None and old.record.complete and old.sha256 != checked.sha256:
            found.gaps.append((node, "changed", CHANGED.format(path)))
            found.marks.append(CHANGED.format(path.name))
            continue
        found.by_node[node] = checked
        report_record_gaps(found, node, checked)
    for node, old in before.items():  # two starts of a job may have the same submit time
        if (
            old.record.complete
            and node not in found.by_node
            and select_last_start(view, [old.record.path])
        ):
            found.by_node[node] = old
    found.marks += [mark for checked in found.by_node.values() for mark in checked.marks]
    view.nodes = make_node_views(
        [checked.record for checked in found.by_node.values()], with_samples=False
    )
    find_stray_records(view, found, paths)
    return found


def report_record_gaps(found: FoundRecords, node: str, record: ReadRecord) -> None:
    """Add the problems that the record itself states."""
    for kind, reason in (
        ("incomplete_record", find_incomplete_reason(record.record)),
        ("clock", describe_clock_set(record.record)),
        ("touched", "; ".join(record.marks) or None),
    ):
        if reason:
            found.gaps.append((node, kind, reason))


def find_stray_records(view: JobView, found: FoundRecords, paths: Sequence[Path]) -> None:
    """Add records of this job id whose time fits none of its starts: a clock is wrong."""
    assert view.row is not None
    known_nodes = {node for node, _, _ in found.gaps} | set(found.by_node)
    begins = [*view.earlier_starts, view.row.start_unix_s or 0.0]
    for node in sorted(set(view.row.nodes) - known_nodes):
        mine = [
            path
            for path in paths
            if parse_record_node(path) == node and is_far_from_starts(path, begins)
        ]
        if explanation := format_stray_record(mine, node, view.row.start_unix_s or 0.0):
            found.gaps.append((node, "clock_off", f"no record of {node}{explanation}"))


def is_far_from_starts(path: Path, begins: Sequence[float]) -> bool:
    """Whether a record started more than a minute from every known start."""
    parts = parse_record_name(path)
    return parts is not None and all(abs(parts[1] - begin) > 60 for begin in begins)
