"""The interface of a batch system for calibration: launch methods, job scripts, and the results of a
job: those of its loads, records of its nodes, and its scheduler's reports. slurm_jobs.py and
pbs_jobs.py implement it."""

from __future__ import annotations

import json
import math
import shlex
import shutil
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from steelyard.analysis.sources.record_folders import find_job_folders
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.calibrate import known_loads
from steelyard.wrappers.calibrate.known_loads import RESULT, KnownLoad, Result
from steelyard.wrappers.calibrate.limits import LimitTable
from steelyard.wrappers.calibrate.table import Limit

JOB_NAME = "steelyard-calibrate"
RATE_HZ = 10


@dataclass(frozen=True)
class LaunchMethod:
    """How a load is started, how many results it writes, and what runs besides it."""

    name: str
    load: KnownLoad
    lines: tuple[str, ...]  # the command line of each job
    program: str = ""  # runs the line and waits; empty: each job is a script
    options: tuple[str, ...] = ()
    rate_hz: int = RATE_HZ
    nodes: int = 1
    tasks: int = 0  # of an array job; 0: no array
    on_one_node: bool = False  # all jobs at the same time
    results: int = 1
    job_name: str = JOB_NAME
    beside: tuple[LimitTable, ...] = ()  # limits of what else runs in the job
    no_totals: str | None = None  # why the scheduler may miss this method's totals
    interrupt: tuple[str, ...] = ()  # run with the job's id when a result exists


Record = Mapping[str, Any]
BEFORE_S = 1.0  # a load may start before its sampler


@dataclass(frozen=True)
class Report:
    """One start of a job, as its scheduler reports it."""

    is_over: bool
    elapsed_s: float | None
    nodes: tuple[str, ...] = ()
    # Our totals in the accounting, by node; the key None has those of the whole job.
    totals: Mapping[Any, Record | None] | None = None
    extern_s: float | None = None  # of its extern step, which ends after the job


@dataclass(frozen=True)
class Start:
    """One start of a job: what its loads counted, and what was measured."""

    results: Sequence[Result]
    records: Sequence[Record]
    report: Report
    is_last: bool = True  # the scheduler's totals cover the last start


def list_starts(
    results: Sequence[Result],
    records: Sequence[Record],
    reports: Sequence[Report],
    no_report: Report,
    is_restarted: bool,
) -> Iterator[Start]:
    """Yield the starts of one job, in their order. A restarted job uses one node. The last report
    belongs to the last start."""
    ordered = sorted(records, key=read_start)
    groups = [[record] for record in ordered] if is_restarted else [ordered]
    later = [read_start(record) - BEFORE_S for (record,) in groups[1:]]
    edges = [-math.inf, *later, math.inf]
    for number, group in enumerate(groups):
        remaining = len(groups) - number
        report = reports[-remaining] if remaining <= len(reports) else no_report
        mine = [
            replace(result, node=find_node(result.node, report.nodes, group))
            for result in results
            if edges[number] <= result.values["start_unix_s"] < edges[number + 1]
        ]
        yield Start(mine, group, report, remaining == 1)


def read_start(record: Record) -> float:
    """Return the time (Unix, s) at which sampling started."""
    return float(record.get("start_unix_s") or 0)


def find_node(name: str, nodes: Sequence[str], records: Sequence[Record]) -> str:
    """Return the node's name in its record: PBS gives a load only its number among the job's
    nodes."""
    measured = list(dict.fromkeys(str(record.get("node")) for record in records))
    if name in measured or not name.isdigit():
        return name
    if int(name) < len(nodes):
        name = nodes[int(name)]
        return next((node for node in measured if is_same_node(node, name)), name)
    return measured[0] if len(measured) == 1 else name


def is_same_node(name: str, other: str) -> bool:
    """Return whether two names are equal, with or without a domain."""
    return name == other or name.partition(".")[0] == other.partition(".")[0]


def read_records(folders: Iterable[Path], job: str) -> list[Record]:
    """Return the readable records of a job."""
    found = []
    for folder in folders:
        for path in (p for at in find_job_folders(folder, job) for p in sorted(at.glob("*.json"))):
            try:
                found.append(json.loads(path.read_bytes()))
            except (OSError, ValueError):  # not complete yet, or not readable for this user
                continue
    return [record for record in found if isinstance(record, dict)]


def split_documents(text: str) -> list[Record]:
    """Return the JSON documents in the text, up to the first truncated one."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        found.append(document)
    return found


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
