"""What PBS allocated to a job and what the job used, from its row of the table `accounting`."""

from __future__ import annotations

import json
from typing import Any

from steelyard.analysis.sources.accounting import CLOCKS_S, AccountingRow, Allocation
from steelyard.analysis.sources.pbs.accounting_cells import FIELDS
from steelyard.analysis.sources.pbs.field_values import duration_s, parse_count, size_bytes

NO_MEMORY = "none was asked for (Resource_List.mem)"
NOT_ADDED_UP = "resources_used.walltime is 0: PBS had not added up what the job's nodes used, and cput is that of one"
NO_LIMIT = "none was asked for (Resource_List.walltime)"


def read(row: AccountingRow) -> Allocation:
    """`mem` and `ncpus` are the whole job's in both dialects; `pmem`, of one process, is none."""
    cells = dict(zip(FIELDS, row.fields, strict=True))
    extra: dict[str, Any] = json.loads(cells["extra"] or "{}")
    memory = size_bytes(text(extra, "Resource_List.mem"))
    limit = duration_s(text(extra, "Resource_List.walltime"))
    used = size_bytes(text(extra, "resources_used.mem")) or None  # 0: not looked at in time
    missing = {"memory_bytes": NO_MEMORY} if memory is None else {}
    if limit is None:
        missing["time_limit_s"] = NO_LIMIT
    cpu_s = duration_s(text(extra, "resources_used.cput")) or None
    if cpu_s and is_not_added_up(row, text(extra, "resources_used.walltime")):
        cpu_s, missing["cpu_s"] = None, NOT_ADDED_UP
    has_begun = row.start_unix_s is not None
    return Allocation(
        partition=cells["Partition"] or None,
        account=cells["Account"] or None,
        nodes=len(row.nodes) or None,
        cpus=parse_count(cells["NCPUS"]) if has_begun else None,
        cpus_asked=parse_count(text(extra, "Resource_List.ncpus")),
        memory_bytes=memory if has_begun else None,
        gpus=parse_count(text(extra, "Resource_List.ngpus")),
        time_limit_s=limit,
        cpu_s=cpu_s,
        resident_low_bytes=used,
        resident_high_bytes=used,
        is_part=row.array_job_id is not None,
        missing=missing,
    )


def is_not_added_up(row: AccountingRow, walltime: str | None) -> bool:
    """OpenPBS wrote the line before the nodes had told what they used: it has one node's CPU time."""
    return len(row.nodes) > 1 and duration_s(walltime) == 0 and (row.elapsed_s or 0.0) > CLOCKS_S


def text(extra: dict[str, Any], name: str) -> str | None:
    """A field as the server wrote it."""
    value = extra.get(name)
    return None if value is None else str(value)
