"""Looks up jobs by the ids that a user types, in the accounting and among the nodes' records.

Several jobs take one query of the accounting, then each job's records.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.collect.job_index import age_sort_key, find_earlier_starts
from steelyard.analysis.job.job_view import JobView, find_records
from steelyard.analysis.sources import admin_comment
from steelyard.analysis.sources.accounting import Accounting, AccountingRow, StepRow
from steelyard.analysis.sources.record_folders import find_job_sources, list_job_ids
from steelyard.jobscripts.plurals import counted

FEW = 20  # up to so many jobs, samples of truncated or unfinished records are read


class ArrayError(UsageError):
    """The id is that of an array with several tasks."""


class OtherSource(Protocol):
    """Another source, which is asked for what neither accounting nor records have."""

    def add_start(self, view: JobView) -> None:
        """Set the view's row and allocation, if this source has the job."""

    def add_nodes(self, view: JobView) -> None:
        """Add nodes whose records no longer exist as files."""


def look_up(
    job_id: str,
    record_dirs: Sequence[Path],
    accounting: Accounting,
    elsewhere: OtherSource | None = None,
) -> JobView:
    """Return the job of this id, as a user types it: `4711`, `4711_3`, `4711+1` or `4711[3].srv`.

    Raises UsageError when the text is no job id or matches several jobs, and MissingError when
    neither the accounting nor a record has the job.
    """
    if not accounting.job_ids.fullmatch(job_id):
        raise UsageError(
            f"'{job_id}' is no job id: expected {accounting.job_ids_description}", job_id
        )
    view = JobView(job_id)
    choose_start(view, query_start(view, accounting), accounting)
    if view.row is None and elsewhere is not None:
        elsewhere.add_start(view)
    find_records(view, record_dirs, find_raw_id(view, record_dirs, accounting))
    if elsewhere is not None:
        elsewhere.add_nodes(view)
    if view.row is None and not view.nodes:
        where = ", ".join(str(path) for path in record_dirs)
        raise MissingError(
            f"job {job_id} is not known: {'; '.join(view.missing)}. Is it a job of this cluster "
            f"({accounting.server_variable}), and are its records elsewhere (--record-dir, now {where})?"
        )
    return view


@dataclass(frozen=True, slots=True)
class Start:
    """A start of a job, or the waiting tasks of an array, and its steps."""

    row: AccountingRow
    steps: list[AccountingRow | StepRow] = field(default_factory=list)


def group_starts(rows: Iterable[AccountingRow | StepRow]) -> list[Start]:
    """Group rows by start. Each job's row must come before its steps."""
    found: list[Start] = []
    for row in rows:
        if isinstance(row, AccountingRow) and row.step is None:
            found.append(Start(row))
        elif found and found[-1].row.job_id == row.job_id:
            found[-1].steps.append(row)
    return found


def query_start(view: JobView, accounting: Accounting) -> list[Start]:
    """Return the starts of the job in the accounting; add a failure to `missing`."""
    try:
        found = group_starts(accounting.rows([view.job_id]))
    except MissingError as error:
        view.missing.append(f"accounting: {error}")
        return []
    if not found:
        view.missing.append("accounting: it does not know this job")
    return found


def choose_start(view: JobView, found: Sequence[Start], accounting: Accounting) -> None:
    """Set the view's last start of the job; raise ArrayError for an array with several tasks."""
    tasks = {format_task_name(start.row) for start in found if start.row.array_job_id is not None}
    if len(tasks) > 1:
        examples = ", ".join(sorted(tasks, key=natural_sort_key)[:10]) + (
            " …" if len(tasks) > 10 else ""
        )
        raise ArrayError(
            f"{view.job_id} is an array of {counted(len(tasks), 'job')}: ask for one of {examples}",
            view.job_id,
        )
    leader = min((start.row.het_offset or 0 for start in found), default=0)
    wanted = view.job_id.partition("+")[2]
    mine = [s for s in found if (s.row.het_offset or 0) == (int(wanted) if wanted else leader)]
    if len(found) > len(mine):
        view.notes.append("one component of a heterogeneous job: ask for the others by ID+1, …")
    if mine:
        set_last_start(view, mine, accounting)


def set_last_start(view: JobView, mine: Sequence[Start], accounting: Accounting) -> None:
    """Set the last of a job's starts, its allocation and its AdminComment."""
    mine = sorted(mine, key=lambda start: age_sort_key(start.row))
    row = view.row = mine[-1].row
    view.allocation = accounting.read_allocation(row, mine[-1].steps)
    view.earlier_starts, view.other_starts = find_earlier_starts([start.row for start in mine])
    if row.reported_by is not None:
        view.notes.append(
            f"{row.reported_by} answered: the accounting cannot be read here, or does not have this job yet"
        )
    if row.admin_comment:
        view.admin_comment = admin_comment.read_own_comment(row.admin_comment)


def format_task_name(row: AccountingRow) -> str:
    """Return `4711_3`, or for waiting tasks the array's job id and their number."""
    return row.task_id or f"{row.array_job_id}_[{len(row.waiting_tasks)} waiting]"


def natural_sort_key(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts 4711_10 behind 4711_9."""
    return [
        (int(token), "") if token.isdigit() else (-1, token) for token in re.split(r"(\d+)", text)
    ]


def find_raw_id(view: JobView, record_dirs: Sequence[Path], accounting: Accounting) -> str:
    """Return the name of the folder with the job's records.

    Without an accounting row, it is found among the existing folders. Raises UsageError when
    several match.
    """
    if view.row is not None:
        return view.row.job_id
    if accounting.ids_match_exactly or any(
        find_job_sources(path, view.job_id) for path in record_dirs
    ):
        return view.job_id  # else list every name: takes a second for a million jobs
    ids = (name for path in record_dirs for name in list_job_ids(path))
    names = {name for name in ids if accounting.matches_id(view.job_id, name)}
    if len(names) > 1:
        examples = ", ".join(sorted(names, key=natural_sort_key)[:10])
        raise UsageError(f"{view.job_id} could be any of {examples}: ask for one", view.job_id)
    return names.pop() if len(names) == 1 else view.job_id


def look_up_jobs(
    job_ids: Sequence[str],
    record_dirs: Sequence[Path],
    accounting: Accounting,
    elsewhere: OtherSource | None = None,
) -> tuple[list[JobView], list[str]]:
    """Return every job that these ids name (of arrays each task), and why others are unknown.

    Raises UsageError for invalid job ids.
    """
    for text in job_ids:
        if not accounting.job_ids.fullmatch(text):
            expected = accounting.job_ids_description
            raise UsageError(f"'{text}' is no job id: expected {expected}", text)
    try:
        found = query_jobs(job_ids, accounting)
    except MissingError:
        found = []
    views = make_views(found, record_dirs, accounting)
    known = {name for start in found for name in list_names(start, accounting)}
    unanswered = [text for text in job_ids if not is_answered(text, known, accounting)]
    unknown = []
    for text in unanswered:
        try:
            views.append(look_up(text, record_dirs, accounting, elsewhere))
        except MissingError as error:
            unknown.append(str(error))
    return views, unknown


def query_jobs(job_ids: Sequence[str], accounting: Accounting) -> list[Start]:
    """Return the starts of these jobs, in the order of chunks of ids."""
    size = accounting.chunk_size
    chunks = [job_ids[begin : begin + size] for begin in range(0, len(job_ids), size)]
    return [start for chunk in chunks for start in group_starts(accounting.rows(chunk))]


def list_names(start: Start, accounting: Accounting) -> set[str]:
    """Return all names of a job, and of its array."""
    row = start.row
    written = row.fields[accounting.fields.index("JobID")]
    return {name for name in (row.job_id, row.task_id, row.array_job_id, written) if name}


def is_answered(typed: str, known: Iterable[str], accounting: Accounting) -> bool:
    """Whether an answer is of the id that a user typed."""
    return typed in known or any(accounting.matches_id(typed, name) for name in known)


def make_views(
    found: Iterable[Start], record_dirs: Sequence[Path], accounting: Accounting
) -> list[JobView]:
    """Return the last start of each job; the waiting tasks of an array are one job."""
    jobs: dict[tuple[str, bool], list[Start]] = {}
    for start in found:
        jobs.setdefault((start.row.job_id, start.row.waits_in_array), []).append(start)
    views = []
    for (job_id, waits), mine in jobs.items():
        row = mine[-1].row
        view = JobView(format_task_name(row) if waits else row.task_id or job_id)
        set_last_start(view, mine, accounting)
        if not waits:
            few = len(jobs) <= FEW
            find_records(view, record_dirs, job_id, with_samples=few, within_window=not few)
        views.append(view)
    return views
