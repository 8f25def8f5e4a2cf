"""What squeue and sacct say about the runs of a study."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.schedulers import slurm_command
from steelyard.wrappers.schedulers.base import NOT_APPLIED, Task
from steelyard.wrappers.schedulers.slurm_command import CommandError

# Array job, index, raw id, state, reason. -r: a line for every task of an array.
SQUEUE = ("squeue", "--noheader", "--array", "--format=%F|%K|%A|%T|%r")
SACCT = ("sacct", "--noheader", "--allocations", "--parsable2", "--noconvert", "--duplicates")
CLOCKS_MAY_DIFFER_S = 300

WAITING = {"PENDING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT", "RESV_DEL_HOLD"}
ENDED = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "CANCELLED": "cancelled",
    "PREEMPTED": "cancelled",
    "REVOKED": "cancelled",
    "NODE_FAIL": "node_fail",
    "BOOT_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "REQUEUED": "requeued",
}


def ask_squeue(submissions: Sequence[Submission], patient: bool) -> dict[str, Task]:
    """Waiting and running runs, by run id."""
    jobs = by_job(submissions)
    if not jobs:
        return {}
    ask = slurm_command.run if patient else slurm_command.run_once
    try:
        text = ask([*SQUEUE, f"--jobs={','.join(jobs)}"])
    except CommandError as error:
        if "Invalid job id" in error.message:  # all of them ended long ago
            return {}
        raise
    return parse_squeue(text, jobs)


def by_job(submissions: Sequence[Submission]) -> dict[str, Submission]:
    """Submissions by job id."""
    return {entry.job_id: entry for entry in submissions if entry.job_id is not None}


def parse_squeue(text: str, jobs: Mapping[str, Submission]) -> dict[str, Task]:
    """Lines of SQUEUE's format; other jobs' lines are passed over."""
    tasks = {}
    for line in text.splitlines():
        fields = line.split("|", 4)
        if len(fields) != 5 or fields[0] not in jobs:
            continue
        array_job, indices, raw_id, state, reason = fields
        task = Task(
            state="pending" if state in WAITING else "running",
            reason=reason if state in WAITING and reason != "None" else None,
            job_id=None if raw_id == array_job and state in WAITING else raw_id,
        )
        for run_id in runs_of(jobs[array_job], indices):
            tasks[run_id] = task
    return tasks


def runs_of(submission: Submission, indices: str) -> Iterator[str]:
    """The runs of some array indices."""
    for index in expand(indices):
        if index < len(submission.run_ids):
            yield submission.run_ids[index]


def expand(indices: str) -> Iterator[int]:
    """`[3-5,9%2]` or `3`: each index. Anything that is no number is passed over."""
    for part in indices.strip("[]").partition("%")[0].split(","):
        match = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part)
        if match:
            first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
            yield from range(first, last + 1, step)


def ask_sacct(submissions: Sequence[Submission]) -> dict[str, Task]:
    """What became of runs, by run id; nothing where accounting is off or does not answer."""
    jobs = by_job(submissions)
    if not jobs:
        return {}
    since = min(entry.submitted_unix_s for entry in jobs.values())
    try:
        text = slurm_command.run_once(
            [
                *SACCT,
                "--format=JobID,JobIDRaw,State,ExitCode",
                f"--starttime={slurm_time(since)}",
                f"--jobs={','.join(jobs)}",
            ]
        )
    except (CommandError, slurm_command.LostError):
        return {}
    return parse_sacct(text, jobs)


def slurm_time(unix_s: float) -> str:
    """A time as sacct reads it where we call it, in UTC (slurm_environment.own), a little earlier:
    job ids are used again."""
    early = datetime.fromtimestamp(unix_s - CLOCKS_MAY_DIFFER_S, UTC)
    return early.strftime("%Y-%m-%dT%H:%M:%S")


def why_ended(state: str, exit_code: str) -> str:
    """A job that left no result, in a sentence; run.sh itself never exits with 4."""
    if state == "FAILED" and exit_code.partition(":")[0] == "4":
        return NOT_APPLIED
    return f"sacct: {state}"


def parse_sacct(text: str, jobs: Mapping[str, Submission]) -> dict[str, Task]:
    """Lines `JobID|JobIDRaw|State|ExitCode`; of a requeued task the last line counts."""
    tasks = {}
    for line in text.splitlines():
        fields = line.split("|")
        if len(fields) != 4 or "_" not in fields[0]:
            continue
        array_job, _, indices = fields[0].partition("_")
        state = ENDED.get(fields[2].split(" ", 1)[0])
        if state is None or array_job not in jobs:
            continue
        task = Task(state, why_ended(fields[2], fields[3]), fields[1])
        for run_id in runs_of(jobs[array_job], indices):
            tasks[run_id] = task
    return tasks
