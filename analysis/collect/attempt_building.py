"""Attempts of runs, built from the accounting, the submissions and the run folders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from steelyard.analysis.collect.job_index import (
    ACCOUNTING_LAG_S,
    CLOCK_SLACK_S,
    JobIndex,
    NumberedRow,
)
from steelyard.analysis.sources import accounting_readers, study_files
from steelyard.analysis.sources.accounting import WAITING_STATES, AccountingRow
from steelyard.analysis.sources.records import Record
from steelyard.analysis.sources.study_files import NO_JOB, RESULT_STATES, RunFolder, Submission


@dataclass(slots=True)
class Attempt:
    """One execution of a run; the fields up to `stamp` are the columns of the table `attempts`."""

    run_id: str
    attempt: str
    scheduler: str
    state: str
    cluster: str | None = None
    job_id: str | None = None
    array_job_id: str | None = None
    array_task_id: str | None = None
    restart_count: int | None = None
    reason: str | None = None
    start_unix_s: float | None = None
    end_unix_s: float | None = None
    elapsed_s: float | None = None
    wait_s: float | None = None
    exit_code: int | None = None
    clients: int | None = None
    tries: int | None = None
    nodes: tuple[str, ...] = ()
    stamp: str | None = None
    # The following fields are not columns of the table:
    order: tuple[float, int] = (0.0, 0)  # by submission, then restart: the largest one counts
    submission_id: str | None = None
    job_window: tuple[float, float] | None = None  # range of the job's record's start time
    folder: RunFolder | None = None
    row: AccountingRow | None = None
    records: dict[str, Record] = field(default_factory=dict)

    @property
    def has_no_job(self) -> bool:
        """Whether the run was executed outside any job. Its records are then in its own folder."""
        return self.folder is not None and self.job_id is None

    @property
    def is_over(self) -> bool:
        """Whether the attempt started and has ended, so that all of its files must exist."""
        return self.state not in WAITING_STATES and self.start_unix_s is not None


def build_waiting_attempts(
    submission: Submission, row: AccountingRow, started: set[str]
) -> list[Attempt]:
    """Return attempts for array tasks without a job id: they wait, or were canceled before."""
    # Slurm truncates long lists of tasks. An empty list means all tasks that have not started.
    tasks = row.waiting_tasks or range(len(submission.run_ids))
    return [
        Attempt(
            run_id=submission.run_ids[task],
            attempt=f"{submission.job_id}_{task}.0",
            scheduler=submission.scheduler,
            state=row.state,
            cluster=row.cluster,
            array_job_id=submission.job_id,
            array_task_id=str(task),
            restart_count=0,
            reason=row.reason,
            order=(submission.submitted_unix_s, 0),
            row=row,
        )
        for task in tasks
        if task < len(submission.run_ids) and submission.run_ids[task] not in started
    ]


def build_from_row(numbered: NumberedRow, folder: RunFolder | None) -> Attempt:
    """Return the attempt of an accounting row, completed by its run folder if it has one."""
    row = numbered.row
    report = study_files.SchedulerReport(row.state, row.reason, row.start_unix_s is not None)
    state, reason = study_files.decide_outcome(report, folder)
    attempt = Attempt(
        run_id=numbered.run_id,
        attempt=numbered.attempt,
        scheduler=numbered.submission.scheduler,
        state=state,
        cluster=row.cluster,
        job_id=row.job_id,
        array_job_id=row.array_job_id,
        array_task_id=row.array_task_id,
        restart_count=numbered.restart,
        reason=reason,
        start_unix_s=row.start_unix_s,
        end_unix_s=row.end_unix_s,
        elapsed_s=row.elapsed_s,
        exit_code=row.exit_code,
        nodes=row.nodes,
        order=(numbered.submission.submitted_unix_s, numbered.restart),
        submission_id=numbered.submission.submission_id,
        row=row,
    )
    if row.start_unix_s is not None:
        end = row.end_unix_s if row.end_unix_s is not None else float("inf")
        attempt.job_window = (row.start_unix_s - CLOCK_SLACK_S, end + CLOCK_SLACK_S)
        if row.submit_unix_s is not None:
            attempt.wait_s = row.start_unix_s - row.submit_unix_s
    add_folder(attempt, folder)
    return attempt


def add_folder(attempt: Attempt, folder: RunFolder | None) -> None:
    """Add the folder, and take times, clients and exit code from its result.json.

    These times are finer than the accounting's. Its nodes are only used if the accounting has none.
    """
    attempt.folder = folder
    if folder is None or folder.result is None:
        return
    start, end = folder.number("start_unix_s"), folder.number("end_unix_s")
    attempt.start_unix_s = attempt.start_unix_s if start is None else start
    attempt.end_unix_s = attempt.end_unix_s if end is None else end
    elapsed = folder.number("elapsed_s")
    attempt.elapsed_s = attempt.elapsed_s if elapsed is None else elapsed
    clients = folder.number("clients")
    attempt.clients = None if clients is None else int(clients)
    attempt.tries = folder.tries
    attempt.nodes = attempt.nodes or folder.nodes
    codes = [code for code in folder.exit_codes if code is not None]
    exit_code = attempt.exit_code
    # sacct of 22.05 reports 137 as 9.
    if codes and (exit_code is None or max(codes) == exit_code + 128):
        attempt.exit_code = max(codes)


@dataclass(frozen=True, slots=True)
class KnownJobs:
    """What the accounting, the submissions and the run folders contain of a study's jobs."""

    submissions: Sequence[Submission]
    index: JobIndex
    numbered: Sequence[NumberedRow]
    waiting: Sequence[tuple[Submission, AccountingRow]]  # rows of array tasks without a job id
    folders: Mapping[tuple[str, str], RunFolder]  # by run and attempt
    answered: frozenset[str]  # submissions whose jobs the accounting has answered for
    now_unix_s: float
    at_work: str | None = None  # submission that a local submit is executing


def find_scheduler(folder: RunFolder, submission: Submission | None) -> str:
    """Return the scheduler of a run folder that does not name it.

    It is the scheduler of the submission, else the one whose job ids have this form.
    """
    if not folder.has_job:
        return NO_JOB
    if submission is not None and submission.job_id is not None:
        return submission.scheduler
    return accounting_readers.scheduler_of_job(folder.attempt.rpartition(".")[0])


def build_from_folder(
    folder: RunFolder, submission: Submission | None, known: KnownJobs
) -> Attempt:
    """Return an attempt that only its run folder shows: local, or not (yet) in the accounting."""
    answered = submission is None or submission.submission_id in known.answered
    at_work = submission is not None and submission.submission_id == known.at_work
    is_new = known.now_unix_s - (folder.began_unix_s or 0.0) < ACCOUNTING_LAG_S
    name, _, restart = folder.attempt.rpartition(".")
    state, why = folder.text("state"), folder.text("reason")
    is_open = state == "started" or not folder.has_result
    attempt = Attempt(
        run_id=folder.run_id,
        attempt=folder.attempt,
        scheduler=folder.text("scheduler") or find_scheduler(folder, submission),
        state="lost",
        job_id=folder.text("job_id") or name if folder.has_job else None,
        restart_count=int(restart) if restart.isdigit() and folder.has_job else None,
        reason=why,
    )
    if state in RESULT_STATES:
        attempt.state = state
    elif is_open and folder.has_job and not answered:
        attempt.state = "running"
        attempt.reason = "still running, or killed: the accounting could not be asked"
    elif is_open and not folder.has_job and at_work:
        attempt.state = "running"
    elif is_open and is_new:
        attempt.state = "running"
        attempt.reason = "started a moment ago, not in the accounting yet"
    else:
        attempt.reason = folder.problem or (
            "result.json says 'started', and no scheduler knows more: killed, or still running"
        )
    add_folder(attempt, folder)
    begun = attempt.start_unix_s or (submission.submitted_unix_s if submission else 0.0)
    attempt.order = (
        submission.submitted_unix_s if submission else begun,
        int(restart) if restart.isdigit() else 0,
    )
    attempt.submission_id = submission.submission_id if submission else None
    if attempt.start_unix_s is not None:
        end = attempt.end_unix_s if attempt.end_unix_s is not None else float("inf")
        attempt.job_window = (attempt.start_unix_s - CLOCK_SLACK_S, end + CLOCK_SLACK_S)
    return attempt


def build_unlisted_attempt(
    submission: Submission, task: int, answered: bool, job_known: bool, now_unix_s: float
) -> Attempt:
    """Return the attempt of a submitted run that neither accounting nor folder shows.

    `job_known`: the accounting has other tasks of the run's array.
    """
    attempt = Attempt(
        run_id=submission.run_ids[task],
        attempt=f"{submission.job_id}_{task}.0",
        scheduler=submission.scheduler,
        state="pending",
        cluster=submission.cluster,
        array_job_id=submission.job_id,
        array_task_id=str(task),
        restart_count=0,
        order=(submission.submitted_unix_s, 0),
    )
    if not answered:
        attempt.reason = "not known: the accounting could not be asked"
    elif now_unix_s - submission.submitted_unix_s < ACCOUNTING_LAG_S:
        attempt.reason = "submitted a moment ago, not in the accounting yet"
    elif job_known:
        # Slurm's accounting has no row for a single array task that was canceled while it waited.
        attempt.state = "cancelled"
        attempt.reason = "not in the accounting, unlike its array: cancelled while it waited"
    else:
        attempt.state = "lost"
        attempt.reason = "the scheduler no longer knows the job, and it left no result"
    return attempt


def build_attempts(known: KnownJobs) -> list[Attempt]:
    """Return all attempts of a study."""
    attempts: dict[tuple[str, str], Attempt] = {}
    # (run, submission) for which an attempt exists
    begun: set[tuple[str, str]] = set()
    for numbered in known.numbered:
        key = numbered.run_id, numbered.attempt
        attempts[key] = build_from_row(numbered, known.folders.get(key))
        begun.add((numbered.run_id, numbered.submission.submission_id))
    for key, folder in known.folders.items():
        if key not in attempts:
            submission = known.index.find_run_submission(folder.run_id, folder.began_unix_s)
            attempts[key] = build_from_folder(folder, submission, known)
            if submission is not None:
                begun.add((folder.run_id, submission.submission_id))
    mark_requeued(attempts.values())
    with_result = {a.run_id for a in attempts.values() if a.folder and a.state in RESULT_STATES}
    for attempt in build_unstarted_attempts(known, begun):
        if attempt.state == "lost" and attempt.run_id in with_result:
            attempt.order = (0.0, 0)  # a result counts more than a job without any trace
        attempts[attempt.run_id, attempt.attempt] = attempt
    return list(attempts.values())


def mark_requeued(attempts: Iterable[Attempt]) -> None:
    """Mark the attempts that a later start of the same job shows to be over.

    This needs no accounting.
    """
    last: dict[tuple[str, str | None], int] = defaultdict(int)
    attempts = list(attempts)
    for attempt in attempts:
        key = attempt.run_id, attempt.job_id
        last[key] = max(last[key], attempt.restart_count or 0)
    for attempt in attempts:
        is_open = attempt.row is None and attempt.state in ("running", "lost")
        if is_open and (attempt.restart_count or 0) < last[attempt.run_id, attempt.job_id]:
            attempt.state, attempt.reason = "requeued", "the job was started again"


def build_unstarted_attempts(
    known: KnownJobs, with_jobs: set[tuple[str, str]]
) -> Iterator[Attempt]:
    """Yield an attempt for each submitted run that has no job yet, or that no source reports."""
    rows: dict[str, list[AccountingRow]] = defaultdict(list)
    for submission, row in known.waiting:
        rows[submission.submission_id].append(row)
    in_accounting = {n.submission.submission_id for n in known.numbered} | set(rows)
    for submission in known.submissions:
        if submission.job_id is None:
            continue
        started = {r for r in submission.run_ids if (r, submission.submission_id) in with_jobs}
        for row in rows[submission.submission_id]:
            for attempt in build_waiting_attempts(submission, row, started):
                started.add(attempt.run_id)
                yield attempt
        is_answered = submission.submission_id in known.answered
        job_known = submission.submission_id in in_accounting
        for task, run_id in enumerate(submission.run_ids):
            if run_id not in started:
                yield build_unlisted_attempt(
                    submission, task, is_answered, job_known, known.now_unix_s
                )
