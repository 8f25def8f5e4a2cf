"""Compares what was allocated to a job with what it used."""

from __future__ import annotations

import time as wall_clock
from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.analysis.job.job_totals import is_idle
from steelyard.analysis.job.job_view import JobView, NodeView, compute_recorded_s, has_later_start
from steelyard.analysis.sources.accounting import FINAL_STATES, Allocation

RECORDS, ACCOUNTING = "records", "accounting"
NOT_BEGUN = "it has not begun"
NEVER_BEGUN = "it never began"
NO_TIME = "the scheduler does not say how long it took"
WITHIN_A_SECOND = "it ended within a second, and the scheduler counts whole ones"


@dataclass(frozen=True, slots=True)
class Usage:
    """Usage of one resource; `share` is used / allocated.

    `is_least`: `used` is a lower bound, since some nodes are unknown. `reason` states why there is
    no share.
    """

    allocated: float | None = None
    used: float | None = None
    is_least: bool = False
    source: str | None = None  # of `used`
    reason: str | None = None

    @property
    def share(self) -> float | None:
        """used / allocated; None if one of them is unknown."""
        return None if self.used is None or not self.allocated else self.used / self.allocated


@dataclass(frozen=True, slots=True)
class Efficiency:
    """Usage of CPU in core-seconds, memory in bytes, and time in seconds."""

    cpu: Usage
    memory: Usage
    time: Usage


def compute_efficiency(view: JobView) -> Efficiency:
    """Return the usage of a job, or of a running job so far."""
    return Efficiency(compute_cpu(view), compute_memory(view), compute_time(view))


def compute_elapsed_s(view: JobView) -> float | None:
    """Return how many seconds the job had its nodes; for a running job so far.

    PBS reports this only at the end. The records' time is used if only they have it, or if the
    scheduler counts from a later start.
    """
    row = view.row
    if row is None or has_later_start(view):
        return compute_recorded_s(view)
    if row.elapsed_s is None and row.state == "running" and row.start_unix_s is not None:
        return max(wall_clock.time() - row.start_unix_s, 0.0)
    return row.elapsed_s


def compute_cpu(view: JobView) -> Usage:
    """Return the CPU time of the job's processes, and its CPUs x its elapsed time."""
    allocation = view.allocation or Allocation()
    used, is_least, source = find_best_value(view, "cpu_s", allocation.cpu_s)
    cpus, elapsed = allocation.cpus, compute_elapsed_s(view)
    allocated = cpus * elapsed if cpus and elapsed else None
    reason = find_missing_reason(view, "cpus", cpus, used)
    if used is None and cpus is not None:
        reason = allocation.missing.get("cpu_s", reason)
    if reason is None and allocated is None:
        begun = view.row is None or view.row.start_unix_s is not None
        reason = WITHIN_A_SECOND if elapsed == 0 else NO_TIME if begun else describe_unstarted(view)
    return Usage(allocated, used, is_least, source, reason)


def compute_memory(view: JobView) -> Usage:
    """Return the memory of the job, and the sum of its nodes' highest values from samples."""
    allocation = view.allocation or Allocation()
    allocated_bytes = allocation.memory_bytes
    used, is_least, source = find_best_value(
        view, "max_memory_bytes", allocation.resident_low_bytes
    )
    return Usage(
        allocated_bytes,
        used,
        is_least,
        source,
        find_missing_reason(view, "memory_bytes", allocated_bytes, used),
    )


def compute_time(view: JobView) -> Usage:
    """Return the elapsed time, and the time limit."""
    limit, elapsed = (view.allocation or Allocation()).time_limit_s, compute_elapsed_s(view)
    source = RECORDS if view.row is None or has_later_start(view) else ACCOUNTING
    return Usage(
        limit, elapsed, False, source, find_missing_reason(view, "time_limit_s", limit, elapsed)
    )


def find_missing_reason(
    view: JobView, field: str, allocated: float | None, used: float | None
) -> str | None:
    """Return why there is no share for a field of Allocation; None: both values are known."""
    if allocated is None:
        reason = view.allocation.missing.get(field) if view.allocation is not None else None
        begun = view.row is None or view.row.start_unix_s is not None
        return reason or ("the scheduler does not say" if begun else describe_unstarted(view))
    return None if used is not None else "what it used is not known"


def describe_unstarted(view: JobView) -> str:
    """Describe a job without a start: whether it may still start."""
    return NEVER_BEGUN if view.row is not None and view.row.state in FINAL_STATES else NOT_BEGUN


def find_best_value(
    view: JobView, column: str, accounted: float | None
) -> tuple[float | None, bool, str | None]:
    """Return the usage, whether it is a lower bound, and its source.

    All nodes' records come first, then the accounting, then the existing records.
    """
    found = [value for _, value in read_node_values(view, column)]
    if all(is_idle(node.record) for node in view.nodes):
        found = []  # no step ran on any node: the values are the scheduler's own
    is_least = len(found) < len(view.all_nodes)
    if found and not is_least:
        return float(sum(found)), False, RECORDS
    if accounted is not None:
        return float(accounted), False, ACCOUNTING
    return (float(sum(found)), True, RECORDS) if found else (None, False, None)


def read_node_values(view: JobView, column: str) -> Iterator[tuple[NodeView, float]]:
    """Yield the usage of processes on each node whose record has it, so far for a running job."""
    runs = view.row is not None and view.row.state == "running"
    for node in view.nodes:
        value = 0 if is_idle(node.record) else node.values[column]
        if value is not None and (runs or node.record.is_total_final(column)):
            yield node, value
