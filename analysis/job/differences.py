"""Compares two jobs: their differences, their usage, and when their time series diverge.

With one run each, nothing here states a cause, nor whether the difference would recur.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from steelyard.analysis.job import job_totals
from steelyard.analysis.job.job_view import JobView
from steelyard.analysis.job.time_series import JobTimeSeries, Series
from steelyard.analysis.job.usage import compute_elapsed_s
from steelyard.facts.quantities import METRICS

# By importance: what was requested of the node, what the node is, what was allocated.
OF_RECORDS = {
    "network conditions": "network_conditions.requested",
    "conditions as asked": "network_conditions.valid",
    "cache": "cache",
    "node type": "probe.node_type",
    "virtual machine": "probe.virtualization.vm.name",
    "container": "probe.virtualization.container.name",
    "processor": "probe.cpu.model",
    "processors online": "probe.cpu.cpus_online",
    "microcode": "probe.cpu.microcode",
    "BIOS": "probe.bios.version",
    "governor": "probe.cpu.governor",
    "turbo": "probe.cpu.boost",
    "hyperthreading": "probe.cpu.smt",
    "memory of the node": "probe.memory.memory_bytes",
    "transparent huge pages": "probe.memory.transparent_huge_pages",
    "NUMA balancing": "probe.memory.numa_balancing",
    "operating system": "probe.os.name",
    "C library": "probe.libc.version",
    "kernel": "probe.kernel.release",
    "kernel command line": "probe.kernel.cmdline",
    "clock": "probe.clock.source",
    "TCP": "probe.tcp.congestion_control",
    "alone on its nodes": "job.exclusive",
    "energy covers": "energy.covers",
    "samples a second": "sampler.rate_hz",
    "Steelyard": "steelyard",
}
OF_HELD = {
    "partition": "partition",
    "account": "account",
    "number of nodes": "nodes",
    "CPUs": "cpus",
    "memory held": "memory_bytes",
    "GPUs": "gpus",
    "time limit": "time_limit_s",
}
GPU_ENERGY = "gpu_energy_j"  # of the jobs' own GPUs
STEPS = 400  # number of times at which two time series are compared
APART = 0.1  # of the larger total: smaller differences are no divergence


@dataclass(frozen=True, slots=True)
class Fact:
    """A property of both jobs; None: unknown or absent."""

    about: str
    a: object
    b: object

    @property
    def differs(self) -> bool:
        return self.a != self.b


@dataclass(frozen=True, slots=True)
class Used:
    """A quantity of both jobs, and why one is unknown."""

    name: str
    unit: str
    a: float | None
    b: float | None
    a_missing: str | None = None
    b_missing: str | None = None

    @property
    def ratio(self) -> float | None:
        """B / A, or None."""
        return None if self.a is None or self.b is None or not self.a else self.b / self.a


def compare_facts(a: JobView, b: JobView) -> list[Fact]:
    """Return the properties that are known of at least one job."""
    sides = [describe_job(view) for view in (a, b)]
    names = [*sides[0], *(name for name in sides[1] if name not in sides[0])]
    found = (Fact(name, sides[0].get(name), sides[1].get(name)) for name in names)
    return [fact for fact in found if fact.a is not None or fact.b is not None]


def describe_job(view: JobView) -> dict[str, object]:
    """Describe a job by named properties, ordered by importance."""
    row, allocation = view.row, view.allocation
    tags = sorted({f"{k}={v}" for n in view.nodes for k, v in n.record.tags.items()})
    return {
        "state": row and row.state,
        "exit code": row and row.exit_code,
        "refused": "; ".join(view.refused) or None,
        "name": row and row.name,
        "tags": ", ".join(tags) or None,
        **{name: format_record_field(view, path) for name, path in OF_RECORDS.items()},
        "cluster": row and row.cluster,
        "nodes": ", ".join(view.all_nodes) or None,
        **{name: allocation and getattr(allocation, field) for name, field in OF_HELD.items()},
    }


def format_record_field(view: JobView, path: str) -> object:
    """Return the values of a record's field on all nodes as text, each once."""
    values = [node.record.get(path) for node in view.nodes]
    texts = sorted({format_fact(value) for value in values if value is not None})
    return ", ".join(texts) or None


def format_fact(value: object) -> str:
    """Format a value of a record."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def compare_usage(a: JobView, b: JobView) -> list[Used]:
    """Return the elapsed time and each total of both jobs."""
    found = [Used("elapsed_s", "s", compute_elapsed_s(a), compute_elapsed_s(b))]
    for name, total in METRICS.items():
        (left, why_left), (right, why_right) = a.total_or_reason(name), b.total_or_reason(name)
        found.append(Used(name, total.unit, left, right, why_left, why_right))
    (left, why_left), (right, why_right) = (
        job_totals.sum_energy_or_reason([node.record for node in view.nodes]) for view in (a, b)
    )
    found.append(Used(GPU_ENERGY, "J", left, right, why_left, why_right))
    return found


def resample(series: Series, piece_s: float, width_s: float, number: int) -> Series:
    """Return the series in `number` segments of `width_s` from its start: the mean of each.

    None: nothing is known of a segment.
    """
    sums = cumulate(series, piece_s)
    known = [0.0]
    for value in series:
        known.append(known[-1] + (piece_s if value is not None else 0.0))
    result: Series = []
    for index in range(number):
        begin, end = index * width_s, (index + 1) * width_s
        length = interpolate(known, piece_s, begin, end)
        result.append(interpolate(sums, piece_s, begin, end) / length if length > 1e-9 else None)
    return result


def cumulate(series: Series, piece_s: float) -> list[float]:
    """Return the sum up to each edge; an unknown value adds nothing."""
    sums = [0.0]
    for value in series:
        sums.append(sums[-1] + (value or 0.0) * piece_s)
    return sums


def interpolate(sums: Sequence[float], piece_s: float, begin: float, end: float) -> float:
    """Return what was added between two times."""
    return interpolate_sum(sums, piece_s, end) - interpolate_sum(sums, piece_s, begin)


def interpolate_sum(sums: Sequence[float], piece_s: float, moment: float) -> float:
    """Return the sum at a time, interpolated linearly between two edges."""
    position = moment / piece_s
    index = min(int(position), len(sums) - 1)
    if index == len(sums) - 1:
        return sums[-1]
    return sums[index] + (sums[index + 1] - sums[index]) * (position - index)


def find_divergence_s(a: JobTimeSeries, b: JobTimeSeries, name: str) -> float | None:
    """Return the time in seconds from which the counts differ by more than APART until the shorter
    job ends.

    None: they do not, or one series is unknown.
    """
    left, right = a.series[name], b.series[name]
    if all(v is None for v in left) or all(v is None for v in right):
        return None
    sums = cumulate(left, a.piece_s), cumulate(right, b.piece_s)
    limit = APART * max(sums[0][-1], sums[1][-1])
    end = min(a.end_s, b.end_s)
    moments = [end * n / STEPS for n in range(STEPS + 1)]
    far = [
        abs(interpolate_sum(sums[0], a.piece_s, t) - interpolate_sum(sums[1], b.piece_s, t)) > limit
        for t in moments
    ]
    if not limit or not far[-1]:
        return None
    last_close = max((index for index, is_far in enumerate(far) if not is_far), default=-1)
    return moments[last_close + 1]


def list_equal_facts(found: Iterable[Fact]) -> list[str]:
    """Return the names of properties that do not differ."""
    return [fact.about for fact in found if not fact.differs]
