"""Limits of how far a measurement may be from the truth, by launch method, each with its reason.

Bytes are exact except for what slurmstepd or a login shell reads and writes in the same job;
bench/RESULTS.md has the measurements. No bytes may be missing."""

from __future__ import annotations

from collections.abc import Mapping

from steelyard.wrappers.calibrate import table
from steelyard.wrappers.calibrate.table import Limit, Quantity

MIB = 2**20
LimitTable = Mapping[str, Limit]  # by the name of a quantity

FILES = Limit(0, 16_384, "pages of the file system's own, which new files make dirty")
# Usage after the load reads its own clock: writing its result, and its exit.
LOAD: LimitTable = {
    table.CPU.name: Limit(0.0005, 0.005, "the load's own end, after it has read its clock"),
    table.MEMORY.name: Limit(0, 4 * MIB, "the load's program text, stack and C library"),
    table.FETCHED.name: FILES,
    table.STORED.name: FILES,
}
START = Limit(0, 0.005, "starting and ending a process, which the load does not see")

# A task and its slurmstepd synchronize by a byte, which may be on either side of a reading.
STEPD: LimitTable = {
    table.CPU.name: Limit(0, 0.01, "slurmstepd's own CPU time while its step runs"),
    table.READS.name: Limit(4, 20_000, "what slurmstepd itself reads while its step runs"),
    table.WRITES.name: Limit(4, 1_000, "what slurmstepd itself writes while its step runs"),
}
SRUN: LimitTable = {
    table.MEMORY.name: Limit(0, 16 * MIB, "srun in the job is a process of it, too"),
}
# A parent knows its children's usage in ticks (proc(5), cutime and cstime), rounded twice.
KILLED: LimitTable = {
    table.CPU.name: Limit(0.02, 0, "of what was killed the kernel has children's CPU in ticks"),
    # To kill a job linuxproc reads all of /proc, in a thread that ends before it can be read.
    table.READS.name: Limit(0, 400_000, "slurmstepd's search through /proc for whom to kill"),
}

# PBS: only pbs_mom waits for the job's shell, and does not report it. The limit includes what the
# load read of the shell's own usage; the rest is what the shell does after the load.
LOGIN_SHELL: LimitTable = {
    table.CPU.name: Limit(
        0.02, 0.01, "of a shell's children the kernel has CPU in ticks; what its files start"
    ),
    table.READS.name: Limit(0, 20_000, "the login shell's end: its ~/.bash_logout"),
    table.WRITES.name: Limit(0, 1_000, "the login shell's end: its ~/.bash_logout"),
    table.MEMORY.name: Limit(0, 16 * MIB, "the login shell is a process of the job, too"),
}
# On the first node of a job on several nodes pbs_demux forwards the tasks' output.
DEMUX: LimitTable = {
    table.CPU.name: Limit(0, 0.005, "pbs_demux"),
    table.READS.name: Limit(0, 40_000, "pbs_demux: its libraries, the tasks' output"),
    table.WRITES.name: Limit(0, 1_000, "pbs_demux: the tasks' output"),
    table.FETCHED.name: Limit(0, MIB // 4, "pbs_demux: its program, where nobody ran it before"),
    table.MEMORY.name: Limit(
        0, 256 * MIB, "pbs_demux, for a moment a copy of pbs_mom: Torque's locks all of its memory"
    ),
}
PBSDSH: LimitTable = {
    table.MEMORY.name: Limit(0, 16 * MIB, "pbsdsh in the job is a process of it, too"),
}
# If the kernel counts: the load's own counters start with pbs_mom's fork, the record's with the
# task's program.
TASK: LimitTable = {
    table.READS.name: Limit(8_000, 0, "what pbs_mom's child reads before it executes the task"),
    table.WRITES.name: Limit(500, 0, "what pbs_mom's child writes before it executes the task"),
}
PBS_HOOKS_S = 6.0

EXIT = Limit(0, 0.001, "the end of a process, after it has read its own clock")
TICK = Limit(0.004, 0, "the last tick of a process whose end the kernel did not show")
LAST_BYTE_OF_SRUN = Limit(0, 1, "a byte that srun reads after its own use was read")
BESIDE = Limit(0.05, 0, "the sampler is started beside the job's first process")


def load_limit(quantity: Quantity, *beside: LimitTable) -> Limit:
    """Return the limit of a quantity other than time; `beside`: limits of what else runs in the
    job, once for each instance."""
    tables = (LOAD, *beside)
    return sum((one.get(quantity.name, Limit()) for one in tables), Limit())


def container_limit(own: float) -> Limit:
    """Return a container's limit; `own` is what it uses with nothing in it, plus half as much for
    its spread."""
    return Limit(0, 1.5 * own, "what starting the container takes, as measured with nothing in it")


def counted_limit(
    quantity: Quantity, usual: Limit, unwaited: int, missed: int, sruns: int
) -> Limit:
    """Return the limit if the kernel has counted every process, so that slurmstepd is excluded.

    `usual`: the limit otherwise; `unwaited`: processes whose ends the load does not see; `missed`:
    ends that the kernel did not report; `sruns`: number of sruns among the job's own processes."""
    if quantity is table.READS:
        return multiply_limit(LAST_BYTE_OF_SRUN, sruns)
    if quantity is table.WRITES:
        return Limit()
    if quantity is table.CPU:
        return usual + multiply_limit(EXIT, unwaited) + multiply_limit(TICK, missed)
    return usual


def multiply_limit(limit: Limit, count: int) -> Limit:
    """Return the limit for several equal instances; for none, an empty limit."""
    return Limit(limit.less * count, limit.more * count, limit.why if count else "")


def slurm_elapsed_limit(truth_s: float, scheduler_s: float | None) -> Limit:
    """Return the limit between the load's own time and Slurm's Elapsed, which has whole seconds at
    both ends.

    `scheduler_s` is the time of what ends the figure: the extern step for a record, the job for
    AdminComment."""
    if scheduler_s is None:
        return BESIDE + Limit(0, 2, "the sampler ends after the job")
    more = max(scheduler_s + 1 - truth_s, 0)
    return BESIDE + Limit(0, more, "up to Slurm's Elapsed, which has whole seconds at both ends")


def pbs_elapsed_limit(truth_s: float, scheduler_s: float | None) -> Limit:
    """Return the limit between the load's own time and PBS' walltime, with what runs before and
    after the job."""
    why = "up to PBS' walltime, and the prologue or hook before it, the epilogue after it"
    return BESIDE + Limit(0, max((scheduler_s or 0) - truth_s, 0) + PBS_HOOKS_S, why)
