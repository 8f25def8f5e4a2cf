"""The ways a job can run in Slurm, as commands; each leaves results of steelyard-load in its folder."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.calibrate import limits, loads
from steelyard.wrappers.calibrate.loads import Load
from steelyard.wrappers.calibrate.table import Limit, Quantity

RESULT = "%j,%n,%p.result"
NAME = "steelyard-calibrate"
RATE = "--sample-rate=10"
LONG = Load("a little of all", (*loads.standard().actions, "sleep=1"))  # a step of over a second
ALLOCATION = ("SLURM_JOBID", "SLURM_JOB_ID", "SLURM_NODELIST", "SLURM_JOB_NODELIST")
BRIEF = "a step of less than a second without a tag leaves no AdminComment (docs/admin.md)"
RACE = "Slurm had ended the job before its comment came (docs/admin.md)"


@dataclass(frozen=True)
class Command:
    """One command of the scheduler's, and what it reads."""

    argv: tuple[str, ...]
    script: str | None = None


@dataclass(frozen=True)
class Way:
    """How a load is run, how many results it leaves, and what is peculiar to it."""

    name: str
    load: Load
    commands: Callable[[Path], list[Command]]  # of the way's folder
    results: int = 1
    steps: int = 1  # slurmstepd's on the busiest node that the load ran under
    sruns: int = 0  # in the job itself: processes of it
    no_comment: str | None = None  # why AdminComment may not be there
    requeued: bool = False  # once a result is there, the job is sent back to the queue

    def limit(self, quantity: Quantity) -> Limit:
        """Of one node's loads, of all but time."""
        return limits.of_slurm(quantity, self.steps, self.sruns)

    def limit_of_elapsed(self, truth_s: float, told_s: float | None) -> Limit:
        """`told_s`: the scheduler's own time of the job, or of its step that ends last."""
        return limits.of_elapsed(truth_s, told_s)


@dataclass(frozen=True)
class Maker:
    """Makes ways with this copy of steelyard-load and these options of the user's."""

    program: Path
    options: tuple[str, ...] = ()

    def load(self, load: Load, *before: str) -> str:
        """The command line of a load, for a shell; `before`: actions of this way's own."""
        return shlex.join([str(self.program), RESULT, *before, *load.actions])

    def around(self, command: str) -> str:
        """A command in a job's script, whose own use is the job's, too."""
        return f"{shlex.quote(str(self.program))} {RESULT} -- {command}"

    def sbatch(self, script: str, *options: str) -> Command:
        """A batch job; the shell becomes the load."""
        head = ("sbatch", "--parsable", f"--job-name={NAME}", "--time=5", "--output=out.%j")
        return Command((*head, *self.options, *options), f"#!/bin/sh\nexec {script}\n")

    def direct(self, program: str, command: str, *options: str) -> Command:
        """srun or salloc."""
        head = (program, f"--job-name={NAME}", "--time=5")
        return Command((*head, *self.options, *options, *shlex.split(command)))

    def batch(self, name: str, load: Load, *options: str) -> Way:
        """sbatch without srun."""
        argv = options or (RATE,)
        return Way(name, load, lambda _: [self.sbatch(self.load(load), "-n1", *argv)])


def usual(make: Maker) -> Iterator[Way]:
    """One node, one after another."""
    load = loads.standard()
    line, long = make.load(load), make.load(LONG)
    yield make.batch("sbatch", load)
    yield Way(
        "sbatch, srun in it",
        load,
        lambda _: [make.sbatch(make.around(f"srun {line}"), "-n1", RATE)],
        results=2,
        steps=2,
        sruns=1,
    )
    yield Way(
        "srun alone", LONG, lambda _: [make.direct("srun", long, "-n1", RATE)], no_comment=RACE
    )
    brief = Load("brief", ("cpu=0.1", "read=500000", "write=400000"), loads.CALLS)
    yield Way(
        "srun alone, brief",
        brief,
        lambda _: [make.direct("srun", make.load(brief), "-n1", RATE)],
        no_comment=BRIEF,
    )
    yield Way(
        "srun alone, tagged",
        load,
        lambda _: [make.direct("srun", line, "-n1", RATE, "--tag=way=srun")],
        no_comment=RACE,
    )
    both = shlex.join(["sh", "-c", f"srun --tag=way=salloc {line}; srun {line}"])
    yield Way(
        "salloc, srun twice",
        load,
        lambda _: [make.direct("salloc", both, "-n1", RATE, "--tag=way=salloc")],
        results=2,
        steps=2,
        no_comment=RACE,
    )
    yield Way("array", load, lambda _: [make.sbatch(line, "-n1", "--array=0-1", RATE)], results=2)


def several(make: Maker) -> Iterator[Way]:
    """More than one node, step or job at a time."""
    load = loads.standard()
    line = make.load(load)
    het = make.around(f"srun --het-group=0,1 {line}")
    yield Way(
        "het job",
        load,
        lambda _: [make.sbatch(het, "-N1", "-n1", RATE, ":", "-N1", "-n1", RATE)],
        results=3,
        steps=2,
        sruns=2,
        no_comment=RACE,
    )
    yield Way("two nodes, work on one", load, lambda _: [make.sbatch(line, "-N2", "-n2", RATE)])
    yield Way(
        "two nodes",
        load,
        lambda _: [make.sbatch(make.around(f"srun {line}"), "-N2", "-n2", RATE)],
        results=3,
        steps=2,
        sruns=1,
    )
    pair = f"sh -c {shlex.quote(f'srun --overlap {line} & srun --overlap {line}; wait')}"
    yield Way(
        "--overlap",
        load,
        lambda _: [make.sbatch(make.around(pair), "-n1", RATE)],
        results=3,
        steps=3,
        sruns=2,
    )
    yield Way("shared node", load, lambda folder: shared(make, load, folder), results=2)
    noted = Load("a little of all", (*load.actions, "note", "until=again"))
    yield Way(
        "requeue",
        load,
        lambda _: [make.sbatch(make.load(noted), "-n1", "--requeue", RATE)],
        results=2,
        requeued=True,
    )


def shared(make: Maker, load: Load, folder: Path) -> list[Command]:
    """Two jobs on one node, at the same time: each waits for the other."""
    on = (f"--nodelist={(folder / 'node').read_text()}", "-n1", "-N1", RATE)
    one = make.load(load, "meet=a:b")
    other = make.load(Load("", ("cpu=0.3", "read=700000", "memory=20000000:0.5")), "meet=b:a")
    return [make.sbatch(one, *on), make.sbatch(other, *on)]


def rates(make: Maker) -> Iterator[Way]:
    """Sampled not at all, seldom, and often."""
    for rate in (0, 1, 10, 100):
        load = loads.standard(2.2 if rate == 1 else loads.HELD_S)  # two samples at 1 Hz
        yield make.batch(f"{rate} samples a second", load, f"--sample-rate={rate}")


def kinds(make: Maker) -> Iterator[Way]:
    """Other loads, in a batch job."""
    for load in loads.LOADS:
        yield make.batch(f"sbatch: {load.name}", load)
    if shutil.which("mpirun"):
        yield make.batch("sbatch: MPI", mpi(make.program))


def mpi(program: Path) -> Load:
    """Two ranks; what they use is counted with mpirun's own, by who waits for it."""
    rank = [str(program), "rank.%p", "cpu=0.2", "read=300000", "write=200000"]
    start = ["mpirun", "-n", "2", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    # Else Open MPI starts the ranks by an srun of its own, and nobody here waits for them.
    alone = ["env", *(word for name in ALLOCATION for word in ("-u", name))]
    return Load("MPI", ("--", *alone, *start, "--oversubscribe", *rank), loads.CALLS)


def every(make: Maker, quick: bool) -> list[Way]:
    """In the order of the table; `quick`: the ways, and of the loads those that are peculiar."""
    found = [*usual(make), *several(make), *rates(make), *kinds(make)]
    if not quick:
        return found
    left_out = {"sbatch: 1 process", "sbatch: memory", "sbatch: storage", "10 samples a second"}
    return [way for way in found if way.name not in left_out]
