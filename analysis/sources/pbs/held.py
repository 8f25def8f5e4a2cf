"""What a job of PBS held and used, from its line of the table `accounting`."""

from __future__ import annotations

import json
from typing import Any

from steelyard.analysis.sources.accounting import AccountingRow, Held
from steelyard.analysis.sources.pbs.cells import FIELDS
from steelyard.analysis.sources.pbs.values import duration_s, size_bytes, whole

NO_MEMORY = "none was asked for (Resource_List.mem)"
NO_LIMIT = "none was asked for (Resource_List.walltime)"


def read(row: AccountingRow) -> Held:
    """`mem` and `ncpus` are the whole job's in both dialects; `pmem`, of one process, is none."""
    cells = dict(zip(FIELDS, row.fields, strict=True))
    extra: dict[str, Any] = json.loads(cells["extra"] or "{}")
    memory = size_bytes(text(extra, "Resource_List.mem"))
    limit = duration_s(text(extra, "Resource_List.walltime"))
    used = size_bytes(text(extra, "resources_used.mem")) or None  # 0: not looked at in time
    missing = {"memory_bytes": NO_MEMORY} if memory is None else {}
    if limit is None:
        missing["time_limit_s"] = NO_LIMIT
    has_begun = row.start_unix_s is not None
    return Held(
        partition=cells["Partition"] or None,
        account=cells["Account"] or None,
        nodes=len(row.nodes) or None,
        cpus=whole(cells["NCPUS"]) if has_begun else None,
        cpus_asked=whole(text(extra, "Resource_List.ncpus")),
        memory_bytes=memory if has_begun else None,
        gpus=whole(text(extra, "Resource_List.ngpus")),
        time_limit_s=limit,
        cpu_s=duration_s(text(extra, "resources_used.cput")) or None,
        resident_low_bytes=used,
        resident_high_bytes=used,
        is_part=row.array_job_id is not None,
        missing=missing,
    )


def text(extra: dict[str, Any], name: str) -> str | None:
    """A field as the server wrote it."""
    value = extra.get(name)
    return None if value is None else str(value)
