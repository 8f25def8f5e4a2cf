"""Shares of latency and throughput in a study's differences; stats.latency_share has the model.

A bulk transfer must be long enough to measure throughput: a short one over a long path waits for
answers most of its time. Its throughput is then limited by latency, but would count as throughput
in the split of a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from steelyard.analysis.base.benchmark_traits import find_description
from steelyard.analysis.collect.network import FACTOR
from steelyard.analysis.stats.grouped_runs import Groups, mean, size
from steelyard.analysis.stats.latency_share import (
    MIN_GROUPS,
    Side,
    Split,
    difference,
    is_nonzero,
    split_difference,
)
from steelyard.analysis.stats.number_format import format_quantity
from steelyard.analysis.summary.network import find_middle
from steelyard.analysis.summary.numeric_factors import parse_specification
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import group_by_job
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.hep import minimum_copy_size
from steelyard.jobscripts.registry import KINDS, Bulk

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
    """Return the round-trip time in s: measured by benchmark or nodes, or requested, or None."""
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


MODEL = (
    "A run takes computing + waiting for answers + bytes / throughput, one after the other. "
    "Throughput's part of a difference is bytes × seconds per byte under the condition less the "
    "same under the baseline, the seconds per byte those of bulk transfers that the study measured "
    "under both; what is left is waiting, which latency makes."
)

OWN_BYTES, NODE_BYTES = "bytes_read", "rx_bytes"
# These change more than the path to the data, and their cost would count as latency.
OTHER_FACTORS = frozenset(("node_type", "launcher", "cache", "clients", "mode"))
UNEQUAL = 0.05  # relative difference of the bytes, and share of the difference for computing


@dataclass(frozen=True, slots=True)
class SplitRow:
    """One variant under one condition, split with the bulk transfers of another variant."""

    row: Row
    base: Row
    bulk: str  # variant and metric of the transfers
    bytes_metric: str
    bytes_moved: tuple[float, float]  # means: condition, baseline
    bytes_per_s: tuple[float, float]  # harmonic means: condition, baseline
    runs: tuple[int, int]
    transfers: tuple[int, int]
    split: Split | None
    broken: tuple[str, ...]  # violated assumptions

    @property
    def is_valid(self) -> bool:
        """Whether the shares may be reported."""
        return self.split is not None and not self.broken


def build_split_rows(summary: Summary) -> list[SplitRow]:
    """Return splits of main figures in seconds if both sides have bytes and bulk transfers."""
    bulk = bulk_rates(summary)
    if not bulk:
        return []
    return [
        found
        for row in summary.compared_rows(primary=True)
        if row.metric.unit == "s" and row.metric.better == "lower"
        for variant, transfers in bulk
        if variant != row.group.variant
        and (found := split_row(summary, row, variant, transfers)) is not None
    ]


def bulk_rates(summary: Summary) -> list[tuple[str, Bulk]]:
    """Return (variant, bulk metric) of one benchmark's bulk transfers; files come first."""
    found: dict[tuple[int, str], list[tuple[str, Bulk]]] = {}
    for variant in summary.variants:
        bulk = find_bulk(summary, variant)
        if bulk and any(m.name == bulk.metric for m in summary.data.metrics.get(variant, [])):
            rank = KINDS.index(bulk.kind), variant.split()[0]
            found.setdefault(rank, []).append((variant, bulk))
    return found[min(found)] if found else []


def split_row(summary: Summary, row: Row, bulk: str, transfers: Bulk) -> SplitRow | None:
    """Split one difference; None without the measurements, or if more than the path differs."""
    variant, labels = row.group.variant, (row.group.label, row.group.baseline_label or "")
    base = summary.row(variant, labels[1], row.metric.name)
    rates = [summary.row(bulk, label, transfers.metric) for label in labels]
    bytes_metric = list_bytes(row, base, summary) if base is not None else None
    if base is None or bytes_metric is None:
        return None
    moved = [summary.row(variant, label, bytes_metric) for label in labels]
    sides = [
        build_side(seconds, moved_row, rate, transfers.factor)
        for seconds, moved_row, rate in zip((row, base), moved, rates, strict=True)
        if moved_row is not None and rate is not None
    ]
    if len(sides) != 2 or not all(side.seconds and side.s_per_byte for side in sides):
        return None
    try:
        found = split_difference(*sides, confidence=row.confidence)
        broken = tuple(find_broken_assumptions(summary, row, base, sides, found))
        if found.throughput_share is not None:
            broken = (*find_short_transfers(summary, bulk, labels, transfers), *broken)
    except ValueError:
        found, broken = None, (f"fewer than {MIN_GROUPS} jobs of runs or of transfers on a side",)
    here, there = sides
    return SplitRow(
        row, base, f"{bulk} · {transfers.metric}", bytes_metric,
        (mean(here.bytes_moved), mean(there.bytes_moved)),
        (1 / mean(here.s_per_byte), 1 / mean(there.s_per_byte)),
        (size(here.seconds), size(there.seconds)),
        (size(here.s_per_byte), size(there.s_per_byte)),
        found, broken,
    )  # fmt: skip


def list_bytes(row: Row, base: Row, summary: Summary) -> str | None:
    """Return the metric of bytes received; the node's counter only if just `network` differs."""
    factors = {*row.group.condition, *base.group.condition}
    differing = {f for f in factors if row.group.condition.get(f) != base.group.condition.get(f)}
    if differing & OTHER_FACTORS:
        return None
    own = summary.row(row.group.variant, row.group.label, OWN_BYTES)
    if own is not None and own.values:
        return OWN_BYTES
    return NODE_BYTES if differing == {FACTOR} else None


def build_side(seconds: Row, moved: Row, rate: Row, factor: float) -> Side:
    """Return the runs that have both seconds and bytes, and the transfers, by job."""
    both = set(seconds.run_ids) & set(moved.run_ids)
    return Side(
        seconds=group_values_by_job(
            seconds, {run: v for run, v in list_values(seconds) if run in both}
        ),
        bytes_moved=group_values_by_job(
            moved, {run: v for run, v in list_values(moved) if run in both}
        ),
        s_per_byte=group_values_by_job(
            rate, {run: 1 / (v * factor) for run, v in list_values(rate) if v > 0}
        ),
    )


def list_values(row: Row) -> Iterator[tuple[str, float]]:
    """Return pairs of (run, value)."""
    return zip(row.run_ids, row.values, strict=True)


def group_values_by_job(row: Row, values: dict[str, float]) -> Groups:
    """Return these values of some of the row's runs by job."""
    return list(
        group_by_job(replace(row, run_ids=tuple(values), values=tuple(values.values()))).values()
    )


def find_broken_assumptions(
    summary: Summary, row: Row, base: Row, sides: list[Side], found: Split
) -> Iterator[str]:
    """Describe the violated assumptions; without a shown difference there are none."""
    share = found.throughput_share
    if share is None:
        return
    if share.low is None or share.high is None:
        yield "the difference is too uncertain to divide by it"
    elif share.low > 1:
        yield (
            f"bulk transfer alone explains {100 * share.value:.0f} % of the difference: reading "
            "overlaps with computing, or is not slowed as bulk transfers are"
        )
    elif share.high < 0:
        yield "bulk transfers were faster under the condition, and the runs slower, or the reverse"
    here, there = (mean(side.bytes_moved) for side in sides)
    if there <= 0 or abs(here / there - 1) > UNEQUAL:
        yield f"not the same bytes: {format_quantity(here, 'bytes')} and {format_quantity(there, 'bytes')} a run"
    yield from describe_unequal_computing(summary, row, base, found)


def describe_unequal_computing(
    summary: Summary, row: Row, base: Row, found: Split
) -> Iterator[str]:
    """Describe computing times that differ, if a benchmark reports how long it waited for data."""
    computing = [computing_s(summary, side) for side in (row, base)]
    if min(map(len, computing)) < MIN_GROUPS:
        return
    more = difference(*computing)
    if is_nonzero(more) and abs(more.value) > UNEQUAL * abs(found.difference_s.value):
        yield (
            f"{format_quantity(more.value, 's')} of the difference of "
            f"{format_quantity(found.difference_s.value, 's')} passed while no data were waited for, and "
            "would count as latency"
        )


def computing_s(summary: Summary, row: Row) -> Groups:
    """Return the seconds of each run in which it did not wait for data, by job."""
    waits = summary.row(row.group.variant, row.group.label, "wait_share")
    shares = dict(list_values(waits)) if waits is not None else {}
    return group_values_by_job(
        row, {run: s * (1 - shares[run]) for run, s in list_values(row) if run in shares}
    )
