"""Advice on what to request next time, where that is safe.

Too little memory or too short a time limit kills a job. So there is no advice for jobs that did not
end well, that are parts of others (an array's tasks share one request), or whose records have gaps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.analysis.job import pressure
from steelyard.analysis.job.job_totals import is_idle
from steelyard.analysis.job.job_view import JobView, describe_missing_records
from steelyard.analysis.job.time_series import JobTimeSeries
from steelyard.analysis.job.usage import RECORDS, Efficiency
from steelyard.analysis.stats.number_format import format_binary
from steelyard.jobscripts.plurals import counted

LEAST_S = 60.0  # a shorter job has too few samples
LITTLE = 0.5  # of the allocation: only smaller usage is mentioned
MEMORY_RESERVE = 1.5  # samples miss peaks, and files in /dev/shm
LEAST_MEMORY_SAVED = 1 << 30
LEAST_LIMIT_S = 900.0
TIME_RESERVE = 2.0  # the node may be busier next time
LITTLE_TIME = 0.25
LONGEST_PERIOD_S = 10.0  # between samples: less frequent samples miss peaks
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Advice:
    """Advice on memory, cpus, nodes or time, as in `about`."""

    about: str
    text: str


def find_no_advice_reason(view: JobView) -> str | None:
    """Return why there is no advice for this job; None: there may be some."""
    row = view.row
    if row is None or view.allocation is None:
        return "the scheduler's accounting does not know the job"
    if row.state != "completed":
        return f"the job is {row.state}: only one that ended well shows what it needs"
    if view.allocation.shares_request:
        return (
            "it is one of an array or of a heterogeneous job: what is asked for is for all of them"
        )
    if (row.elapsed_s or 0.0) < LEAST_S:
        return f"it took less than {LEAST_S:g} s"
    complete = [node for node in view.nodes if node.record.complete]
    if not complete or len(complete) < len(view.all_nodes):
        return describe_missing_records(len(complete), len(view.all_nodes))
    if any(node.values["samples_lost"] for node in view.nodes):
        return "samples were lost"
    return None


def advise(view: JobView, used: Efficiency, course: JobTimeSeries | None) -> list[Advice]:
    """Return the advice; [] if `find_no_advice_reason` returns a reason."""
    if find_no_advice_reason(view) is not None:
        return []
    return [
        *advise_memory(view, used),
        *advise_cpus(view, used, course),
        *advise_nodes(view),
        *advise_time(used),
    ]


def advise_memory(view: JobView, used: Efficiency) -> Iterator[Advice]:
    """Yield advice on memory, for one node only: how it was split over nodes is unknown."""
    memory, allocation = used.memory, view.allocation
    if allocation is None or len(view.all_nodes) != 1 or memory.source != RECORDS:
        return
    # Slurm samples at other times than Steelyard.
    most = max(memory.used or 0.0, allocation.resident_high_bytes or 0.0)
    if not memory.allocated or not most or most > LITTLE * memory.allocated:
        return
    enough = math.ceil(most * MEMORY_RESERVE / MIB / 128) * 128 * MIB
    if memory.allocated - enough < LEAST_MEMORY_SAVED:
        return
    yield Advice(
        "memory",
        f"held {format_binary(memory.allocated)}, used {format_binary(most)} at most: {enough // MIB} MiB would have "
        "half as much again in reserve",
    )


def advise_cpus(view: JobView, used: Efficiency, course: JobTimeSeries | None) -> Iterator[Advice]:
    """Yield advice on CPUs, if no samples show more busy CPUs and the job got what it requested."""
    allocation = view.allocation
    if allocation is None or course is None or course.most_cpus is None or len(view.all_nodes) != 1:
        return
    cpus, accounted_cpu_s = allocation.cpus or 0, allocation.cpu_s or 0.0
    got_more_cpus = allocation.cpus_requested is not None and allocation.cpus_requested < cpus
    # The scheduler counted more than the record.
    differs = accounted_cpu_s > 1.1 * (used.cpu.used or 0.0) + 1
    if pressure.find_cpu_pressure(view) is not None:
        return  # few CPUs were busy because other processes used them
    if got_more_cpus or differs or used.cpu.source != RECORDS or course.period_s > LONGEST_PERIOD_S:
        return
    enough = max(1, math.ceil(course.most_cpus - 0.1))
    if enough < cpus and course.most_cpus <= LITTLE * cpus:
        yield Advice(
            "cpus",
            f"held {counted(cpus, 'CPU')}, never more than {course.most_cpus:.2g} were busy "
            f"(every {course.period_s:.2g} s): was the program told to use {cpus}? "
            f"Else {enough} will do",
        )


def advise_nodes(view: JobView) -> Iterator[Advice]:
    """Yield advice on nodes where no step of the job ran."""
    idle = [node.node for node in view.nodes if is_idle(node.record)]
    if idle and len(idle) < len(view.all_nodes):
        named = ", ".join(idle[:4]) + (" …" if len(idle) > 4 else "")
        yield Advice(
            "nodes",
            f"held {len(view.all_nodes)} nodes, and nothing was started on {len(idle)} of them "
            f"({named}): start the program with srun or mpirun, or ask for "
            f"{len(view.all_nodes) - len(idle)}",
        )


def advise_time(used: Efficiency) -> Iterator[Advice]:
    """Yield advice on a long time limit; short jobs start soon in any case."""
    limit, took, share = used.time.allocated, used.time.used, used.time.share
    if not limit or not took or share is None or share > LITTLE_TIME or limit < LEAST_LIMIT_S:
        return
    minutes = max(math.ceil(took * TIME_RESERVE / 60), 10)
    if 60 * minutes < limit:
        yield Advice(
            "time",
            f"the time limit was {format_clock(limit)}, it took {format_clock(took)}: "
            f"{format_clock(60 * minutes)} has as much again in reserve, and starts sooner",
        )


def format_clock(seconds: float) -> str:
    """Format a duration as `2:00:00`, as limits are written."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
