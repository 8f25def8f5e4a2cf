"""The seam to a batch system: all that differs between schedulers is asked of a `Scheduler`.

A module beside this one for each, slurm and local; registry.py knows which there are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.base.check import Check
from steelyard.wrappers.netem.program import Conditions, make_conditions
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
from steelyard.wrappers.study.job import Job
from steelyard.wrappers.study.study_table import Table

# What a job gets of the submitting shell; a run must not depend on what else stands there.
# [job] export adds to it.
EXPORTED = ("HOME", "LANG", "LD_LIBRARY_PATH", "LOADEDMODULES", "LOGNAME", "MODULEPATH", "PATH",
            "SHELL", "TMPDIR", "USER")  # fmt: skip

# Why a job failed whose condition could not be had; what it said itself is put behind it.
NOT_APPLIED = "its condition could not be applied (exit code 4)"
PATIENCE_S = 120  # how long one that does not answer is asked again


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
        """The job's name; recover finds unrecorded submissions by it."""
        return f"{self.study}.{self.submission_id}"


@dataclass(frozen=True)
class Task:
    """What the scheduler reports about one run; `state` is a state of docs/formats.md part 8."""

    state: str
    reason: str | None = None
    job_id: str | None = None  # raw id, as in the name of the attempt's folder
    begun: bool = True  # of one that has ended: its start is known
    is_stuck: bool = False  # it waits for what does not come by itself: somebody has to act


class Scheduler(ABC):
    """A batch system. Methods raise MissingError, with what to do, when it cannot be used. With
    `patient` a scheduler that does not answer is queried again for PATIENCE_S."""

    name: ClassVar[
        str
    ]  # of --scheduler, [place.LEVEL], submissions.jsonl and jobscripts/lib/schedulers
    # `submit` executes the runs itself, on this machine, one by one, each under its own conditions.
    runs_here: ClassVar[bool] = False
    is_absent: ClassVar[bool] = (
        False  # stands in where no cluster answers: nothing can be submitted
    )
    not_in_paths: ClassVar[str] = ""  # characters that its jobs' files cannot have in their names
    job_variables: ClassVar[tuple[str, ...]] = ()  # how the names of variables begin that jobs get

    def __init__(self, study_dir: Path, patient: bool = True) -> None:
        self.study_dir = study_dir
        self.patient = patient

    # --- this machine -------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def is_installed(cls) -> bool:
        """Whether its commands are on this machine; runs none of them."""

    @classmethod
    @abstractmethod
    def run_checks(cls) -> Iterator[Check]:
        """The checks of `steelyard doctor`; never raises MissingError."""

    def node_command(self, node: str, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` on one node and prints its output here; empty if there is
        none."""
        return []

    @abstractmethod
    def cluster_name(self) -> str | None:
        """The cluster's name for itself, or None. MissingError when it does not answer."""

    def make_stand_in(self) -> tuple[Scheduler, str] | None:
        """For a dry run without a cluster: a scheduler that queries nothing, and what it assumes."""
        return None

    # --- what a study asks for ----------------------------------------------------------------

    @classmethod
    @abstractmethod
    def check_options(cls, table: Table, key: str, options: Sequence[str]) -> None:
        """UsageError for options of a study file (`key` of `table`) that a study may not set."""

    @abstractmethod
    def place_options(self, level: str, given: Sequence[str] | None, nodes: int) -> list[str]:
        """The options for a level of node_type; `given`: its own line of [place.LEVEL]."""

    @abstractmethod
    def node_options(self, node: str) -> list[str]:
        """The options for a level of the factor `node`: that node and no other."""

    def condition_options(self, condition: Mapping[str, object]) -> list[str]:
        """The options for the factors `network` and `cache`, whether or not the cluster has them: our
        plugin's, which are also the words of `steelyard-node job encode`."""
        requested = make_conditions(condition)
        options = [f"--netem={requested.network}"] if requested.shapes else []
        return options + ([f"--cache={requested.cache}"] if "cache" in condition else [])

    @abstractmethod
    def selects_nodes(self, batch: Batch) -> bool:
        """Whether the study itself selects the nodes of the batch."""

    @abstractmethod
    def node_features(self) -> Mapping[str, frozenset[str]]:
        """The features of each node by its name; empty where they are not known."""

    @abstractmethod
    def available_nodes(self, batch: Batch) -> AvailableNodes:
        """The nodes that a batch may have, whatever the factor `node` requests; without any where
        nothing is known of them."""

    def rejection_reason(self, script: Path, batch: Batch) -> str | None:
        """Why the scheduler would reject this script, in its own words; None if it accepts it."""
        return None

    @abstractmethod
    def max_runs(self) -> int | None:
        """The largest number of runs in one submission; None for no limit."""

    @abstractmethod
    def render_script(self, batch: Batch, after: str | None) -> str:
        """The exact text to submit; `after` is the id of a job that has to end before."""

    # --- jobs ---------------------------------------------------------------------------------

    @abstractmethod
    def submit(self, batch: Batch, script: Path) -> str | None:
        """Submit the script and return the job id; None where `runs_here`, when the runs are
        over."""

    @abstractmethod
    def find_submission(self, batch: Batch, since_unix_s: float) -> str | None:
        """The job id of a submission that was accepted but never recorded."""

    @abstractmethod
    def active_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """Waiting and running runs, by run id."""

    @abstractmethod
    def ended_runs(self, submissions: Sequence[Submission]) -> dict[str, Task]:
        """How inactive runs ended, as far as the scheduler knows, by run id."""

    @abstractmethod
    def cancel(self, submissions: Sequence[Submission]) -> None:
        """Stop every waiting and running run."""
