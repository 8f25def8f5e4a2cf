"""The ways a job can run under Torque and OpenPBS, as calls of qsub; each leaves results of
steelyard-load in its folder.

pbs_mom begins a login shell, which runs the script and waits: what it has used by then the load
reads, too (`parent`). Tasks of TM (pbsdsh) are children of pbs_mom themselves.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.calibrate import limits, loads, ways
from steelyard.wrappers.calibrate.loads import Load
from steelyard.wrappers.calibrate.table import Limit, Quantity
from steelyard.wrappers.calibrate.ways import RESULT, Command, Way
from steelyard.wrappers.schedulers.pbs.dialect import Dialect
from steelyard.wrappers.schedulers.pbs.places import Wanted
from steelyard.wrappers.study.job import Job

RATE = 10
# Without the job's variables: its name must be said by a shell that still has them.
SHELLS_RESULT = '"$PBS_JOBID,$PBS_NODENUM,%p.result"'
# What a user may call a job must reach neither a shell nor a file's name.
ODD_NAME = "$(touch.odd);`x`&../y"
SCRIPT = "script"
Request = Callable[[int], tuple[str, ...]]


@dataclass(frozen=True)
class PbsWay(Way):
    """One of PBS."""

    nodes: int = 1
    tasks: int = 0  # started on a node by another program of the job's
    pushed: tuple[str, ...] = ()  # once a result is there: this command, and the job's id

    def limit(self, quantity: Quantity) -> Limit:
        """See Way."""
        return limits.of_pbs(quantity, self.nodes > 1, self.tasks)

    def limit_of_elapsed(self, truth_s: float, told_s: float | None) -> Limit:
        """See Way."""
        return limits.of_elapsed_pbs(truth_s, told_s)


@dataclass(frozen=True)
class Maker:
    """Makes ways with this copy of steelyard-load, in this dialect, with the user's own options."""

    program: Path
    dialect: Dialect
    request: Request  # the options that ask for a sample rate
    options: tuple[str, ...] = ()

    def load(self, load: Load, *before: str) -> str:
        """The command line of a load, for a shell; `before`: actions of this way's own."""
        return shlex.join([str(self.program), RESULT, *before, *load.actions])

    def first(self, load: Load, *before: str) -> str:
        """The load that the script becomes."""
        return self.load(load, "parent", *before)

    def around(self, command: str) -> str:
        """A command in a job's script, whose own use is the job's, too."""
        return f"{shlex.quote(str(self.program))} {RESULT} parent -- {command}"

    def qsub(
        self,
        folder: Path,
        line: str,
        *options: str,
        nodes: int = 1,
        on: str = "",
        rate: int = RATE,
        name: str = ways.NAME,
    ) -> Command:
        """A job whose script becomes this line; PBS begins it in the user's home. The name stands
        in the script: Torque's qsub hands its own arguments to a shell where it has a filter."""
        script = (
            f"#!/bin/sh\n#PBS -N {name}\ncd -- {shlex.quote(str(folder))} || exit 1\nexec {line}\n"
        )
        head = (
            "qsub", "-j", "oe", "-o", f"{folder}/out", "-l", "walltime=00:05:00",
            *self.request(rate), *self.places(nodes, on),
        )  # fmt: skip
        return Command((*head, *self.options, *options, SCRIPT), script)

    def places(self, nodes: int, on: str = "") -> Iterator[str]:
        """So many nodes, a processor of each; `on`: this one."""
        spec = f"nodes={on}" if on else None
        for option in self.dialect.place(spec, Wanted(nodes, None), Job(exclusive=False), ()):
            yield from option.split(" ", 1)

    def on_each(self, folder: Path, load: Load) -> str:
        """pbsdsh: a task on every node, which begins in the user's home. Behind `--`: OpenPBS' takes
        a program's -c for its own."""
        inner = f"cd -- {shlex.quote(str(folder))} && exec {self.load(load)}"
        return shlex.join(["pbsdsh", "--", "/bin/sh", "-c", inner])

    def unmarked(self, load: Load) -> str:
        """The load with nothing in its environment; its name must be said by a shell that has it."""
        head = f"env -i {shlex.quote(str(self.program))} {SHELLS_RESULT} parent"
        return f"{head} {shlex.join(load.actions)}"

    def way(
        self,
        title: str,
        load: Load,
        line: Callable[[Path], str],
        *,
        results: int = 1,
        tasks: int = 0,
        nodes: int = 1,
        name: str = ways.NAME,
    ) -> PbsWay:
        """One job, by what its script becomes."""

        def commands(folder: Path) -> list[Command]:
            return [self.qsub(folder, line(folder), nodes=nodes, name=name)]

        return PbsWay(title, load, commands, results=results, nodes=nodes, tasks=tasks)

    def batch(self, name: str, load: Load, *options: str, rate: int = RATE) -> PbsWay:
        """A script alone."""

        def commands(folder: Path) -> list[Command]:
            return [self.qsub(folder, self.first(load), *options, rate=rate)]

        return PbsWay(name, load, commands)


def usual(make: Maker) -> Iterator[PbsWay]:
    """One node, one job."""
    load = loads.standard()
    yield make.batch("qsub", load)
    again = f"/bin/sh -c {shlex.quote(f'{make.first(load)}; {make.load(load)}; :')}"
    yield make.way("qsub, two commands", load, lambda _: again, results=2)
    yield make.way(
        "qsub, pbsdsh",
        load,
        lambda folder: make.around(make.on_each(folder, load)),
        results=2,
        tasks=1,
    )
    yield make.way("qsub, own session", load, lambda _: f"setsid {make.first(load)}")
    line = make.unmarked(load)
    yield make.way("qsub, own session without PBS_JOBID", load, lambda _: f"setsid {line}")
    yield PbsWay(
        "array",
        load,
        lambda folder: [
            make.qsub(folder, make.first(load), *make.dialect.array(2, None).split(" ", 1))
        ],
        results=2,
    )
    yield make.way("odd job name", load, lambda _: make.first(load), name=ODD_NAME)


def several(make: Maker) -> Iterator[PbsWay]:
    """More than one node, or job, or start."""
    load = loads.standard()
    yield make.way("two nodes, work on one", load, lambda _: make.first(load), nodes=2)
    yield make.way(
        "two nodes, pbsdsh",
        load,
        lambda folder: make.around(make.on_each(folder, load)),
        results=3,
        nodes=2,
        tasks=1,
    )
    yield PbsWay("shared node", load, lambda folder: shared(make, load, folder), results=2)
    noted = Load(load.name, (*load.actions, "note", "until=again"))
    yield PbsWay(
        "qrerun",
        load,
        lambda folder: [make.qsub(folder, make.first(noted), "-r", "y")],
        results=2,
        requeued=True,
        pushed=("qrerun",),
    )
    ended = Load(load.name, (*load.actions, "note", "sleep=60"))
    yield PbsWay(
        "qdel",
        load,
        lambda folder: [make.qsub(folder, make.first(ended))],
        requeued=True,  # its processes are killed
        pushed=("qdel",),
    )


def shared(make: Maker, load: Load, folder: Path) -> list[Command]:
    """Two jobs on one node, at the same time: each waits for the other."""
    node = (folder / "node").read_text()
    other = Load("", ("cpu=0.3", "read=700000", "memory=20000000:0.5"))
    return [
        make.qsub(folder, make.first(load, "meet=a:b"), on=node),
        make.qsub(folder, make.first(other, "meet=b:a"), on=node),
    ]


def rates(make: Maker) -> Iterator[PbsWay]:
    """Sampled not at all, seldom, and often."""
    for rate in (0, 1, 10, 100):
        load = loads.standard(2.2 if rate == 1 else loads.HELD_S)  # two samples at 1 Hz
        yield make.batch(f"{rate} samples a second", load, rate=rate)


def kinds(make: Maker) -> Iterator[PbsWay]:
    """Other loads, in a batch job."""
    for load in loads.LOADS:
        yield make.batch(f"qsub: {load.name}", load)
    orphans = next(load for load in loads.LOADS if load.name == "10 orphans")
    line = make.unmarked(orphans)
    yield make.way("qsub: 10 orphans without PBS_JOBID", orphans, lambda _: line)
    if shutil.which("mpirun"):
        yield make.batch("qsub: MPI", ways.mpi(make.program))


def every(make: Maker, quick: bool) -> list[PbsWay]:
    """In the order of the table; `quick`: the ways, and of the loads those that are peculiar."""
    found = [*usual(make), *several(make), *rates(make), *kinds(make)]
    if not quick:
        return found
    left_out = {"qsub: 1 process", "qsub: memory", "qsub: storage", "10 samples a second"}
    return [way for way in found if way.name not in left_out]
