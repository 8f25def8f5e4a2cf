"""The seam to a batch system: what submit, status and cancel ask of one; slurm.py and local.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.netem.program import Conditions
from steelyard.wrappers.study.job import Job

NAMES = ("slurm", "local")


@dataclass(frozen=True)
class Batch:
    """One submission to be made: some runs of one block that ask for the same options."""

    submission_id: str
    study: str
    study_dir: Path  # absolute
    block: int
    nodes: int
    options: tuple[str, ...]  # what the runs' conditions ask for
    tags: tuple[tuple[str, str], ...]  # what all runs have in common
    run_ids: tuple[str, ...]
    job: Job
    # What each run asks of the node itself, for a scheduler that has no options for it.
    conditions: Mapping[str, Conditions] = field(default_factory=dict)

    @property
    def job_name(self) -> str:
        """By this name the scheduler is asked for a submission that was never recorded."""
        return f"{self.study}.{self.submission_id}"


@dataclass(frozen=True)
class Submission:
    """An accepted submission, one line of submissions.jsonl."""

    submission_id: str
    scheduler: str
    cluster: str | None
    job_id: str | None
    submitted_unix_s: float
    block: int
    options: list[str]
    run_ids: list[str]


@dataclass(frozen=True)
class Task:
    """What the scheduler says about one run; `state` in the words of docs/formats.md part 8."""

    state: str
    reason: str | None = None
    job_id: str | None = None  # raw id, as in the name of the attempt's folder


class Scheduler(Protocol):
    """A batch system. Methods raise MissingError when it cannot be used, and say what to do."""

    name: str

    def cluster(self) -> str | None:
        """Its name for itself."""

    def most_runs(self) -> int | None:
        """How many runs one submission may hold; None: any number."""

    def script(self, batch: Batch, after: str | None) -> str:
        """The exact text that is submitted; `after`: job id that has to end before."""

    def features(self) -> Mapping[str, frozenset[str]]:
        """What each node is said to have, by its name; nothing where that is not known."""

    def submit(self, batch: Batch, script: Path) -> str | None:
        """Hand it in: the job id. Local runs are over when this returns."""

    def find(self, batch: Batch, since_unix_s: float) -> str | None:
        """The job id of a submission that was accepted but never recorded."""

    def active(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Waiting and running runs, by run id."""

    def ended(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """What became of runs that are not active, as far as the scheduler knows, by run id."""

    def cancel(self, submissions: Sequence[Submission]) -> None:
        """Stop every waiting and running run."""


def by_name(name: str, study_dir: Path, patient: bool = True) -> Scheduler:
    """The scheduler of that name; UsageError for one that this version does not have.

    `patient`: a controller that does not answer is asked again for a while.
    """
    if name == "slurm":
        from steelyard.wrappers.schedulers.slurm import Slurm

        return Slurm(patient)
    if name == "local":
        from steelyard.wrappers.schedulers.local import Local

        return Local(study_dir)
    if name == "pbs":
        raise UsageError("--scheduler pbs: this version has slurm and local; PBS is still to come")
    raise UsageError(f"--scheduler {name}: allowed is {' or '.join(NAMES)}")


def of(submissions: Iterable[Submission]) -> Mapping[str, list[Submission]]:
    """Submissions by their scheduler's name."""
    groups: dict[str, list[Submission]] = {}
    for submission in submissions:
        groups.setdefault(submission.scheduler, []).append(submission)
    return groups
