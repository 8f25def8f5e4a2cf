"""How far a record is believed: it is its user's file, the accounting is root's.

Records belong to the job's user, who may change them. What the sampler wrote into the accounting as
root, and what Slurm counted itself, stands above them (docs/cluster.md has the bounds).
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.records import Record, RecordError, record_of
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.userfiles import RECORD_BYTES, open_regular

TOUCHED_S = 60.0  # the sampler writes, names and gives away a record within milliseconds
LATE_S = 600.0  # a record is written when its job ends; two hosts' clocks may differ
WRITABLE = 0o222  # the sampler leaves 0440

# AdminComment is written when the batch script ends, from other nodes' totals of the last second:
# counters only grow from there, while steps elsewhere end. The record may be so much larger, for
# each node, or half as large again; and smaller by the rounding of six decimals.
GROWTH = 1.5
GROWTH_OF = {"J": 500.0, "s": 30.0, "bytes": 256e6}
ROUNDING = 1e-6
# Of TotalCPU, as in collect's own checks (analysis/collect/cross_checks.py).
CPU_SHARE, CPU_S_PER_NODE = 0.05, 0.5


@dataclass(frozen=True, slots=True)
class Seen:
    """A record as its file was when it was read."""

    record: Record
    sha256: str
    marks: tuple[str, ...]


def read(path: Path, row: AccountingRow, packed: bytes | None = None) -> Seen:
    """A record and what is odd about its file; RecordError when it cannot be used.

    `packed`: its bytes out of a pack, which is root's: nothing is odd about that.
    """
    marks: tuple[str, ...] = ()
    data = packed
    if data is None:
        try:
            with open_regular(path, RECORD_BYTES) as file:
                status, data = os.fstat(file.fileno()), file.read()
        except OSError as error:
            raise RecordError("record", f"{path} cannot be read: {error.strerror}") from None
        marks = tuple(odd(status, path, row))
    record = record_of(path, data)
    if reason := another(record, row):
        raise RecordError("changed", f"{path} {reason}: left out")
    return Seen(record, hashlib.sha256(data).hexdigest(), marks)


def another(record: Record, row: AccountingRow) -> str | None:
    """Why it cannot be the record that the sampler wrote of this job there; None: it can."""
    told = {"job.job_id": row.job_id, "job.cluster": row.cluster}
    for name, known in told.items():
        found = record.get(name)
        if found and known and str(found).casefold() != known.casefold():
            return f"says {name} {str(found)[:40]!r} where the accounting has {known!r}"
    if not record.path.name.startswith(f"{record.node}."):
        return f"says that its node is {record.node[:40]!r}"
    return None


def odd(status: os.stat_result, path: Path, row: AccountingRow) -> Iterator[str]:
    """Marks of a file that somebody but root has had in hand."""
    if status.st_uid == 0:
        return
    if status.st_mode & WRITABLE:
        yield f"{path.name} can be written by its owner"
    if status.st_ctime - status.st_mtime > TOUCHED_S:
        after = status.st_ctime - status.st_mtime
        yield f"{path.name} was touched {after:.0f} s after it was written"
    if row.end_unix_s is not None and status.st_mtime - row.end_unix_s > LATE_S:
        after = status.st_mtime - row.end_unix_s
        yield f"{path.name} was written {after:.0f} s after the job's end"


def of_comment(comment: dict[str, Any] | None, column: str) -> float | None:
    """A job's total as root wrote it into the accounting, of all its nodes; None: it is not there."""
    if comment is None or comment["nodes"] is None or comment["nodes_weighed"] != comment["nodes"]:
        return None
    if METRICS[column].is_of_node and comment["exclusive"] is not True:
        return None
    found = comment.get(column)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    return float(found)


def agrees(column: str, value: float, told: float, nodes: int) -> bool:
    """Whether a job's total by its records can be what AdminComment tells of it."""
    most = GROWTH * told + GROWTH_OF[METRICS[column].unit] * nodes
    return told * (1 - ROUNDING) - ROUNDING <= value <= most


def agrees_with_cpu(value: float, accounted: float | None, nodes: int) -> bool:
    """Whether CPU time by its records can be what Slurm counted: it may count less, not more."""
    if accounted is None:
        return True
    return value >= accounted - CPU_SHARE * accounted - CPU_S_PER_NODE * nodes
