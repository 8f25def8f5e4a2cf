"""The progress of a study: the state of every run, from its result.json files and its scheduler."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import (
    RESULT_STATES,
    RunFolder,
    Submission,
    read_plan_as,
)
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import console
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers import ledger, registry
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.submit.run_state import RunState
from steelyard.wrappers.submit.state_cache import StateCache
from steelyard.wrappers.submit.time_left import runs_per_hour, time_left_s

if TYPE_CHECKING:  # the schedulers' modules take as long as all others, and are often not needed
    from steelyard.wrappers.schedulers.base import Task

RUNNING = ("running",)
WAITING = ("pending", "requeued")
CANCELLED = ("cancelled",)
FAILED = ("failed", "timeout", "node_fail", "out_of_memory", "lost")
CANCELLED_BY_US = "cancelled by `steelyard cancel`"
LOST = "the scheduler no longer knows the job, and it left no result"


@dataclass(frozen=True)
class Failure:
    """A run that failed or was cancelled, with the reason; `folder` and `end_unix_s` are those of
    its last attempt."""

    run_id: str
    variant: str
    condition_label: str
    state: str
    reason: str | None
    folder: str | None = None
    end_unix_s: float | None = None


@dataclass(frozen=True)
class Counts:
    """The runs of one condition, by state."""

    variant: str
    condition_label: str
    total: int
    done: int
    running: int
    waiting: int
    failed: int
    cancelled: int
    planned: int


@dataclass(frozen=True)
class Progress:
    """A study at one moment; `planned` runs are neither done nor submitted."""

    study: str
    study_dir: str
    unix_s: float
    total: int
    done: int
    running: int
    waiting: int
    failed: int
    planned: int
    time_left_s: float | None
    note: str | None  # which scheduler did not answer
    waiting_reasons: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    cancelled: int = 0  # not in any other count
    stuck: dict[str, int] = field(
        default_factory=dict
    )  # part of `waiting`: reason and number of runs that never start
    runs_per_hour: float | None = None
    conditions: list[Counts] = field(default_factory=list)

    @property
    def failed_runs(self) -> list[Failure]:
        """`failures` without cancelled runs."""
        return [one for one in self.failures if one.state in FAILED]

    @property
    def ended(self) -> bool:
        """Whether no run is active, except waiting runs that never start."""
        return self.running == 0 and self.waiting <= sum(self.stuck.values())


def read_progress(study_dir: Path, strict: bool = False) -> Progress:
    """Return the current progress by files and schedulers; ends of runs are cached
    (state_cache.py).

    If a scheduler does not answer, only the files count and `note` says so. With `strict`, raise
    MissingError instead."""
    study = StudyDir(study_dir.absolute())
    stored_study, runs = read_plan_as(study.path, Run)
    note = None
    try:
        with StateCache(study.path) as looks:
            states = read_states(study, runs, last_attempt=looks.last_attempt)
    except MissingError as error:
        if strict:
            raise
        states = read_file_states(study)
        if any(entry.state not in RESULT_STATES for entry in states):
            note = f"{error}; running and waiting are as the files have them"
    return count_states(str(stored_study.get("name") or study.path.stem), study, states, note)


def count_states(
    name: str, study: StudyDir, states: Sequence[RunState], note: str | None = None
) -> Progress:
    """Count the states."""
    waiting = [entry for entry in states if entry.state in WAITING]
    stuck = [entry for entry in waiting if entry.is_stuck]
    now, counts = time.time(), Counter(entry.state for entry in states)
    return Progress(
        study=name,
        study_dir=str(study.path),
        unix_s=now,
        total=len(states),
        done=count_in_states(counts, ("completed",)),
        running=count_in_states(counts, RUNNING),
        waiting=len(waiting),
        failed=count_in_states(counts, FAILED),
        planned=count_in_states(counts, ("planned",)),
        time_left_s=time_left_s([e for e in states if not e.is_stuck], now),
        note=note,
        waiting_reasons=count_reasons(waiting),
        failures=[describe_failure(e) for e in states if e.state in (*FAILED, *CANCELLED)],
        cancelled=count_in_states(counts, CANCELLED),
        stuck=count_reasons(stuck),
        runs_per_hour=runs_per_hour(states, now),
        conditions=count_by_condition(states),
    )


def count_reasons(waiting: Sequence[RunState]) -> dict[str, int]:
    """Return the scheduler's reasons for waiting, with their counts."""
    return dict(Counter(entry.reason for entry in waiting if entry.reason))


def count_by_condition(states: Sequence[RunState]) -> list[Counts]:
    """Return the counts of each condition, ordered by variant and label."""
    groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for entry in states:
        groups[entry.run.variant, entry.run.condition_label][entry.state] += 1
    kinds = (("completed",), RUNNING, WAITING, FAILED, CANCELLED, ("planned",))
    return [
        Counts(variant, label, counts.total(), *(count_in_states(counts, some) for some in kinds))
        for (variant, label), counts in sorted(groups.items())
    ]


def read_file_states(study: StudyDir) -> list[RunState]:
    """Return the states by files alone: started runs count as running, submitted ones as
    waiting."""
    submitted = {run_id for entry in ledger.read_submissions(study) for run_id in entry.run_ids}
    states = []
    for run in read_plan_as(study.path, Run)[1]:
        entry = decide_state(run, read_last_attempt(study, run.run_id), None)
        if entry.state == "lost":
            entry = replace(entry, state="running", reason=None)
        elif entry.state == "planned" and run.run_id in submitted:
            entry = replace(entry, state="pending")
        states.append(entry)
    return states


def count_in_states(found: Mapping[str, int], states: Sequence[str]) -> int:
    """Return how many runs are in one of these states."""
    return sum(found.get(word, 0) for word in states)


def describe_failure(entry: RunState) -> Failure:
    """Return the details of a failed run."""
    run, folder = entry.run, entry.folder
    return Failure(
        run.run_id, run.variant, run.condition_label, entry.state, entry.reason,
        None if folder is None else folder.where, entry.end_unix_s,
    )  # fmt: skip


def read_run_states(study: StudyDir, patient: bool = False) -> list[RunState]:
    """Return the state of every planned run, in the plan's order; `patient`: wait for a lost
    server."""
    return read_states(study, read_plan_as(study.path, Run)[1], patient)


def read_states(
    study: StudyDir,
    runs: Sequence[Run],
    patient: bool = False,
    last_attempt: Callable[[str], RunFolder | None] | None = None,
) -> list[RunState]:
    """Return the state of each of these runs; `last_attempt` is a faster lookup by run id."""
    look = last_attempt or partial(read_last_attempt, study)
    states = {run.run_id: decide_state(run, look(run.run_id), None) for run in runs}
    submissions = ledger.read_submissions(study)
    if any(entry.state != "completed" for entry in states.values()):
        submissions += find_unrecorded_submissions(study, submissions, patient)
        # Query the queue before the files: a run that ends in between has then left its result.
        active = query_active_runs(study, submissions, patient)
        for run in runs:
            if states[run.run_id].state not in RESULT_STATES or run.run_id in active:
                last = read_last_attempt(study, run.run_id)
                states[run.run_id] = decide_state(run, last, active.get(run.run_id))
    unsure = {key for key, entry in states.items() if is_undecided(entry)}
    unsure |= list_doubtful_runs(study, submissions, states)
    for run_id, task in query_ended_runs(study, submissions, unsure).items():
        states[run_id] = apply_task_end(states[run_id], task)
    return list(states.values())


def find_unrecorded_submissions(
    study: StudyDir, submissions: list[Submission], patient: bool
) -> list[Submission]:
    """Return what the scheduler accepted before a submit broke off; its jobs are not lost."""
    if not ledger.find_orphans(study, submissions):
        return []
    from steelyard.wrappers.submit.batch_submission import list_unrecorded

    return list_unrecorded(study, patient)


def list_doubtful_runs(
    study: StudyDir, submissions: Sequence[Submission], states: Mapping[str, RunState]
) -> set[str]:
    """Return completed runs of schedulers under which run.sh's result may be wrong, and those whose
    job was not over when it was cancelled: collect follows the accounting."""
    doubted = {
        run_id
        for entry in submissions
        if entry.scheduler in registry.ENDS_CHILDREN_FIRST
        for run_id in entry.run_ids
    }
    doubted |= {run_id for _, run_id in ledger.read_cancelled(study)}
    return {run_id for run_id in doubted & states.keys() if states[run_id].state == "completed"}


def is_undecided(entry: RunState) -> bool:
    """Return whether only the scheduler knows the end: without a result, or stopped from
    outside."""
    stopped = entry.state == "failed" and study_files.STOPPED.match(entry.reason or "")
    return bool(stopped) or entry.state in ("lost", "planned")


def query_active_runs(
    study: StudyDir, submissions: Sequence[Submission], patient: bool
) -> dict[str, Task]:
    """Return the active runs of all schedulers that the study used."""
    tasks: dict[str, Task] = {}
    for scheduler, group in registry.group_by_scheduler(submissions, study.path, patient):
        tasks |= scheduler.active_runs(group)
    return tasks


def query_ended_runs(
    study: StudyDir, submissions: Sequence[Submission], run_ids: set[str]
) -> dict[str, Task]:
    """Return how those of the given runs ended that are neither active nor have a result."""
    if not run_ids:
        return {}
    from steelyard.wrappers.schedulers.base import NOT_APPLIED, Task

    open_ones = [entry for entry in submissions if not run_ids.isdisjoint(entry.run_ids)]
    cancelled = ledger.read_cancelled(study)
    tasks: dict[str, Task] = {
        run_id: Task("cancelled", CANCELLED_BY_US)
        if (entry.submission_id, run_id) in cancelled
        else Task("lost", LOST)
        for entry in open_ones
        for run_id in entry.run_ids
    }
    for scheduler, group in registry.group_by_scheduler(open_ones, study.path):
        tasks |= scheduler.ended_runs(group)
    refused = {key: task for key, task in tasks.items() if task.reason == NOT_APPLIED}
    errors = read_condition_errors(study, open_ones, refused) if refused else {}
    return {
        run_id: replace(task, reason=errors.get(run_id, task.reason))
        if task.reason == NOT_APPLIED
        else task
        for run_id, task in tasks.items()
        if run_id in run_ids
    }


def read_condition_errors(
    study: StudyDir, submissions: Sequence[Submission], refused: Mapping[str, Task]
) -> dict[str, str]:
    """Return why conditions could not be applied, by run: the last refusal in the output of its
    submission, which runs of equal conditions share; else that of the job's record, because Torque
    returns no output of a job that its prologue refused."""
    from steelyard.analysis.collect import network
    from steelyard.analysis.collect.job_view import find_refusal_reason
    from steelyard.analysis.collect.record_import import find_default_record_dirs
    from steelyard.wrappers.schedulers.base import NOT_APPLIED

    errors: dict[str, str] = {}
    for entry in submissions:
        outputs = {r: study_files.find_output(study.path, entry, r) for r in entry.run_ids}
        lines = {path: list(network.read_refusals(path)) for path in set(outputs.values())}
        for run_id, path in outputs.items():
            task = refused.get(run_id)
            if task is None:
                continue
            error = lines[path][-1] if lines[path] else None
            if error is None and task.job_id is not None:
                error = find_refusal_reason(task.job_id, find_default_record_dirs())
            nothing = f"{path} may say why" if path.is_file() else "its node's log says why"
            errors[run_id] = f"{NOT_APPLIED}: {error or nothing}"
    return errors


def apply_task_end(entry: RunState, task: Task) -> RunState:
    """Return the run's state with the end that its scheduler reports, by the same rule as
    collect."""
    folder = entry.folder
    if entry.state == "completed" and (folder is None or folder.text("job_id") != task.job_id):
        return entry  # of another job of this run, or of an unknown one
    report = study_files.SchedulerReport(task.state, task.reason, task.begun)
    state, reason = study_files.decide_outcome(report, folder)
    if state == entry.state:
        return replace(entry, reason=reason)
    if folder is None and task.state == "completed":  # the job completed without a result
        state, reason = "lost", task.reason
    return RunState(entry.run, state, reason, entry.attempt, entry.start_unix_s, folder=folder)


def read_last_attempt(study: StudyDir, run_id: str) -> RunFolder | None:
    """Return the last attempt by its files; None without an attempt."""
    return study_files.find_last_attempt(study_files.read_run_folders(study.path, run_id))


def decide_state(run: Run, last: RunFolder | None, task: Task | None) -> RunState:
    """Return a run's state from the last attempt's result.json and the run's task in the queue."""
    attempt = last.attempt if last else None
    # An attempt without a readable result.json was started.
    state = last.text("state") or "started" if last else "planned"
    if task is not None:
        over = state in RESULT_STATES and last is not None and last.text("job_id") == task.job_id
        # A waiting task will run, whatever it left before: requeued jobs keep their id.
        if task.state == "pending" or not over:
            return RunState(run, task.state, task.reason, attempt, is_stuck=task.is_stuck)
    if last is None:
        return RunState(run, state)
    start = last.number("start_unix_s")
    if state not in RESULT_STATES:
        return RunState(run, "lost", LOST, attempt, start, folder=last)
    end, elapsed = last.number("end_unix_s"), last.number("elapsed_s")
    return RunState(run, state, last.text("reason"), attempt, start, end, elapsed, last)


def format_progress(progress: Progress) -> str:
    """Return, for example, `demo: 12 done, 4 running, 24 waiting, 0 failed of 40; 1:20 left`."""
    counts = [
        f"{progress.done} done",
        f"{progress.running} running",
        f"{progress.waiting} waiting",
        f"{progress.failed} failed",
    ]
    if progress.cancelled:
        counts.append(f"{progress.cancelled} cancelled")
    text = f"{progress.study}: {', '.join(counts)} of {progress.total}"
    if not progress.ended:
        text += f"; {format_time_left(progress)}"
    reasons = format_reasons(progress.waiting_reasons)
    return text + (f" (waiting for: {reasons})" if reasons and not progress.running else "")


def format_time_left(progress: Progress) -> str:
    """Return, for example, `1:20 left`."""
    if progress.time_left_s is None:
        return "time left unknown yet"
    return f"{console.format_seconds(progress.time_left_s)} left"


def format_reasons(reasons: dict[str, int]) -> str:
    """Return, for example, `2 Priority, 3 Resources`."""
    return ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))


def format_stuck_runs(progress: Progress) -> str | None:
    """Describe runs that can never start, and what to do; None if there are none."""
    if not progress.stuck:
        return None
    stuck = sum(progress.stuck.values())
    return (
        f"{counted(stuck, 'run')} {inflect(stuck, 'waits', 'wait')} for what does not come by itself "
        f"({format_reasons(progress.stuck)}): change what they ask for, or `steelyard cancel` them"
    )
