"""Reads what squeue and sacct report on the runs of a study."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.sources.accounting import FINAL_STATES, AccountingRow
from steelyard.analysis.sources.sacct import INDEX, Sacct, format_utc
from steelyard.analysis.sources.slurm_field_values import STATES, parse_waiting_tasks
from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.schedulers.base import NOT_APPLIED, Task, index_by_job
from steelyard.wrappers.schedulers.retries import CommandError
from steelyard.wrappers.schedulers.slurm import command

# Array job, index, raw id, state, reason. --array: a line for every task of an array.
SQUEUE = ("squeue", "--noheader", "--array", "--format=%F|%K|%A|%T|%r")
WAITING = ("pending", "requeued")
CLOCKS_MAY_DIFFER_S = 300
# Reasons (job_reason_str of Slurm's src/common/job_state_reason.c) that no other job's end removes.
STUCK = re.compile(
    r"PartitionNodeLimit|PartitionTimeLimit|PartitionInactive|DependencyNeverSatisfied"
    r"|BadConstraints|InvalidAccount|InvalidQOS|AccountNotAllowed|QOSNotAllowed"
    r"|launch failed requeued held|JobHeld(User|Admin)|(Assoc|QOS|Job)\w*Per(Job|Node)\w*"
    r"|(Assoc|QOS)MaxWall\w*|MaxMemPerLimit"
)


def query_squeue(submissions: Sequence[Submission], patient: bool) -> dict[str, Task]:
    """Return the waiting and running runs, by run id."""
    jobs = index_by_job(submissions)
    if not jobs:
        return {}
    query = command.run if patient else command.run_once
    try:
        text = query([*SQUEUE, f"--jobs={','.join(jobs)}"])
    except CommandError as error:
        if "Invalid job id" in error.message:  # all of them ended long ago
            return {}
        raise
    return parse_squeue(text, jobs)


def parse_squeue(text: str, jobs: Mapping[str, Submission]) -> dict[str, Task]:
    """Return the runs in lines of SQUEUE's format, by run id; lines of other jobs are skipped."""
    tasks = {}
    for line in text.splitlines():
        fields = line.split("|", 4)
        if len(fields) != 5 or fields[0] not in jobs:
            continue
        array_job, indices, raw_id, state, reason = fields
        waits = STATES.get(state) in WAITING
        task = Task(
            state="pending" if waits else "running",
            reason=reason if waits and reason != "None" else None,
            job_id=None if raw_id == array_job and waits else raw_id,
            is_stuck=waits and STUCK.fullmatch(reason) is not None,
        )
        for run_id in select_runs(jobs[array_job], expand_indices(indices)):
            tasks[run_id] = task
    return tasks


def select_runs(submission: Submission, indices: Iterable[int]) -> Iterator[str]:
    """Yield the runs of some array indices."""
    for index in indices:
        if index < len(submission.run_ids):
            yield submission.run_ids[index]


def expand_indices(indices: str) -> list[int]:
    """Return each index of `[3-5,9%2]` or `3`; empty if the text has no index, as for jobs that are
    no array."""
    try:
        return list(parse_waiting_tasks(indices.strip("[]").partition("%")[0]))
    except UsageError:
        return []


# A job without nodes never began, whatever Start it has.
ENDED_FIELDS = ("State", "ExitCode", "Start", "NodeList")


def query_sacct(submissions: Sequence[Submission]) -> dict[str, Task]:
    """Return how runs ended, by run id; empty without accounting, or if it does not answer."""
    jobs = index_by_job(submissions)
    if not jobs:
        return {}
    since = start_option(min(entry.submitted_unix_s for entry in jobs.values()))
    which = (since, f"--jobs={','.join(jobs)}")
    try:
        return parse_ended(Sacct(tries=1).read_starts(ENDED_FIELDS, *which), jobs)
    except MissingError:
        return {}


def start_option(unix_s: float) -> str:
    """Return sacct's option for jobs since then: job ids are used again."""
    return f"--starttime={format_utc(unix_s - CLOCKS_MAY_DIFFER_S)}"


def end_reason(state: str, exit_code: str) -> str:
    """Return a sentence on a job that left no result; run.sh itself never exits with 4."""
    if state == "FAILED" and exit_code.partition(":")[0] == "4":
        return NOT_APPLIED
    return f"sacct: {state}"


def parse_ended(rows: Iterable[AccountingRow], jobs: Mapping[str, Submission]) -> dict[str, Task]:
    """Parse array tasks that have ended; the last row of a requeued task counts."""
    tasks = {}
    for row in rows:
        entry = jobs.get(row.array_job_id or "")
        if entry is None or row.state not in FINAL_STATES:
            continue
        state, code = row.fields[INDEX["State"]], row.fields[INDEX["ExitCode"]]
        begun = row.start_unix_s is not None
        task = Task(row.state, end_reason(state, code), row.job_id, begun)
        own = () if row.array_task_id is None else (int(row.array_task_id),)
        for run_id in select_runs(entry, own or row.waiting_tasks):
            tasks[run_id] = task
    return tasks
