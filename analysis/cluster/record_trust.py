"""Decides how far a record is trusted: it is its user's file, and the accounting is root's.

Records belong to the job's user, who may change them. What the sampler wrote into the accounting as
root, and what Slurm counted itself, has precedence (docs/cluster.md has the bounds).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.sources import admin_comment
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.record_packs import PackedFile
from steelyard.analysis.sources.records import Record, RecordError, parse_record
from steelyard.facts.quantities import METRICS, TOTALS
from steelyard.jobscripts.regular_files import RECORD_BYTES, WRITABLE, open_regular

TOUCHED_S = 60.0  # seconds; the sampler writes, renames and chowns a record within milliseconds
LATE_S = 600.0  # seconds; a record is written when its job ends; two hosts' clocks may differ

# AdminComment is written when the batch script ends. Counters only grow from then on, while steps
# on other nodes end. The record may be larger by half, and by so much per node. It may be smaller
# by the rounding to six decimals.
GROWTH = 1.5
GROWTH_OF = {"J": 500.0, "s": 30.0, "bytes": 256e6}
ROUNDING = 1e-6
# Share of TotalCPU and seconds per node, as in collect's checks (analysis/collect/cross_checks.py).
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
