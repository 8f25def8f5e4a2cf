"""Reads what qstat and the accounting report on the runs of a study."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import FINAL_STATES, AccountingRow, StepRow
from steelyard.analysis.sources.pbs import field_values
from steelyard.analysis.sources.pbs.field_values import split_job_id
from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.schedulers.base import NOT_APPLIED, Task

Attributes = Mapping[str, str]


def find_run(job_id: str, jobs: Mapping[str, Submission]) -> str | None:
    """Return the run that a job or an array task executes; None for a whole array or a foreign
    job."""
    parts = split_job_id(job_id)
    _, index, _ = parts or ("", "", None)
    if parts is None or index == "":
        return None
    entry, task_index = jobs.get(parts.format_array_id() or job_id), int(index or 0)
    return entry.run_ids[task_index] if entry and task_index < len(entry.run_ids) else None


def parse_active(
    jobs_by_id: Mapping[str, Attributes], jobs: Mapping[str, Submission]
) -> dict[str, Task]:
    """Return the waiting and running runs of qstat's output, by run id."""
    tasks = {}
    for job_id, attributes in jobs_by_id.items():
        run_id, letter = find_run(job_id, jobs), attributes.get("job_state", "")
        if run_id is None or not (letter in field_values.WAITING or letter in field_values.RUNNING):
            continue
        waits = letter in field_values.WAITING
        why = waiting_reason(letter, attributes) if waits else None
        never = waits and "can never run" in attributes.get("comment", "").casefold()
        tasks[run_id] = Task("pending" if waits else "running", why, job_id, is_stuck=never)
    return tasks


def waiting_reason(letter: str, attributes: Attributes) -> str | None:
    """Return the scheduler's own comment, or what holds the job; Torque reports at_once as `held`,
    too."""
    if attributes.get("comment"):
        return attributes["comment"]
    if letter == "H" and attributes.get("depend"):
        return "held until the job before it has ended"
    if letter == "H" and "l" in attributes.get("Hold_Types", ""):
        return "held by at_once"
    return field_values.WAITING[letter]


def query_ended(
    query: Callable[[Sequence[str]], Iterable[AccountingRow | StepRow]],
    jobs: Mapping[str, Submission],
) -> dict[str, Task]:
    """Return how runs ended, by run id; empty if the accounting does not answer. The last row of a
    restarted job counts."""
    try:
        rows = list(query(list(jobs)))
    except MissingError:
        return {}
    return dict(list_ends(rows, jobs))


def list_ends(
    rows: Iterable[AccountingRow | StepRow], jobs: Mapping[str, Submission]
) -> Iterator[tuple[str, Task]]:
    """Yield each run that has ended, with its end."""
    for row in rows:
        if isinstance(row, StepRow) or row.state not in FINAL_STATES:
            continue
        run_id = find_run(row.job_id, jobs)
        if run_id is not None:
            refused = row.reason in REFUSED and has_request(row, jobs)
            state, why = ("failed", NOT_APPLIED) if refused else (row.state, row.reason)
            yield run_id, Task(state, why, row.job_id, row.start_unix_s is not None)


def has_request(row: AccountingRow, jobs: Mapping[str, Submission]) -> bool:
    """Return whether the node had to apply a condition before the run."""
    parts = split_job_id(row.job_id)
    entry = jobs.get((parts and parts.format_array_id()) or row.job_id)
    return entry is not None and any(option.startswith("--") for option in entry.options)


# The reasons of jobs that the node's prologue or hook ended before their script began.
REFUSED = frozenset(
    text
    for meanings in field_values.MEANINGS.values()
    for code, (_, text) in meanings.items()
    if code in (-2, -17, -19)
)
