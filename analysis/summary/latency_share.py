"""Shares of latency and throughput in a study's differences; stats.latency_share has the model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import group_by_job
from steelyard.analysis.summary.short_transfers import find_bulk, find_short_transfers
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.registry import KINDS, Bulk

MODEL = (
    "A run takes computing + waiting for answers + bytes / throughput, one after the other. "
    "Throughput's part of a difference is bytes × seconds per byte under the condition less the "
    "same under the baseline, the seconds per byte those of bulk transfers that the study measured "
    "under both; what is left is waiting, which latency makes."
)

OWN_BYTES, NODE_BYTES = "bytes_read", "rx_bytes"
WAIT_SHARE = "wait_share"
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
    """Return (variant, bulk metric) of one benchmark's bulk transfers; those of files come
    first.
    """
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
    """Return the metric of bytes received; the node's own counter only if just `network`
    differs.
    """
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
    waits = summary.row(row.group.variant, row.group.label, WAIT_SHARE)
    shares = dict(list_values(waits)) if waits is not None else {}
    return group_values_by_job(
        row, {run: s * (1 - shares[run]) for run, s in list_values(row) if run in shares}
    )
