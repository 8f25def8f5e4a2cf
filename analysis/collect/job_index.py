"""Matches jobs of the accounting to runs and attempts.

Jobs are matched by id first and time second, because job ids are reused: after the scheduler's
highest id, and by every temporary cluster from 1.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.study_files import Submission

# Seconds by which clocks of the submitting host, the controller and the nodes may differ.
CLOCK_SLACK_S = 60.0
# A job appears in the accounting some seconds after its submission.
ACCOUNTING_LAG_S = 120.0
# A job that was submitted later than this after the submission here is another one.
LATE_S = 600.0


def find_latest_before(
    submissions: Iterable[Submission], unix_s: float | None
) -> Submission | None:
    """Return the last submission that can have caused something at this time."""
    fitting = (
        s
        for s in submissions
        if unix_s is not None and s.submitted_unix_s - CLOCK_SLACK_S <= unix_s
    )
    return max(fitting, key=lambda s: s.submitted_unix_s, default=None)


class JobIndex:
    """Finds the submission and the run of a row of the accounting."""

    def __init__(self, submissions: Iterable[Submission]) -> None:
        self._by_job: dict[str, list[Submission]] = defaultdict(list)
        self._by_run: dict[str, list[Submission]] = defaultdict(list)
        for submission in submissions:
            if submission.job_id is not None:
                self._by_job[submission.job_id].append(submission)
            for run_id in submission.run_ids:
                self._by_run[run_id].append(submission)

    def find_submission(self, row: AccountingRow) -> Submission | None:
        """Return the submission that created this job."""
        same_id = self._by_job.get(row.array_job_id or row.job_id, ())
        return find_latest_before(
            (s for s in same_id if None in (s.cluster, row.cluster) or s.cluster == row.cluster),
            row.submit_unix_s,
        )

    @staticmethod
    def can_be_from(submission: Submission, row: AccountingRow) -> bool:
        """Whether the job can come from that submission.

        A first start has the submit time of the submission. Each requeue sets a new submit time.
        """
        latest = submission.submitted_unix_s + LATE_S
        is_late = row.submit_unix_s is not None and row.submit_unix_s > latest
        return not (row.restarts == 0 and is_late and row.step is None)

    def compute_age_gap_s(self, row: AccountingRow) -> tuple[Submission, float] | None:
        """Return the submission with a row's job id that is newer than the row, and by how many
        seconds.

        None: the row fits, or no submission has its id.
        """
        same_id = self._by_job.get(row.array_job_id or row.job_id, ())
        if row.submit_unix_s is None or self.find_submission(row) is not None:
            return None
        off = [(s, s.submitted_unix_s - row.submit_unix_s) for s in same_id]
        return min(off, key=lambda pair: pair[1], default=None)

    def find_run_submission(self, run_id: str, start_unix_s: float | None) -> Submission | None:
        """Return the submission of a run's attempt that started at this time."""
        return find_latest_before(self._by_run.get(run_id, ()), start_unix_s)

    @staticmethod
    def find_run_id(submission: Submission, row: AccountingRow) -> str | None:
        """Return the run of a job with an own id; None: the submission names none."""
        index = int(row.array_task_id) if row.array_task_id is not None else 0
        if row.array_task_id is None and len(submission.run_ids) != 1:
            return None
        return submission.run_ids[index] if index < len(submission.run_ids) else None


@dataclass(slots=True)
class NumberedRow:
    """A job's row with the run and the attempt it belongs to."""

    submission: Submission
    run_id: str
    attempt: str
    restart: int
    row: AccountingRow


def number_rows(
    index: JobIndex, rows: Sequence[AccountingRow]
) -> tuple[dict[int, NumberedRow], list[tuple[Submission, AccountingRow]]]:
    """Return rows with run and attempt, by their index in `rows`, and rows of waiting tasks.

    A requeued job has one row per start; their restart counts are 0, 1, 2, … in this order.
    """
    by_job: dict[tuple[str, str], list[tuple[int, Submission]]] = defaultdict(list)
    waiting = []
    for position, row in enumerate(rows):
        submission = index.find_submission(row)
        if submission is None or row.step is not None:
            continue
        if row.waits_in_array:
            if index.can_be_from(submission, row):
                waiting.append((submission, row))
        else:
            by_job[submission.submission_id, row.job_id].append((position, submission))
    numbered = {}
    for places in by_job.values():
        ours = keep_one_job(rows, sorted(places, key=lambda p: age_sort_key(rows[p[0]])))
        for restart, (position, submission) in enumerate(ours):
            row = rows[position]
            run_id = index.find_run_id(submission, row)
            if run_id is not None:
                number = restart if row.restarts is None else row.restarts
                numbered[position] = NumberedRow(
                    submission, run_id, f"{row.job_id}.{number}", number, row
                )
    return numbered, waiting


def keep_one_job(
    rows: Sequence[AccountingRow], places: Sequence[tuple[int, Submission]]
) -> list[tuple[int, Submission]]:
    """Return the rows before those of a later job with the same id."""
    ours: list[tuple[int, Submission]] = []
    for position, submission in places:
        row = rows[position]
        is_ours = JobIndex.can_be_from(submission, row)
        if not is_ours or (ours and is_other_job(row, rows[ours[0][0]])):
            break  # all further rows are starts of that job
        ours.append((position, submission))
    return ours


def is_other_job(row: AccountingRow, first: AccountingRow) -> bool:
    """Whether the row belongs to another job than the first row with this id.

    It does if user or name differ, or if it is a first start (where the scheduler counts starts).
    """
    pairs = ((row.user, first.user), (row.name, first.name))
    is_other = any(None not in pair and pair[0] != pair[1] for pair in pairs)
    return is_other or (row.restarts == 0 and row.submit_unix_s != first.submit_unix_s)


def find_earlier_starts(
    rows: Sequence[AccountingRow],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return earlier starts of the last row's job, and starts of other jobs with this id.

    `rows` are the rows of one id, in the order of age.
    """
    mine, others = list[float](), list[float]()
    later, begins = rows[-1], mine
    for row in reversed(rows[:-1]):
        if begins is mine and is_other_job(later, row):
            begins = others
        if row.start_unix_s is not None:
            begins.insert(0, row.start_unix_s)
        later = row
    return tuple(mine), tuple(others)


def age_sort_key(row: AccountingRow) -> tuple[float, float]:
    """Return a key that sorts the rows of one job by age.

    A start that was requeued at once may have an end only. A row without either is the latest.
    """
    far = float("inf")
    begin_unix_s = row.end_unix_s if row.start_unix_s is None else row.start_unix_s
    return (
        far if begin_unix_s is None else begin_unix_s,
        far if row.submit_unix_s is None else row.submit_unix_s,
    )
