"""The interface of a scheduler's accounting; accounting_readers.py lists the readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from steelyard.analysis.store.row_files import TextSpool

SEPARATOR = TextSpool.DELIMITER

# Final states of an attempt, which then does not change (docs/formats.md part 8).
FINAL_STATES = frozenset(
    ("completed", "failed", "timeout", "cancelled", "node_fail", "out_of_memory", "requeued")
)
WAITING_STATES = frozenset(("pending", "running"))

CLOCKS_S = 2.0  # seconds; start, end and elapsed time are rounded to whole seconds


@dataclass(frozen=True, slots=True)
class AccountingRow:
    """One line of the accounting: a job, a step of it, or several waiting array tasks.

    Times are seconds since 1970 UTC. None means unknown (a waiting job has no start).
    """

    job_id: str  # raw id, unique among the jobs the scheduler remembers
    step: str | None  # None: the job itself
    array_job_id: str | None
    array_task_id: str | None
    waits_in_array: bool  # the row represents array tasks that have no job id yet
    waiting_tasks: tuple[int, ...]  # their numbers; empty: the scheduler truncated the list
    het_offset: int | None
    restarts: int | None  # None: this release does not report it
    state: str  # one of docs/formats.md part 8
    reason: str | None  # why the job is not completed, one sentence
    cluster: str | None
    name: str | None
    user: str | None
    submit_unix_s: float | None
    start_unix_s: float | None
    end_unix_s: float | None
    elapsed_s: float | None
    exit_code: int | None  # 128 + signal when killed
    nodes: tuple[str, ...]
    admin_comment: str | None
    fields: tuple[str, ...] = ()  # the unchanged line, in the order of Accounting.fields
    reported_by: str | None = None  # another source of the row; None: the accounting

    @property
    def suspended_s(self) -> float | None:
        """Return how many seconds the job was suspended; its elapsed time excludes them."""
        if self.start_unix_s is None or self.end_unix_s is None or self.elapsed_s is None:
            return None
        gap = self.end_unix_s - self.start_unix_s - self.elapsed_s
        return gap if gap > CLOCKS_S else 0.0

    @property
    def task_id(self) -> str | None:
        """Return the array task as a user types it; None: no task. PBS job ids name the task."""
        if self.array_job_id is None or self.array_task_id is None:
            return None
        is_number = self.job_id.isdigit()
        return f"{self.array_job_id}_{self.array_task_id}" if is_number else self.job_id


class StepRow(NamedTuple):
    """A line of a job's step, unparsed: 99 of 100 lines may be steps."""

    job_id: str
    step: str
    text: str  # the fields in the order of Accounting.fields, joined by SEPARATOR


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a scheduler allocated to one start of a job, and its usage; None: it does not report it.

    Values are of all nodes together. A waiting job has no allocation.
    """

    partition: str | None = None  # PBS: the queue
    account: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    cpus_requested: int | None = None  # fewer than allocated if nodes are allocated entirely
    memory_bytes: int | None = None
    gpus: int | None = None
    time_limit_s: float | None = None
    cpu_s: float | None = None  # of all processes that the scheduler counts
    # Memory of the largest step, lower and upper bound: Slurm reports its largest task.
    resident_low_bytes: int | None = None
    resident_high_bytes: int | None = None
    shares_request: bool = False  # part of an array or heterogeneous job, with a common request
    missing: Mapping[str, str] = field(default_factory=dict)  # why a field is None


class Accounting(Protocol):
    """A reader of a scheduler's accounting.

    `fields` are columns of the table `accounting`. Names and formats of values are those of Slurm's
    sacct for every scheduler. A reader fills the columns it has, sets JobID and JobIDRaw to ids,
    and puts other values into `extra`.
    """

    fields: tuple[str, ...]
    chunk_size: int  # jobs per query
    job_ids: re.Pattern[str]  # the ids of its jobs, as a user types them
    job_ids_description: str  # a description of these ids, with an example
    server_variable: str  # the variable that selects its cluster
    ids_match_exactly: bool  # records have the ids that a user types: matches_id() is ==
    counts_starts: bool  # restart_count is the scheduler's, also in records

    @classmethod
    def is_installed(cls) -> bool:
        """Whether the program that is queried is installed."""

    @classmethod
    def without_retries(cls) -> Self:
        """Return a reader for a waiting user: it does not repeat a query without an answer."""

    @classmethod
    def matches_id(cls, typed: str, written: str) -> bool:
        """Whether the id that a user typed means the job (or its array) with the other id."""

    def rows(
        self, job_ids: Sequence[str], since_unix_s: float = 0.0
    ) -> Iterator[AccountingRow | StepRow]:
        """Yield all rows of these jobs, also restarts and steps; each job's row before its steps.

        No job is older than `since_unix_s`, so that earlier days need not be read. Raises
        MissingError before the first row when the accounting does not answer. An unknown job has no
        row.
        """

    def list_recent_jobs(self, user: str, since_unix_s: float) -> list[str]:
        """Return the ids of a user's jobs and arrays since a time, as `rows` takes them.

        Raises MissingError when the accounting does not answer.
        """

    def read_allocation(
        self, row: AccountingRow, steps: Sequence[AccountingRow | StepRow]
    ) -> Allocation:
        """Return allocation and usage of this start of a job; `steps` are the rows after it."""

    def parse_row(self, fields: Sequence[str]) -> AccountingRow:
        """Return a row from its text fields, as the database stores them."""
