"""The interface to a batch system: a `Scheduler` implements everything that differs between them.

Each batch system has its module in this room (slurm, pbs, local); registry.py lists them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar

from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.netem.program import Conditions, make_conditions
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
from steelyard.wrappers.study.job_settings import Job
from steelyard.wrappers.study.table_reader import Table

T = TypeVar("T")

# A job gets only these variables of the submitting shell: a run must not depend on any others.
# [job] export adds to them.
EXPORTED = ("HOME", "LANG", "LD_LIBRARY_PATH", "LOADEDMODULES", "LOGNAME", "MODULEPATH", "PATH",
            "SHELL", "TMPDIR", "USER")  # fmt: skip

# The reason of a failed job whose condition could not be applied. The job's own message follows it.
NOT_APPLIED = "its condition could not be applied (exit code 4)"
PATIENCE_S = 120  # how long a silent scheduler is queried again


@dataclass(frozen=True)
class Batch:
    """One submission to be made: some runs of one block that request the same options."""

    submission_id: str
    study: str
    study_dir: Path  # absolute
    block: int
    nodes: int
    options: tuple[str, ...]  # what the runs' conditions request
    tags: tuple[tuple[str, str], ...]  # the tags that all runs share
    run_ids: tuple[str, ...]
    job: Job
    # The conditions of each run, for a scheduler that has no options for them.
    conditions: Mapping[str, Conditions] = field(default_factory=dict)

    @property
    def job_name(self) -> str:
        """Return the job's name, by which `recover` finds unrecorded submissions."""
        return f"{self.study}.{self.submission_id}"


@dataclass(frozen=True)
class Task:
    """What the scheduler reports about one run; `state` is a state of docs/formats.md part 8."""

    state: str
    reason: str | None = None
    job_id: str | None = None  # raw id, as in the name of the attempt's folder
    begun: bool = True  # of an ended run: whether it started
    is_stuck: bool = False  # it waits for something that only a person can change


class Scheduler(ABC):
    """A batch system. Methods raise MissingError, which says what to do, when it cannot be used. If
    `patient`, a scheduler that does not answer is queried again for PATIENCE_S."""

    name: ClassVar[
        str
    ]  # of --scheduler, [place.LEVEL], submissions.jsonl and jobscripts/lib/schedulers
    # If true, `submit` executes the runs itself on this machine, one by one, each under its own
    # conditions.
    runs_here: ClassVar[bool] = False
    is_absent: ClassVar[bool] = (
        False  # True for a stand-in, used if no cluster answers: nothing can be submitted
    )
    not_in_paths: ClassVar[str] = ""  # characters that file names of its jobs cannot contain
    job_variables: ClassVar[tuple[str, ...]] = ()  # prefixes of the variables that it sets in jobs

    def __init__(self, study_dir: Path, patient: bool = True) -> None:
        self.study_dir = study_dir
        self.patient = patient

    # --- this machine -------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def is_installed(cls) -> bool:
        """Return whether its commands are installed on this machine, without running them."""

    @classmethod
    @abstractmethod
    def run_checks(cls) -> Iterator[Check]:
        """Yield the checks of `steelyard doctor`; never raise MissingError."""

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """Return the command that runs `argv` on a node and prints its output here; empty if none
        exists."""
        return []

    @abstractmethod
    def cluster_name(self) -> str | None:
        """Return the cluster's own name, or None. Raises MissingError if it does not answer."""

    def make_stand_in(self) -> tuple[Scheduler, str] | None:
        """Return a scheduler for a dry run without a cluster, which queries nothing, and its
        assumptions."""
        return None

    # --- what a study requests -----------------------------------------------------------------

    @classmethod
    @abstractmethod
    def check_options(cls, table: Table, key: str, options: Sequence[str]) -> None:
        """Raise UsageError if `key` of `table` in a study file has an option that a study may not
        set."""

    @abstractmethod
    def place_options(self, level: str, given: Sequence[str] | None, nodes: int) -> list[str]:
        """Return the options for a level of node_type; `given` is the level's own line of
        [place.LEVEL]."""

    @abstractmethod
    def node_options(self, node: str) -> list[str]:
        """Return the options for a level of the factor `node`, which select exactly that node."""

    def condition_options(self, condition: Mapping[str, object]) -> list[str]:
        """Return the options for the factors `network` and `cache`, whether or not the cluster has
        them: those of our plugin, which `steelyard-node job encode` takes as well."""
        requested = make_conditions(condition)
        options = [f"--netem={requested.network}"] if requested.shapes else []
        return options + ([f"--cache={requested.cache}"] if "cache" in condition else [])

    @abstractmethod
    def selects_nodes(self, batch: Batch) -> bool:
        """Return whether the study itself selects the nodes of the batch."""

    @abstractmethod
    def node_features(self) -> Mapping[str, frozenset[str]]:
        """Return the features of each node by its name; empty where they are not known."""

    @abstractmethod
    def available_nodes(self, batch: Batch) -> AvailableNodes:
        """Return the nodes that a batch may use, ignoring what the factor `node` requests; no nodes
        where none are known."""

    def rejection_reason(self, script: Path, batch: Batch) -> str | None:
        """Return the scheduler's own message if it would reject this script; None if it accepts
        it."""
        return None

    @abstractmethod
    def max_runs(self) -> int | None:
        """Return the largest number of runs in one submission; None for no limit."""

    @abstractmethod
    def render_script(self, batch: Batch, after: str | None) -> str:
        """Return the exact text to submit; `after` is the id of a job that has to end first."""

    # --- jobs ---------------------------------------------------------------------------------

    @abstractmethod
    def submit(self, batch: Batch, script: Path) -> str | None:
        """Submit the script and return the job id. Where `runs_here`, return None after the runs
        have ended."""

    @abstractmethod
    def find_submission(self, batch: Batch, since_unix_s: float) -> str | None:
        """Return the job id of a submission that was accepted but never recorded."""

    @abstractmethod
    def active_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return the waiting and running runs, by run id."""

    def active_jobs(self, submissions: Sequence[Submission]) -> list[str]:
        """Return the jobs with a waiting or running run."""
        active = self.active_runs(submissions).keys()
        jobs = index_by_job(submissions)
        return [job for job, entry in jobs.items() if not active.isdisjoint(entry.run_ids)]

    @abstractmethod
    def ended_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Return how inactive runs ended, as far as the scheduler knows, by run id."""

    @abstractmethod
    def cancel(self, submissions: Sequence[Submission]) -> None:
        """Stop every waiting and running run."""


def index_by_job(submissions: Sequence[Submission]) -> dict[str, Submission]:
    """Index submissions by job id, as the submission printed it."""
    return {entry.job_id: entry for entry in submissions if entry.job_id is not None}


def split_chunks(items: Sequence[T], size: int) -> list[Sequence[T]]:
    """Split items into groups that fit a command line."""
    return [items[start : start + size] for start in range(0, len(items), size)]
