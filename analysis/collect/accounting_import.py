"""Imports accounting rows into the study's database, which keeps what the scheduler purges."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.collect.job_index import (
    ACCOUNTING_LAG_S,
    JobIndex,
    NumberedRow,
    number_rows,
)
from steelyard.analysis.collect.record_import import Gap
from steelyard.analysis.sources.accounting import FINAL_STATES, Accounting, AccountingRow, StepRow
from steelyard.analysis.sources.study_files import Submission
from steelyard.analysis.store.row_files import Spool, TextSpool

# An ended job may still be requeued or get its AdminComment; after this time it does not change.
SETTLED_AFTER_S = 600.0
FORGOTTEN = "the accounting, asked again, no longer knows the job: purged, or another cluster"

MAPPING_COLUMNS = {
    "serial": "BIGINT",
    "submission_id": "VARCHAR",
    "run_id": "VARCHAR",
    "attempt": "VARCHAR",
}

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Jobs:
    """The accounting rows of a study's jobs."""

    numbered: list[NumberedRow] = field(default_factory=list)
    waiting: list[tuple[Submission, AccountingRow]] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)  # submission ids
    gaps: list[Gap] = field(default_factory=list)
    are_new: bool = False  # this collect queried rows
    too_old: dict[str, float] = field(default_factory=dict)  # by submission: seconds too old


def import_accounting(
    connection: DuckDBPyConnection,
    accounting: Accounting,
    submissions: Sequence[Submission],
    scratch: Path,
    progress: Progress,
) -> Jobs:
    """Query the jobs that may have changed, store their rows, and return all jobs' rows."""
    jobs = Jobs()
    index = JobIndex(submissions)
    stored = read_stored_rows(connection, accounting, submissions)
    before = number_rows(index, [row for _, row in stored])
    settled = find_settled_submissions(connection, before[0].values(), submissions)
    queried = [s for s in submissions if s.job_id and s.submission_id not in settled]
    jobs.answered |= settled
    answers = query_accounting(accounting, queried, scratch, jobs, progress)
    jobs.are_new = bool(answers)
    again = {s.submission_id for s in queried} & jobs.answered
    fresh = [row for answer in answers for row in answer.rows]
    remaining = find_unanswered_rows(index, stored, fresh, again)
    numbered, waiting = before
    if fresh or remaining != stored:
        numbered, waiting = number_rows(index, [*fresh, *(row for _, row in remaining)])
    drop_replaced_waiting_rows(connection, stored, remaining)
    first = 0
    for answer in answers:
        mapping = map_rows(answer, first, numbered, waiting)
        store_rows(connection, accounting, answer, mapping, bool(stored))
        first += len(answer.rows)
    record_too_old_rows(index, fresh, jobs)
    jobs.numbered += numbered.values()
    jobs.waiting += waiting
    # Stored answers remain valid when the accounting is unavailable.
    jobs.answered |= {n.submission.submission_id for n in jobs.numbered}
    jobs.answered |= {submission.submission_id for submission, _ in jobs.waiting}
    return jobs


def read_stored_rows(
    connection: DuckDBPyConnection, accounting: Accounting, submissions: Sequence[Submission]
) -> list[tuple[str, AccountingRow]]:
    """Return (submission id, row) of the jobs that earlier collects stored, without steps."""
    names = ", ".join(f'"{name}"' for name in accounting.fields)
    cursor = connection.execute(
        f"SELECT submission_id, {names} FROM accounting "
        "WHERE step IS NULL AND submission_id IN (SELECT unnest(?))",
        [[s.submission_id for s in submissions]],
    )
    rows = []
    while some := cursor.fetchmany(10_000):
        rows += [(line[0], drop_fields(accounting.parse_row(line[1:]))) for line in some]
    return rows


def drop_fields(row: AccountingRow) -> AccountingRow:
    """Return the row without its text: a million rows must fit into memory."""
    return dataclasses.replace(row, fields=())


def find_settled_submissions(
    connection: DuckDBPyConnection,
    numbered: Iterable[NumberedRow],
    submissions: Sequence[Submission],
) -> set[str]:
    """Return submissions that cannot change: all runs ended well before the last query."""
    times = connection.execute("SELECT collected_unix_s FROM meta").fetchall()
    if not times:
        return set()
    latest_end = times[0][0] - SETTLED_AFTER_S
    over: dict[str, set[str]] = defaultdict(set)
    last: dict[tuple[str, str], NumberedRow] = {}
    for number in numbered:
        key = number.submission.submission_id, number.run_id
        if key not in last or last[key].restart < number.restart:
            last[key] = number
    for (submission_id, run_id), number in last.items():
        row = number.row
        ended = row.end_unix_s is not None and row.end_unix_s < latest_end
        if ended and row.state in FINAL_STATES and row.state != "requeued":
            over[submission_id].add(run_id)
    return {s.submission_id for s in submissions if over[s.submission_id] >= set(s.run_ids)}


@dataclass(slots=True)
class Answer:
    """One answer of the accounting: rows of jobs in memory, all rows as text in a file."""

    spool: TextSpool
    rows: list[AccountingRow] = field(default_factory=list)


def query_accounting(
    accounting: Accounting,
    submissions: Sequence[Submission],
    scratch: Path,
    jobs: Jobs,
    progress: Progress,
) -> list[Answer]:
    """Query in chunks. Without an answer, add a gap; the next collect queries again."""
    answers = []
    for start in range(0, len(submissions), accounting.chunk_size):
        chunk = submissions[start : start + accounting.chunk_size]
        try:
            answers.append(query_chunk(accounting, chunk, scratch / f"accounting-{start}.jsonl"))
        except MissingError as error:
            # The reader has retried several times: other chunks would fail as well.
            jobs.gaps.append(Gap(None, None, None, "accounting", str(error)))
            break
        jobs.answered |= {s.submission_id for s in chunk}
        progress("accounting", start + len(chunk), len(submissions))
    return answers


def query_chunk(accounting: Accounting, chunk: Sequence[Submission], path: Path) -> Answer:
    """Query one chunk. Each text row has the index of its job's row, to which steps belong."""
    last: dict[str, str] = {}
    with TextSpool(path, ("serial", "step", *accounting.fields)) as spool:
        answer = Answer(spool)
        ids = list(dict.fromkeys(s.job_id for s in chunk if s.job_id))
        since_unix_s = min((s.submitted_unix_s for s in chunk), default=0.0)
        for row in accounting.rows(ids, since_unix_s):
            if isinstance(row, StepRow):
                if row.job_id in last:
                    spool.write_joined((last[row.job_id], row.step), row.text)
                continue
            if row.step is None:
                last[row.job_id] = str(len(answer.rows))
                answer.rows.append(drop_fields(row))
            if row.job_id in last:
                spool.write((last[row.job_id], row.step or "", *row.fields))
    return answer


def find_unanswered_rows(
    index: JobIndex,
    stored: Sequence[tuple[str, AccountingRow]],
    fresh: Sequence[AccountingRow],
    requeried: Collection[str],
) -> list[tuple[str, AccountingRow]]:
    """Return the stored rows that no fresh row replaces: purged jobs, or another cluster's answer.

    For submissions in `requeried`, a state that was not final becomes `lost`.
    """
    # This is slurmdbd's own key: a requeue sets a new submit time.
    known = {(row.job_id, row.submit_unix_s) for row in fresh}
    answered = {s.submission_id for row in fresh if (s := index.find_submission(row)) is not None}
    remaining = []
    for submission_id, row in stored:
        if submission_id not in requeried or (
            row.state in FINAL_STATES and (row.job_id, row.submit_unix_s) not in known
        ):
            remaining.append((submission_id, row))
        elif (row.job_id, row.submit_unix_s) in known:
            continue
        elif not (row.waits_in_array and submission_id in answered):  # else the list became shorter
            remaining.append(
                (submission_id, dataclasses.replace(row, state="lost", reason=FORGOTTEN))
            )
    return remaining


def drop_replaced_waiting_rows(
    connection: DuckDBPyConnection,
    stored: Sequence[tuple[str, AccountingRow]],
    remaining: Sequence[tuple[str, AccountingRow]],
) -> None:
    """Delete lists of waiting tasks that newer lists replace."""
    still = {submission_id for submission_id, row in remaining if row.waits_in_array}
    gone = {submission_id for submission_id, row in stored if row.waits_in_array} - still
    connection.execute(
        "DELETE FROM accounting WHERE attempt IS NULL AND submission_id IN (SELECT unnest(?))",
        [sorted(gone)],
    )


def map_rows(
    answer: Answer,
    first: int,
    numbered: Mapping[int, NumberedRow],
    waiting: Sequence[tuple[Submission, AccountingRow]],
) -> Spool:
    """Return submission, run and attempt of each row; `first`: index of the answer's first row."""
    places = {id(row): index for index, row in enumerate(answer.rows)}
    with Spool(answer.spool.path.with_suffix(".map"), MAPPING_COLUMNS) as mapping:
        for index in range(len(answer.rows)):
            number = numbered.get(first + index)
            if number is not None:
                mapping.write(
                    (index, number.submission.submission_id, number.run_id, number.attempt)
                )
        for submission, row in waiting:
            if id(row) in places:
                mapping.write((places[id(row)], submission.submission_id, None, None))
    return mapping


def store_rows(
    connection: DuckDBPyConnection,
    accounting: Accounting,
    answer: Answer,
    mapping: Spool,
    replaced: bool,
) -> None:
    """Insert the rows of the study's own jobs; if `replaced`, delete their older versions first.

    Rows that the answer lacks stay: schedulers purge jobs, and steps before jobs.
    """
    joined = (
        f"FROM ({answer.spool.select()}) AS a "
        f"JOIN ({mapping.select()}) AS m ON m.serial = a.serial::BIGINT"
    )
    if replaced:
        connection.execute(
            "DELETE FROM accounting AS k USING (SELECT m.submission_id, m.attempt, "
            f"nullif(a.step, '') AS step {joined}) AS f WHERE k.submission_id = f.submission_id "
            "AND k.attempt = f.attempt AND k.step IS NOT DISTINCT FROM f.step"
        )
    names = ", ".join(f'"{name}"' for name in accounting.fields)
    connection.execute(
        f"INSERT INTO accounting (submission_id, run_id, attempt, step, {names}) "
        f"SELECT submission_id, run_id, attempt, nullif(step, ''), {names} {joined}"
    )


def record_too_old_rows(index: JobIndex, fresh: Sequence[AccountingRow], jobs: Jobs) -> None:
    """Record rows with a submission's job id that are older than the submission."""
    for off in filter(None, (index.compute_age_gap_s(row) for row in fresh)):
        known = jobs.too_old.get(off[0].submission_id, off[1])
        jobs.too_old[off[0].submission_id] = min(known, off[1])


def find_unreadable_gaps(connection: DuckDBPyConnection) -> Iterator[Gap]:
    """Yield lines of jobs in the accounting that could not be parsed; `extra` keeps them."""
    rows = connection.execute(
        "SELECT run_id, attempt, JobID, extra->>'unreadable_lines', extra->>'$.unreadable[0].reason' "
        "FROM accounting WHERE extra->>'unreadable_lines' IS NOT NULL ORDER BY ALL"
    ).fetchall()
    for run_id, attempt, job_id, count, reason in rows:
        lines = "a line" if count == "1" else f"{count} lines"
        message = (
            f"{lines} of job {job_id} in the accounting cannot be read, and are kept: {reason}"
        )
        yield Gap(run_id, attempt, None, "accounting", message)


def find_job_gaps(
    submissions: Sequence[Submission], jobs: Jobs, now_unix_s: float
) -> Iterator[Gap]:
    """Yield submissions whose jobs the accounting answered for and does not have."""
    known = {n.submission.submission_id for n in jobs.numbered}
    known |= {s.submission_id for s, _ in jobs.waiting}
    for submission in submissions:
        is_new = now_unix_s - submission.submitted_unix_s < ACCOUNTING_LAG_S
        if submission.submission_id in jobs.answered - known and not is_new:
            off = jobs.too_old.get(submission.submission_id)
            why = "another cluster, or purged"
            if off is not None:
                why = (
                    f"a job of that id was submitted {off:.0f} s before: another one, of another "
                    "cluster maybe, or the clock of the host that submitted is off"
                )
            reason = f"the accounting does not know job {submission.job_id}, submitted as "
            yield Gap(None, None, None, "job", f"{reason}{submission.submission_id} ({why})")
