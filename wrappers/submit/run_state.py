"""The state of every run of a study, from its result.json files and its scheduler.

Reading every result.json is most of the time of `status`. So a call that reads many ended runs
writes their results to a file in the study's folder (StateCache), with the identity of their
sources: the run's folder, which changes with every attempt added or removed, and each attempt's
result.json. A later call compares these identities, and reads no result that is unchanged."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from steelyard.analysis.base import file_changes
from steelyard.analysis.base.file_changes import Identity, read_identity
from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import (
    RESULT_FILE,
    RESULT_STATES,
    RunFolder,
    Submission,
    read_plan_as,
)
from steelyard.jobscripts import regular_files
from steelyard.wrappers.schedulers import ledger, registry
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.planned_run import Run

if TYPE_CHECKING:
    from steelyard.wrappers.schedulers.base import Task

RUNNING = ("running",)
WAITING = ("pending", "requeued")
CANCELLED = ("cancelled",)
FAILED = ("failed", "timeout", "node_fail", "out_of_memory", "lost")
CANCELLED_BY_US = "cancelled by `steelyard cancel`"
LOST = "the scheduler no longer knows the job, and it left no result"


@dataclass(frozen=True)
class RunState:
    """The state of a run; `state` is a state of docs/formats.md part 8."""

    run: Run
    state: str
    reason: str | None = None
    attempt: str | None = None  # name of the last attempt's folder
    start_unix_s: float | None = None
    end_unix_s: float | None = None
    elapsed_s: float | None = None
    folder: RunFolder | None = field(default=None, repr=False, compare=False)
    is_stuck: bool = False  # it waits for something that only a person can change


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
    from steelyard.analysis.collect.condition_refusals import read_refusals
    from steelyard.analysis.collect.record_import import find_default_record_dirs
    from steelyard.analysis.job.job_view import find_refusal_reason
    from steelyard.wrappers.schedulers.base import NOT_APPLIED

    errors: dict[str, str] = {}
    for entry in submissions:
        outputs = {r: study_files.find_output(study.path, entry, r) for r in entry.run_ids}
        lines = {path: list(read_refusals(path)) for path in set(outputs.values())}
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


CACHE_FILE = ".status"
FEWEST = 100  # of new runs: reading fewer is as fast as writing the file
STALE_S = 60.0  # an unfinished file that is older has no writer
# Fields of the last attempt's result.json that a status needs.
KEPT = ("state", "reason", "job_id", "start_unix_s", "end_unix_s", "elapsed_s")

# A run's attempts, the index of the last one among them, and its fields KEPT.
Ended = tuple[list[str], int, dict[str, Any]]
Known = tuple[Ended, list[Identity]]  # identities of the run's folder and the attempts' results


class StateCache:
    """The last attempts of runs, for one status of a study."""

    def __init__(self, study_dir: Path) -> None:
        self._study_dir = study_dir
        self._begun_ns = time.monotonic_ns()
        self._runs_fd = -1
        self._known: dict[str, Known] = {}
        self._new: dict[str, Ended] = {}

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):  # nothing was submitted yet
            self._runs_fd = os.open(self._study_dir / "runs", os.O_RDONLY | os.O_DIRECTORY)
            self._known = read_cache(self._study_dir)
        return self

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if error is None and len(self._new) >= FEWEST:
            with contextlib.suppress(OSError):  # not writable, full or busy: no cache
                self._write()
        if self._runs_fd >= 0:
            os.close(self._runs_fd)

    def last_attempt(self, run_id: str) -> RunFolder | None:
        """Return what study_files.find_last_attempt() returns; its `result` may have only the names
        in KEPT."""
        if run_id in self._known:
            (attempts, index, result), before = self._known[run_id]
            if self._identities(run_id, attempts) == before:
                where = f"{self._study_dir}/runs/{run_id}/{attempts[index]}"
                return RunFolder(run_id, attempts[index], where, result, None)
            del self._known[run_id]
        entries = study_files.list_run_entries(self._study_dir, run_id)
        folders = [study_files.read_run_folder(run_id, e.path) for e in entries if e.is_dir()]
        last = study_files.find_last_attempt(folders)
        # The identity of a link does not show changes of its target.
        if last is not None and is_over(folders, last) and not any(e.is_symlink() for e in entries):
            attempts = [folder.attempt for folder in folders]
            result = {name: (last.result or {}).get(name) for name in KEPT}
            self._new[run_id] = attempts, attempts.index(last.attempt), result
        return last

    def _identities(self, run_id: str, attempts: Sequence[str]) -> list[Identity] | None:
        """Return the identities of a run's folder and its attempts' results; None if one cannot be
        opened."""
        results = (f"{run_id}/{attempt}/{RESULT_FILE}" for attempt in attempts)
        try:
            return [read_identity(path, self._runs_fd) for path in (run_id, *results)]
        except OSError:
            return None

    def _write(self) -> None:
        """Replace the cache's file atomically by one with all valid runs."""
        temporary = self._study_dir / f"{CACHE_FILE}.part"
        fd = create_file(temporary)
        try:
            # The file system's clock set the times of the files.
            begun_ns = os.fstat(fd).st_mtime_ns - (time.monotonic_ns() - self._begun_ns)
            if self._restore_unchanged(begun_ns - file_changes.RACE_NS) >= FEWEST:
                ledger.write_all(fd, encode_states(self._known))
                temporary.rename(self._study_dir / CACHE_FILE)
            else:
                temporary.unlink()
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def _restore_unchanged(self, since_ns: int) -> int:
        """Add the new runs that have not changed since then; return their number."""
        count = 0
        for run_id, ended in self._new.items():
            found = self._identities(run_id, ended[0])
            if found is not None and max(map(file_changes.latest_change_ns, found)) < since_ns:
                self._known[run_id] = ended, found
                count += 1
        return count


def is_over(folders: Sequence[RunFolder], last: RunFolder) -> bool:
    """Return whether the last attempt has ended, and every attempt has a usable result."""
    return last.text("state") in RESULT_STATES and all(one.result is not None for one in folders)


def create_file(temporary: Path) -> int:
    """Create the file to write to. Raises OSError if the folder is not ours, or another call
    writes."""
    if temporary.parent.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(temporary))
    with contextlib.suppress(FileNotFoundError):
        if time.time() - temporary.lstat().st_mtime > STALE_S:
            temporary.unlink()
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def encode_states(known: Mapping[str, Known]) -> bytes:
    """Return the file's content: a digest, and the JSON that it covers."""
    body = json.dumps(
        {"reader": file_changes.digest_program(), "runs": known}, separators=(",", ":")
    ).encode()
    return f"{file_changes.digest(body)}\n".encode() + body


def read_cache(study_dir: Path) -> dict[str, Known]:
    """Return the cached runs; {} if the file is damaged, or of another owner or Steelyard
    version."""
    path = study_dir / CACHE_FILE
    try:
        if path.lstat().st_uid != study_dir.stat().st_uid:
            return {}
        checksum, _, body = regular_files.read_regular(path, regular_files.PLAN_BYTES).partition(
            b"\n"
        )
        document = json.loads(body) if file_changes.digest(body).encode() == checksum else {}
        runs: dict[str, Known] = (
            document["runs"] if document.get("reader") == file_changes.digest_program() else {}
        )
    except (OSError, ValueError):
        return {}
    return runs
