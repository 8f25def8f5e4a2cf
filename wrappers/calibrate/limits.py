"""How far a weighing may be from the truth, by the way it was run; every limit has its reason.

Bytes are exact but for what slurmstepd itself reads and writes while a step runs: docs/calibrate.md
has what was measured. Nothing may ever be missing of bytes.
"""

from __future__ import annotations

from steelyard.wrappers.calibrate import table
from steelyard.wrappers.calibrate.table import Limit, Quantity

MIB = 2**20
# Read after the load's last reading of its own clock: its result, its exit.
ENDING = Limit(0.0005, 0.005, "the load's own end, after it has read its clock")
OWN_MEMORY = Limit(0, 4 * MIB, "the load's program text, stack and C library")
START = Limit(0, 0.005, "starting and ending a process, which the load does not see")

# A task and its slurmstepd let each other go by a byte, which either side of a reading may have.
STEPD = {
    table.CPU.name: Limit(0, 0.01, "slurmstepd's own CPU time while its step runs"),
    table.READS.name: Limit(4, 20_000, "what slurmstepd itself reads while its step runs"),
    table.WRITES.name: Limit(4, 1_000, "what slurmstepd itself writes while its step runs"),
}
BESIDE = Limit(0.05, 0, "the sampler is started beside the job's first process")
# What a parent knows of its children is in ticks (proc(5), cutime and cstime), rounded twice.
KILLED = {
    table.CPU.name: Limit(0.02, 0, "of what was killed the kernel tells children's CPU in ticks"),
    # linuxproc reads all of /proc for whom to kill, in a thread that is gone before it can be asked.
    table.READS.name: Limit(0, 400_000, "slurmstepd's search through /proc for whom to kill"),
}
FILES = Limit(0, 16_384, "pages of the file system's own, which new files make dirty")
SRUN_MEMORY = Limit(0, 16 * MIB, "srun in the job is a process of it, too")


def of_run(quantity: Quantity) -> Limit:
    """`steelyard run`."""
    if quantity is table.CPU:
        return ENDING
    if quantity is table.MEMORY:
        return OWN_MEMORY
    if quantity is table.ELAPSED:
        return START
    return FILES if quantity in (table.STORED, table.FETCHED) else Limit()


def of_container(own: float) -> Limit:
    """`own`: what the same container takes with nothing in it; half as much again for its spread."""
    return Limit(0, 1.5 * own, "what starting the container takes, as weighed with nothing in it")


def of_slurm(quantity: Quantity, steps: int, sruns: int) -> Limit:
    """A job; `steps` of slurmstepd on the node, `sruns` among the job's own processes."""
    if quantity is table.MEMORY:
        return OWN_MEMORY + times(SRUN_MEMORY, sruns)
    limit = of_run(quantity) if quantity is not table.ELAPSED else Limit()
    return limit + times(STEPD.get(quantity.name, Limit()), steps)


EXIT = Limit(0, 0.001, "the end of a process, after it has read its own clock")
SRUNS_LAST = Limit(0, 1, "a byte that srun reads when its use was asked for already")
TICK = Limit(0.004, 0, "the last tick of a process whose end the kernel did not show")


def of_counted(quantity: Quantity, usual: Limit, unwaited: int, missed: int, sruns: int) -> Limit:
    """A job whose every process the kernel has counted: nothing of slurmstepd's is in it. `usual`:
    the limit where it has not; `unwaited`: processes of whose ends the load itself does not know;
    `missed`: those that the kernel did not show; `sruns`: among the job's own processes."""
    if quantity is table.READS:
        return times(SRUNS_LAST, sruns)
    if quantity is table.WRITES:
        return Limit()
    more = times(EXIT, unwaited) + times(TICK, missed)
    return usual + more if quantity is table.CPU else usual


# PBS: nobody but pbs_mom waits for the job's shell, and it tells nobody. A shell's own use is in
# the limit by what the load has read of it; the rest is what it does after the load.
LOGIN_SHELL = {
    table.CPU.name: Limit(
        0.02, 0.01, "of a shell's children the kernel tells CPU in ticks; what its files start"
    ),
    table.READS.name: Limit(0, 20_000, "the login shell's end: its ~/.bash_logout"),
    table.WRITES.name: Limit(0, 1_000, "the login shell's end: its ~/.bash_logout"),
    table.MEMORY.name: Limit(0, 16 * MIB, "the login shell is a process of the job, too"),
}
# Of a job on several nodes the first has a pbs_demux, which passes the tasks' output on.
DEMUX = {
    table.CPU.name: Limit(0, 0.005, "pbs_demux"),
    table.READS.name: Limit(0, 40_000, "pbs_demux: its libraries, the tasks' output"),
    table.WRITES.name: Limit(0, 1_000, "pbs_demux: the tasks' output"),
    table.FETCHED.name: Limit(0, MIB // 4, "pbs_demux: its program, where nobody ran it before"),
    table.MEMORY.name: Limit(
        0, 256 * MIB, "pbs_demux, for a moment a copy of pbs_mom: Torque's locks all of its memory"
    ),
}
TM_MEMORY = Limit(0, 16 * MIB, "pbsdsh in the job is a process of it, too")
HOOKS_S = 6.0


def of_pbs(quantity: Quantity, demux: bool, tasks: int) -> Limit:
    """A job; `tasks`: started by another program in it, pbsdsh or mpirun."""
    limit = of_run(quantity) if quantity is not table.ELAPSED else Limit()
    limit += LOGIN_SHELL.get(quantity.name, Limit())
    if demux:
        limit += DEMUX.get(quantity.name, Limit())
    if quantity is table.MEMORY and tasks:
        limit += times(TM_MEMORY, tasks)
    return limit


def of_elapsed_pbs(truth_s: float, walltime_s: float | None) -> Limit:
    """From the load's own time to PBS' walltime, and what runs before and after the job."""
    why = "up to PBS' walltime, and the prologue or hook before it, the epilogue after it"
    return BESIDE + Limit(0, max((walltime_s or 0) - truth_s, 0) + HOOKS_S, why)


def times(limit: Limit, count: int) -> Limit:
    """The same for each of several; of none: nothing."""
    return Limit(limit.less * count, limit.more * count, limit.why if count else "")


def of_elapsed(truth_s: float, slurm_s: float | None) -> Limit:
    """From the load's own time to Slurm's Elapsed, which has whole seconds at both ends.

    That of what the figure ends with: a record with the extern step, AdminComment with the job.
    """
    if slurm_s is None:
        return BESIDE + Limit(0, 2, "the sampler ends after the job")
    more = max(slurm_s + 1 - truth_s, 0)
    return BESIDE + Limit(0, more, "up to Slurm's Elapsed, which has whole seconds at both ends")
