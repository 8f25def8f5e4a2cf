"""Builds rows of the accounting from a job's history or from qstat.

Columns of the table `accounting` have the names and formats of Slurm's sacct. Fields that sacct
does not have go into `extra`. A row is also converted to the one that collect uses.
"""

from __future__ import annotations

import calendar
import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.pbs import field_values
from steelyard.analysis.sources.pbs.hook_totals import HookTotals, build_comment
from steelyard.analysis.sources.pbs.job_starts import SERVER_LOG, History, Start

FIELDS = (
    "JobID", "JobIDRaw", "JobName", "Cluster", "User", "Account", "Partition", "State", "ExitCode",
    "Reason", "Submit", "Eligible", "Start", "End", "ElapsedRaw", "CPUTimeRAW", "TotalCPU",
    "MaxRSS", "MaxVMSize", "ConsumedEnergyRaw", "NNodes", "NCPUS", "NodeList", "AdminComment",
    "TimelimitRaw", "Restarts", "extra",
)  # fmt: skip
# Fields that have their own column and are not repeated in `extra`.
TAKEN = frozenset(("user", "account", "jobname", "queue", "ctime", "etime", "start", "end"))
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


MOST_KEPT = 20  # unreadable lines of a job that are stored; the others usually have the same fault
LIMIT_SLACK_S = 1.0
GONE_WAITING = "no longer in the queue, and no start of it in the accounting: deleted"
GONE_RUNNING = "the accounting has no end of it, and qstat no longer knows it"


def build_rows(history: History, others: Iterable[History] = ()) -> Iterator[AccountingRow]:
    """Yield one row per start, or one for a job that never started; `others`: its array's jobs."""
    job = field_values.split_job_id(history.job_id)
    if job is not None and job.task == "":
        yield from build_array_row(history, others)
        return
    for number, start in enumerate(history.starts):
        is_last = number == len(history.starts) - 1
        yield build_start_row(history, start, number, is_last)
    if history.waits_again or not history.starts:
        yield build_waiting_row(history)


def build_extra(history: History, start: Start | None) -> dict[str, Any]:
    """Return the values of `extra` that have no column."""
    extra: dict[str, Any] = {"source": history.source}
    if start is not None and start.tries > 1:
        extra["starts"] = start.tries
    if start is not None and start.doubts:
        extra["ambiguous"] = sorted(start.doubts)
    if history.unreadable:
        first_lines = history.unreadable[:MOST_KEPT]
        extra["unreadable"] = [
            {"line": one.text[:4096], "reason": one.reason} for one in first_lines
        ]
        extra["unreadable_lines"] = len(history.unreadable)
    return extra


def build_start_row(history: History, start: Start, number: int, is_last: bool) -> AccountingRow:
    """Return the row of a start that ran or is running."""
    outcome = decide_start_outcome(history, start, is_last)
    cells = build_cells(
        history.job_id,
        history.queued | start.fields,
        outcome.state,
        outcome.reason,
        outcome.exit_code,
        (history.submit_unix_s or field_values.parse_epoch(start.fields.get("ctime")), start.start_unix_s,
         start.end_unix_s),
        build_extra(history, start),
    )  # fmt: skip
    return build_row(tuple((cells | {"Restarts": str(number)}).values()))


def decide_start_outcome(history: History, start: Start, is_last: bool) -> field_values.Outcome:
    """Return state, reason and exit code of a start."""
    if start.requeued:
        return field_values.Outcome("requeued", "the job was sent back to the queue", None)
    if not start.ended and history.aborted is not None:
        return decide_abort_outcome(history)
    if not start.ended:
        deletion_note = (
            f"{history.deleted_by} has asked for its deletion" if history.deleted_by else None
        )
        return field_values.Outcome("running", deletion_note, None)
    outcome = field_values.decide_outcome(
        history.dialect,
        start.status,
        history.deleted_by if is_last else None,
        is_out_of_time(start.fields),
    )
    if start.tries > 1 and outcome.reason:
        reason = f"{outcome.reason} (started {start.tries} times)"
        return field_values.Outcome(outcome.state, reason, outcome.exit_code)
    return outcome


def decide_abort_outcome(history: History) -> field_values.Outcome:
    """Return the outcome of an aborted job (record A).

    It fails if a hook refused it, as with Steelyard's conditions. It is canceled if a dependency
    failed.
    """
    state = "failed" if "hook" in (history.aborted or "") else "cancelled"
    return field_values.Outcome(state, f"the server gave it up: {history.aborted}", None)


def is_out_of_time(fields: Mapping[str, str]) -> bool:
    """Whether the job ran until its time limit."""
    limit = field_values.parse_duration_s(fields.get("Resource_List.walltime"))
    used = field_values.parse_duration_s(fields.get("resources_used.walltime"))
    return limit is not None and used is not None and used >= limit - LIMIT_SLACK_S


def build_waiting_row(history: History) -> AccountingRow:
    """Return the row of a job that has not started, or was requeued."""
    state, reason, end = "pending", None, history.deleted_unix_s
    if history.deleted_by is not None:
        state, reason = "cancelled", f"deleted by {history.deleted_by} while it waited"
    elif history.aborted is not None:
        outcome = decide_abort_outcome(history)
        state, reason = outcome.state, outcome.reason
    elif history.queued.get("etime") == "0":
        reason = "waiting: held, or for its time"
    elif history.waits_again:
        reason = "waiting: it was sent back to the queue"
    if history.unreadable and state == "pending":
        state = "lost"
        reason = f"its lines in the accounting cannot be read: {history.unreadable[0].reason}"
    times = (history.submit_unix_s, None, None if state == "pending" else end)
    cells = build_cells(
        history.job_id, history.queued, state, reason, None, times, build_extra(history, None)
    )
    return build_row(tuple((cells | {"Restarts": str(len(history.starts))}).values()))


def build_array_row(history: History, others: Iterable[History]) -> Iterator[AccountingRow]:
    """Yield a row with the array tasks that have no record yet (OpenPBS), if there are any."""
    begun = {
        job.task for one in others if (job := field_values.split_job_id(one.job_id)) is not None
    }
    indices = history.queued.get("array_indices") or ""
    if not indices:
        indices = next((s.fields["array_indices"] for s in history.starts
                      if "array_indices" in s.fields), "")  # fmt: skip
    waiting = [task for task in parse_tasks(indices) if str(task) not in begun]
    if not waiting:
        return
    over = history.deleted_by is not None or any(start.ended for start in history.starts)
    state, reason, end = "pending", None, None
    if over:
        state = "cancelled"
        reason = f"deleted by {history.deleted_by or 'somebody'} while it waited"
        end = history.deleted_unix_s or history.starts[-1].end_unix_s
    extra = build_extra(history, None) | {"waiting_tasks": ",".join(map(str, waiting))}
    cells = build_cells(
        history.job_id, history.queued, state, reason, None, (history.submit_unix_s, None, end),
        extra,
    )  # fmt: skip
    yield build_row(tuple(cells.values()))


# --- qstat ----------------------------------------------------------------------------------

# Attributes of qstat and the equivalent fields of the accounting.
SAME = {
    "Job_Name": "jobname", "euser": "user", "egroup": "group", "Account_Name": "account",
    "project": "project", "queue": "queue", "exec_host": "exec_host", "exec_vnode": "exec_vnode",
    "session_id": "session", "Exit_status": "Exit_status", "exit_status": "Exit_status",
    "run_count": "run_count", "start_count": "start_count", "ctime": "ctime", "qtime": "qtime",
    "etime": "etime", "stime": "start", "start_time": "start", "obittime": "end",
    "comp_time": "end", "array_indices_submitted": "array_indices",
}  # fmt: skip
TIMES = ("ctime", "qtime", "etime", "start", "end")


def format_unix_time(text: str) -> str:
    """Convert `Sat Nov 21 06:06:34 2026` in UTC to seconds since 1970; keep such seconds."""
    if text.isascii() and text.isdigit():
        return text
    try:
        parts = time.strptime(text, "%a %b %d %H:%M:%S %Y")
    except ValueError:
        return ""
    return str(int(calendar.timegm(parts)))


def rename_attributes(job: Mapping[str, str]) -> dict[str, str]:
    """Return the attributes of a job by the accounting's names."""
    fields = {SAME[name]: value for name, value in job.items() if name in SAME}
    fields |= {n: v for n, v in job.items() if n.startswith(("Resource_List.", "resources_used."))}
    owner = job.get("Job_Owner", "").partition("@")[0]
    fields.setdefault("user", owner)
    return fields | {name: format_unix_time(fields[name]) for name in TIMES if name in fields}


def build_qstat_row(job_id: str, job: Mapping[str, str], dialect: str) -> AccountingRow | None:
    """Return the row of the one start that qstat reports; None: the id is a complete array's."""
    parts = field_values.split_job_id(job_id)
    if parts is None or parts.task == "":
        return None
    fields = rename_attributes(job)
    outcome = decide_qstat_outcome(fields, job, dialect)
    start, end = (
        field_values.parse_epoch(fields.get("start")),
        field_values.parse_epoch(fields.get("end")),
    )
    if outcome.state == "pending" or is_deleted_before_start(job, dialect):
        start = None
    if outcome.state in ("pending", "running"):
        end = None
    cells = build_cells(
        job_id, fields, outcome.state, outcome.reason, outcome.exit_code,
        (field_values.parse_epoch(fields.get("ctime")), start, end), {"source": "qstat"},
    )  # fmt: skip
    return build_row(tuple(cells.values()))


def complete_from_qstat(
    row: AccountingRow, job: Mapping[str, str] | None, dialect: str
) -> AccountingRow:
    """Return a row without an end, completed if qstat reports the end or no longer has the job."""
    cells = dict(zip(FIELDS, row.fields, strict=True))
    if job is None:
        was = {"pending": ("CANCELLED", GONE_WAITING), "running": ("LOST", GONE_RUNNING)}
        state, reason = was[row.state]
        return build_row(tuple((cells | {"State": state, "Reason": reason}).values()))
    newer = build_qstat_row(row.job_id, job, dialect)
    if newer is None or job.get("job_state") not in field_values.OVER:
        return row
    newer_cells = dict(zip(FIELDS, newer.fields, strict=True))
    return build_row(tuple((newer_cells | {"Restarts": cells["Restarts"]}).values()))


def decide_qstat_outcome(
    fields: Mapping[str, str], job: Mapping[str, str], dialect: str
) -> field_values.Outcome:
    """Return the outcome from job_state, and for an ended job from its exit status."""
    word = job.get("job_state", "")
    if word in field_values.WAITING:
        why = field_values.WAITING[word] or job.get("comment")
        return field_values.Outcome("pending", f"waiting: {why}" if why else None, None)
    if word in field_values.RUNNING:
        return field_values.Outcome("running", field_values.RUNNING[word], None)
    status = field_values.parse_count(fields.get("Exit_status"))
    if word in field_values.OVER and (status is None or is_deleted_before_start(job, dialect)):
        return field_values.Outcome("cancelled", "deleted before it began, as qstat has it", None)
    return field_values.decide_outcome(dialect, status, None, is_out_of_time(fields))


def is_deleted_before_start(job: Mapping[str, str], dialect: str) -> bool:
    """Whether an array task of OpenPBS was deleted while it waited.

    qstat then reports the array's start and exit status 1, but no run count and no host.
    """
    over = job.get("job_state") in field_values.OVER
    return dialect == field_values.OPENPBS and over and not {"run_count", "exec_host"} & job.keys()
