"""Converts a job's fields to columns of the table `accounting`, and to the row that collect uses.

Columns have the names and formats of Slurm's sacct. Fields that sacct does not have go into
`extra`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.pbs import field_values
from steelyard.analysis.sources.pbs.hook_totals import HookTotals, build_comment

FIELDS = (
    "JobID", "JobIDRaw", "JobName", "Cluster", "User", "Account", "Partition", "State", "ExitCode",
    "Reason", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "CPUTimeRAW", "TotalCPU",
    "MaxRSS", "MaxVMSize", "ConsumedEnergyRaw", "NNodes", "NCPUS", "NodeList", "AdminComment",
    "TimelimitRaw", "Restarts", "extra",
)  # fmt: skip
# Fields that have their own column and are not repeated in `extra`.
TAKEN = frozenset(("user", "account", "jobname", "queue", "ctime", "etime", "start", "end"))
SOURCES = SERVER_LOG, QSTAT = ("server log", "qstat")
HOOK = "resources_used.steelyard_used"
NAMES = {"JobName": "jobname", "User": "user", "Account": "account", "Partition": "queue"}


def format_duration(seconds: float | None) -> str:
    """Format a duration as `HH:MM:SS`, as sacct does."""
    if seconds is None:
        return ""
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes // 60):02d}:{int(minutes % 60):02d}:{rest:02.0f}"


def format_kib(text: str | None) -> str:
    """Format a size as sacct does.

    0 becomes an empty string: the job ended before it was polled.
    """
    found = field_values.parse_size_bytes(text)
    return f"{found >> 10}K" if found else ""


def format_time(unix_s: float | None) -> str:
    """Format a time as sacct does, in seconds since 1970."""
    return "Unknown" if unix_s is None else f"{unix_s:.0f}"


def format_node_count(text: str | None) -> str:
    """Return the number of nodes, or an empty string if none is known."""
    return str(len(field_values.parse_nodes(text)) or "")


def build_cells(
    job_id: str,
    fields: Mapping[str, str],
    state: str,
    reason: str | None,
    exit_code: int | None,
    times: tuple[float | None, float | None, float | None],
    extra: Mapping[str, Any],
) -> dict[str, str]:
    """Return the cells of a row by column.

    `times` are submission, start and end, in seconds since 1970.
    """
    submit, start, end = times
    parts = field_values.split_job_id(job_id)
    elapsed = None if start is None or end is None else max(0.0, end - start)
    host = fields.get("exec_host")
    slots = field_values.count_processors(fields)
    limit = field_values.parse_duration_s(fields.get("Resource_List.walltime"))
    cells = {
        "JobID": job_id,
        "JobIDRaw": job_id,
        "Cluster": (parts.server if parts is not None else None) or "",
        "State": state.upper(),
        "ExitCode": "" if exit_code is None else f"{exit_code}:0",
        "Reason": reason or "",
        "Submit": format_time(submit),
        "Eligible": format_time(field_values.parse_epoch(fields.get("etime"))),
        "Start": format_time(start),
        "End": format_time(end),
        "ElapsedRaw": "" if elapsed is None else f"{elapsed:.0f}",
        "CPUTimeRAW": "" if elapsed is None or not slots else f"{elapsed * slots:.0f}",
        "TotalCPU": format_duration(
            field_values.parse_duration_s(fields.get("resources_used.cput"))
        ),
        "MaxRSS": format_kib(fields.get("resources_used.mem")),
        "MaxVMSize": format_kib(fields.get("resources_used.vmem")),
        "NNodes": format_node_count(host),
        "NCPUS": str(slots or ""),
        "NodeList": ",".join(field_values.parse_nodes(host)),
        "TimelimitRaw": "" if limit is None else f"{limit / 60:g}",
    }
    cells |= {column: fields.get(name, "") for column, name in NAMES.items()}
    others: dict[str, Any] = {n: v for n, v in fields.items() if n not in TAKEN and n != HOOK}
    measured = build_comment(fields.get(HOOK), len(field_values.parse_nodes(host)))
    if measured is not None:
        others |= {HOOK: measured.by_node}
        cells["AdminComment"] = json.dumps(measured.comment, separators=(",", ":"))
        cells["ConsumedEnergyRaw"] = format_joules(fields, measured)
    elif HOOK in fields:
        others[HOOK] = fields[HOOK]
    cells["extra"] = json.dumps({**others, **extra}, ensure_ascii=False)
    return {name: cells.get(name, "") for name in FIELDS}


def format_joules(fields: Mapping[str, str], measured: HookTotals) -> str:
    """Return the energy in joules, or an empty string.

    The built-in resource is in joules where Steelyard's hook runs; other hooks may use kWh. The
    server adds up the nodes' values, which is no sum of the job if one node is missing.
    """
    return fields.get("resources_used.energy", "") if measured.has_all_nodes("energy_j") else ""


def parse_tasks(text: str) -> tuple[int, ...]:
    """Convert `0-3,7-11:2` to (0, 1, 2, 3, 7, 9, 11); return () if the text is no such list."""
    found: list[int] = []
    for item in text.split(","):
        ends, _, step = item.partition(":")
        low, dash, high = ends.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()) or (step and not step.isdigit()):
            return ()
        last = int(high) if dash else int(low)
        if last - int(low) > 10_000_000:
            return ()
        found += range(int(low), last + 1, int(step or 1) or 1)
    return tuple(found)


def build_row(fields: Sequence[str]) -> AccountingRow:
    """Return the row of these cells, which are in the order of FIELDS."""
    cells = dict(zip(FIELDS, fields, strict=True))
    job = field_values.split_job_id(cells["JobID"])
    if job is None:
        raise MissingError(f"the database has a row of PBS without a job id: {fields[:2]}")
    extra = json.loads(cells["extra"] or "{}")
    is_array = job.task == ""
    code = cells["ExitCode"].partition(":")[0]
    return AccountingRow(
        job_id=cells["JobIDRaw"],
        step=None,
        array_job_id=cells["JobID"] if is_array else job.format_array_id(),
        array_task_id=job.task or None,
        waits_in_array=is_array,
        waiting_tasks=parse_tasks(str(extra.get("waiting_tasks", ""))) if is_array else (),
        het_offset=None,
        restarts=field_values.parse_count(cells["Restarts"]),
        state=cells["State"].lower(),
        reason=cells["Reason"] or None,
        cluster=cells["Cluster"] or None,
        name=cells["JobName"] or None,
        user=cells["User"] or None,
        submit_unix_s=field_values.parse_epoch(cells["Submit"]),
        start_unix_s=field_values.parse_epoch(cells["Start"]),
        end_unix_s=field_values.parse_epoch(cells["End"]),
        elapsed_s=field_values.parse_count(cells["ElapsedRaw"]),
        exit_code=field_values.parse_count(code),
        nodes=tuple(cells["NodeList"].split(",")) if cells["NodeList"] else (),
        admin_comment=cells["AdminComment"] or None,
        fields=tuple(fields),
        reported_by=None if extra.get("source") == SERVER_LOG else extra.get("source"),
    )
