"""Looks up several jobs: one query of the accounting, then each job's records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.collect.job_view import (
    JobView,
    OtherSource,
    Start,
    find_records,
    format_task_name,
    group_starts,
    look_up,
    set_last_start,
)
from steelyard.analysis.sources.accounting import Accounting

FEW = 20  # up to so many jobs, samples of truncated or unfinished records are read


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
