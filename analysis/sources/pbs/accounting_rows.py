"""Builds rows of the accounting from a job's history or from qstat."""

from __future__ import annotations

import calendar
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.pbs import field_values, states
from steelyard.analysis.sources.pbs.accounting_cells import (
    FIELDS,
    QSTAT,
    build_cells,
    build_row,
    parse_tasks,
)
from steelyard.analysis.sources.pbs.job_starts import History, Start

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


def decide_start_outcome(history: History, start: Start, is_last: bool) -> states.Outcome:
    """Return state, reason and exit code of a start."""
    if start.requeued:
        return states.Outcome("requeued", "the job was sent back to the queue", None)
    if not start.ended and history.aborted is not None:
        return decide_abort_outcome(history)
    if not start.ended:
        deletion_note = (
            f"{history.deleted_by} has asked for its deletion" if history.deleted_by else None
        )
        return states.Outcome("running", deletion_note, None)
    outcome = states.decide_outcome(
        history.dialect,
        start.status,
        history.deleted_by if is_last else None,
        is_out_of_time(start.fields),
    )
    if start.tries > 1 and outcome.reason:
        reason = f"{outcome.reason} (started {start.tries} times)"
        return states.Outcome(outcome.state, reason, outcome.exit_code)
    return outcome


def decide_abort_outcome(history: History) -> states.Outcome:
    """Return the outcome of an aborted job (record A).

    It fails if a hook refused it, as with Steelyard's conditions. It is canceled if a dependency
    failed.
    """
    state = "failed" if "hook" in (history.aborted or "") else "cancelled"
    return states.Outcome(state, f"the server gave it up: {history.aborted}", None)


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
        (field_values.parse_epoch(fields.get("ctime")), start, end), {"source": QSTAT},
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
    if newer is None or job.get("job_state") not in states.OVER:
        return row
    newer_cells = dict(zip(FIELDS, newer.fields, strict=True))
    return build_row(tuple((newer_cells | {"Restarts": cells["Restarts"]}).values()))


def decide_qstat_outcome(
    fields: Mapping[str, str], job: Mapping[str, str], dialect: str
) -> states.Outcome:
    """Return the outcome from job_state, and for an ended job from its exit status."""
    word = job.get("job_state", "")
    if word in states.WAITING:
        why = states.WAITING[word] or job.get("comment")
        return states.Outcome("pending", f"waiting: {why}" if why else None, None)
    if word in states.RUNNING:
        return states.Outcome("running", states.RUNNING[word], None)
    status = field_values.parse_count(fields.get("Exit_status"))
    if word in states.OVER and (status is None or is_deleted_before_start(job, dialect)):
        return states.Outcome("cancelled", "deleted before it began, as qstat has it", None)
    return states.decide_outcome(dialect, status, None, is_out_of_time(fields))


def is_deleted_before_start(job: Mapping[str, str], dialect: str) -> bool:
    """Whether an array task of OpenPBS was deleted while it waited.

    qstat then reports the array's start and exit status 1, but no run count and no host.
    """
    over = job.get("job_state") in states.OVER
    return dialect == states.OPENPBS and over and not {"run_count", "exec_host"} & job.keys()
