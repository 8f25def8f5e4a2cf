"""What is wanted from any scheduler's accounting; accounting_readers.py knows the readers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, Self

from steelyard.analysis.store.spool import TextSpool

SEPARATOR = TextSpool.DELIMITER

# docs/formats.md part 8. The last states of an attempt: nothing more will come of it.
FINAL_STATES = frozenset(
    ("completed", "failed", "timeout", "cancelled", "node_fail", "out_of_memory", "requeued")
)
WAITING_STATES = frozenset(("pending", "running"))

CLOCKS_S = 2.0  # start, end and elapsed are whole seconds each


@dataclass(frozen=True, slots=True)
class AccountingRow:
    """One line of the accounting: a job, a step of it, or several array tasks that still wait.

    Times are seconds since 1970 UTC; None is not known (a job that waits has no start).
    """

    job_id: str  # raw id, unique among the jobs the scheduler remembers
    step: str | None  # None: the job itself
    array_job_id: str | None
    array_task_id: str | None
    waits_in_array: bool  # the row stands for array tasks that have no id of their own yet
    waiting_tasks: tuple[int, ...]  # which; empty: the scheduler's list was cut short
    het_offset: int | None
    restarts: int | None  # None: this release does not say
    state: str  # one of docs/formats.md part 8
    reason: str | None  # why it is not completed, one sentence
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
    fields: tuple[str, ...] = ()  # the line as it was, in the order of Accounting.fields
    reported_by: str | None = None  # what stood in for the accounting; None: the accounting itself

    @property
    def suspended_s(self) -> float | None:
        """How long it was suspended: the scheduler does not count that time as elapsed."""
        if self.start_unix_s is None or self.end_unix_s is None or self.elapsed_s is None:
            return None
        gap = self.end_unix_s - self.start_unix_s - self.elapsed_s
        return gap if gap > CLOCKS_S else 0.0

    @property
    def task_id(self) -> str | None:
        """The array task as a person types it; None: of no array. PBS' ids name the task themselves."""
        if self.array_job_id is None or self.array_task_id is None:
            return None
        is_number = self.job_id.isdigit()
        return f"{self.array_job_id}_{self.array_task_id}" if is_number else self.job_id


class StepRow(NamedTuple):
    """A line of a step of a job, kept as text only: of a hundred lines ninety-nine are of steps."""

    job_id: str
    step: str
    text: str  # the fields in the order of Accounting.fields, joined by SEPARATOR


@dataclass(frozen=True, slots=True)
class Allocation:
    """What a scheduler says that one start of a job held, and used of it; None: it does not say.

    Of all nodes together; a job that waits holds nothing.
    """

    partition: str | None = None  # PBS: the queue
    account: str | None = None
    nodes: int | None = None
    cpus: int | None = None
    cpus_requested: int | None = None  # fewer than it got where nodes are given whole
    memory_bytes: int | None = None
    gpus: int | None = None
    time_limit_s: float | None = None
    cpu_s: float | None = None  # of all processes that the scheduler counts
    # Of the largest step, at least and at most: Slurm tells that of its largest task.
    resident_low_bytes: int | None = None
    resident_high_bytes: int | None = None
    is_part: bool = (
        False  # of an array or a heterogeneous job: it was asked for together with others
    )
    missing: Mapping[str, str] = field(default_factory=dict)  # why a field is None


class Accounting(Protocol):
    """A scheduler's accounting.

    `fields` are columns of the table `accounting`. They are named, and their values written, as
    Slurm's sacct does it, whatever the scheduler: a reader fills those that it knows, ids in JobID
    and JobIDRaw, and puts what else it has into `extra`.
    """

    fields: tuple[str, ...]
    chunk_size: int  # jobs to ask for at once
    job_ids: re.Pattern[str]  # the ids of its jobs, as a person types them
    job_ids_description: str  # the same in words, with an example
    server_variable: str  # the variable that leads to its cluster
    ids_are_whole: bool  # records have the ids that a person types: means() is ==
    counts_starts: bool  # an attempt's restart_count is the scheduler's, as records tell it, too

    @classmethod
    def is_installed(cls) -> bool:
        """Whether the program that is asked is on this machine."""

    @classmethod
    def without_retries(cls) -> Self:
        """For a person who waits: what does not answer at once is not asked again."""

    @classmethod
    def matches_id(cls, typed: str, written: str) -> bool:
        """Whether a person who types the one means the job (or its array) that has the other id."""

    def rows(
        self, job_ids: Sequence[str], since_unix_s: float = 0.0
    ) -> Iterator[AccountingRow | StepRow]:
        """All rows of these jobs, restarts and steps too; each job's row before its steps.

        None of the jobs is older than `since_unix_s`: days before that need not be read.
        MissingError when the accounting cannot be asked; nothing has been yielded then. A job
        that is not known has no row.
        """

    def list_recent_jobs(self, user: str, since_unix_s: float) -> list[str]:
        """The ids of a user's jobs and arrays, as rows() takes them, that were there since a time.

        MissingError when the accounting cannot be asked.
        """

    def read_allocation(
        self, row: AccountingRow, steps: Sequence[AccountingRow | StepRow]
    ) -> Allocation:
        """What this start of a job held and used; `steps` are the rows behind it."""

    def parse_row(self, fields: Sequence[str]) -> AccountingRow:
        """One row from its text fields, as they stand in the database."""
