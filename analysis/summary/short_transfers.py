"""Checks whether bulk transfers are long enough to measure throughput and not latency.

A short transfer over a long path waits for answers most of its time. Its throughput is then limited
by latency, but would count as throughput in the split of a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import fmean
from typing import Any

from steelyard.analysis.base.benchmark_traits import find_description
from steelyard.analysis.collect.network import FACTOR
from steelyard.analysis.stats.number_format import format_quantity
from steelyard.analysis.summary.factor_axes import parse_specification
from steelyard.analysis.summary.network import find_middle
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.hep import minimum_copy_size
from steelyard.jobscripts.registry import Bulk

NEEDED, MOVED, SECONDS = "bytes_needed", "bytes_read", "seconds"


def find_bulk(summary: Summary, variant: str) -> Bulk | None:
    """Return how its benchmark describes bulk transfers; None if the variant has none."""
    benchmark = find_description(variant.split()[0])
    if benchmark is None or benchmark.bulk is None:
        return None
    return benchmark.bulk if benchmark.bulk.is_measured(parameters(summary, variant)) else None


def parameters(summary: Summary, variant: str) -> dict[str, Any]:
    """Return the parameters of the study, with the benchmark's defaults."""
    benchmark = find_description(variant.split()[0])
    defaults = benchmark.defaults() if benchmark is not None else {}
    return {**defaults, **summary.data.parameters.get(variant, {})}


def find_latency_bound(summary: Summary, variant: str, label: str, transfers: Bulk) -> str | None:
    """Return a remark with the needed length if latency limits these transfers; else None."""
    if transfers.kind == "timed":
        return find_too_short_s(summary, variant, label, transfers)
    needed, moved = compute_needed_bytes(summary, variant, label, transfers)
    if needed is None or moved is None or needed <= moved:
        return None
    return (
        f"the bulk transfer of {format_quantity(moved, 'bytes')} under {label} is bound by latency itself: "
        f"it takes {format_quantity(needed, 'bytes')} for its own round trips to be at most a tenth of it"
    )


def compute_needed_bytes(
    summary: Summary, variant: str, label: str, transfers: Bulk
) -> tuple[float | None, float | None]:
    """Return (bytes needed, bytes moved), from the benchmark or else from the round-trip time."""
    needed, moved, rate, seconds = (
        read_mean(summary.row(variant, label, name))
        for name in (NEEDED, MOVED, transfers.metric, SECONDS)
    )
    if moved is None and rate is not None and seconds is not None:
        moved = rate * transfers.factor * seconds
    rtt = find_round_trip_s(summary, variant, label)
    if needed is None and moved and seconds and rtt is not None:
        needed = minimum_copy_size.bytes_needed(moved, seconds, rtt)
    return needed, moved


def find_too_short_s(summary: Summary, variant: str, label: str, transfers: Bulk) -> str | None:
    """Return a remark if slow start exceeds the omitted time by a tenth of a timed transfer."""
    rtt = find_round_trip_s(summary, variant, label)
    rate = read_mean(summary.row(variant, label, transfers.metric))
    if not rtt or not rate:
        return None
    length, omitted = transfers.times_s(parameters(summary, variant))
    # The window doubles from its initial size until it holds the path's bandwidth-delay product.
    slow = max(
        math.log2(max(rate * transfers.factor * rtt / minimum_copy_size.FIRST_WINDOW, 1.0)) * rtt
        - omitted,
        0.0,
    )
    if slow <= minimum_copy_size.MOST_SHARE * length:
        return None
    return (
        f"the bulk transfer of {length:g} s under {label} is bound by latency itself: it takes "
        f"{math.ceil(slow / minimum_copy_size.MOST_SHARE)} s for its slow start to be at most a tenth of it"
    )


def read_mean(row: Row | None) -> float | None:
    """Return the mean, or None without values."""
    return fmean(row.values) if row is not None and row.values else None


def find_round_trip_s(summary: Summary, variant: str, label: str) -> float | None:
    """Return the round-trip time in s: measured by benchmark or nodes, else requested; else
    None.
    """
    own = read_mean(summary.row(variant, label, "rtt_s"))
    if own is not None:
        return own
    runs = {run.run_id for run in summary.data.runs if (run.variant, run.label) == (variant, label)}
    nodes = [node for node in summary.data.network if node.run_id in runs]
    measured = find_middle(node.rtt_during_s for node in nodes)
    return measured if measured is not None else read_requested_s(summary, variant, label)


def read_requested_s(summary: Summary, variant: str, label: str) -> float | None:
    """Return twice the requested delay: a run's condition applies to each of its nodes."""
    levels = [
        run.condition[FACTOR]
        for run in summary.data.runs
        if (run.variant, run.label) == (variant, label) and FACTOR in run.condition
    ]
    if not levels:
        return None
    return 2 * float(parse_specification(str(levels[0])).numbers.get("delay", 0))


def find_short_transfers(
    summary: Summary, variant: str, labels: tuple[str, str], transfers: Bulk
) -> Iterator[str]:
    """Yield the remarks on either side of a comparison."""
    for label in labels:
        description = find_latency_bound(summary, variant, label, transfers)
        if description:
            yield description
