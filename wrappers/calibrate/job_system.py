"""The interface of a batch system for calibration; slurm_jobs.py and pbs_jobs.py implement it.

`list_methods` lists the launch methods of its jobs: its own, and those that all systems share."""

from __future__ import annotations

import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import known_loads
from steelyard.wrappers.calibrate.job_results import Record, Report
from steelyard.wrappers.calibrate.known_loads import RESULT, KnownLoad
from steelyard.wrappers.calibrate.launch_method import RATE_HZ, LaunchMethod
from steelyard.wrappers.calibrate.limits import LimitTable
from steelyard.wrappers.calibrate.table import Limit

# Loads that are left out by `quick`, because others cover them.
NOT_QUICK = ("1 process", "memory", "storage")


class JobSystem(ABC):
    """A batch system. Methods raise MissingError if it fails."""

    title: ClassVar[str]
    where: ClassVar[str]  # where our totals are, as named in the table
    submit_program: ClassVar[str]
    cancel_program: ClassVar[str]
    commands: ClassVar[Any]  # its module in wrappers/schedulers that runs commands
    beside: ClassVar[tuple[LimitTable, ...]]  # limits of what else runs in every job
    no_totals: ClassVar[str | None] = None  # why the scheduler may miss any job's totals
    # The limit of elapsed time, given the load's own time and the scheduler's time of the job or of
    # its last step.
    elapsed_limit: ClassVar[staticmethod[[float, float | None], Limit]]
    first_actions: ClassVar[tuple[str, ...]] = ()  # of the load that replaces a job's script
    no_report: ClassVar[Report]  # if the scheduler has no report of a start
    restart_delay_s: ClassVar[float]  # from the interruption until `restart` helps
    restart: ClassVar[tuple[str, ...]] = ()  # a command; empty: the job restarts by itself

    def __init__(self, program: Path, options: Sequence[str] = ()) -> None:
        self.program = program  # steelyard-load, in a folder that every node sees
        self.options = options  # the user's own options

    @abstractmethod
    def check(self) -> Mapping[str, object]:
        """Return facts about the system. Raises MissingError if it, or Steelyard on it, is
        missing."""

    @abstractmethod
    def list_own_methods(self) -> Iterator[LaunchMethod]:
        """Yield the methods that differ between batch systems, in the order of the table."""

    @abstractmethod
    def command(
        self, method: LaunchMethod, line: str, folder: Path, node: str
    ) -> tuple[list[str], str]:
        """Return command and script of one job's submission, which prints the job's id; without a
        script the command waits for its job. `node`: where it has to run, if not empty."""

    @abstractmethod
    def environment(self) -> Mapping[str, str]:
        """Return the environment of a job's submission."""

    @abstractmethod
    def find_node_for_two(self) -> str:
        """Return a node that can run two jobs at the same time."""

    @abstractmethod
    def query_reports(self, jobs: Collection[str]) -> Mapping[str, list[Report]]:
        """Return every known start, by job; array tasks have their own ids."""

    def fetch_records(self, folder: Path, job: str, reports: Sequence[Report]) -> list[Record]:
        """Return the records that are on the nodes' own disks."""
        return []

    def run(self, argv: Sequence[str], folder: Path | None = None) -> str:
        """Return the output of a command, run with the environment of a job's submission."""
        return str(self.commands.run_once(argv, self.environment(), folder))

    def cancel(self, jobs: Iterable[str]) -> None:
        """Cancel the jobs that have not ended."""
        for job in jobs:
            with suppress(MissingError):  # continue with the others
                self.run([self.cancel_program, job])

    # --- command lines and launch methods of all systems ---------------------------------------

    def load_line(self, load: KnownLoad, *actions: str) -> str:
        """Return a load as a shell command; `actions` come before its own."""
        return shlex.join([str(self.program), RESULT, *actions, *load.actions])

    def script_line(self, load: KnownLoad, *actions: str) -> str:
        """Return the load that replaces a job's script."""
        return self.load_line(load, *self.first_actions, *actions)

    def wrap_line(self, line: str) -> str:
        """Return `line` as run by steelyard-load in a job's script, which counts its usage."""
        return f"{shlex.join([str(self.program), RESULT, *self.first_actions])} -- {line}"

    def script_method(
        self,
        name: str,
        load: KnownLoad,
        *lines: str,
        beside: tuple[LimitTable, ...] = (),
        **more: object,
    ) -> LaunchMethod:
        """Return a method; without lines, its script becomes the load."""
        lines = lines or (self.script_line(load),)
        return LaunchMethod(name, load, lines, beside=(*self.beside, *beside), **more)  # type: ignore[arg-type]

    def restarted_method(
        self, name: str, *interrupt: str, options: tuple[str, ...]
    ) -> LaunchMethod:
        """Return a method that interrupts the job after the load's work; the second start repeats
        it."""
        load = known_loads.standard_load()
        line = self.script_line(KnownLoad(load.name, (*load.actions, "note", "until=again")))
        return self.script_method(name, load, line, results=2, interrupt=interrupt, options=options)

    def shared_node_methods(self) -> LaunchMethod:
        """Return a method with two jobs on one node at the same time: each waits for the other."""
        load = known_loads.standard_load()
        other = KnownLoad("", ("cpu=0.3", "read=700000", "memory=20000000:0.5"))
        lines = self.script_line(load, "meet=a:b"), self.script_line(other, "meet=b:a")
        return self.script_method("shared node", load, *lines, results=2, on_one_node=True)

    def list_methods(self, quick: bool) -> list[LaunchMethod]:
        """Return the methods in the order of the table; `quick` omits loads that others cover."""
        loads = [load for load in known_loads.LOADS if not (quick and load.name in NOT_QUICK)]
        if shutil.which("mpirun"):
            loads.append(known_loads.mpi_load(self.program))
        rates = [rate for rate in known_loads.RATES_HZ if not (quick and rate == RATE_HZ)]
        return [
            *self.list_own_methods(),
            *(
                self.script_method(
                    f"{rate} samples a second", known_loads.load_at_rate(rate), rate_hz=rate
                )
                for rate in rates
            ),
            *(self.script_method(f"{self.submit_program}: {load.name}", load) for load in loads),
        ]
