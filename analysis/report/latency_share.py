"""The report's section on latency and throughput: the model in words, and a table."""

from __future__ import annotations

from typing import Any

from steelyard.analysis.report.links import find_anchor, run_anchors
from steelyard.analysis.report.tables import Table
from steelyard.analysis.stats.basics import Estimate
from steelyard.analysis.stats.number_format import MISSING, format_quantity
from steelyard.analysis.stats.scaling import Choice
from steelyard.analysis.summary.latency_share import MODEL, SplitRow, build_split_rows
from steelyard.analysis.summary.summary import Summary

HEADINGS = (
    "Condition",
    "Variant",
    "Difference (95 % interval)",
    "Share of latency",
    "Share of throughput",
    "Bytes a run",
    "Bulk throughput, condition / baseline",
    "Measured by",
    "n",
)


def build_split_section(summary: Summary) -> dict[str, Any] | None:
    """Return sentences and table; None if the study measured no bulk transfers with its runs."""
    rows = build_split_rows(summary)
    if not rows:
        return None
    anchors = run_anchors(summary)
    places = [find_anchor(anchors, one.row) for one in rows]
    return {
        "sentences": [f"A model, not a measurement. {MODEL}", *map(describe_split, rows)],
        "table": Table(HEADINGS, [table_row(one) for one in rows], places),
    }


def describe_split(one: SplitRow) -> str:
    """Return `xrootd under network=delay=25ms: of 50.0 s more, 70 % (65 … 75) are latency, …`."""
    where = f"{one.row.group.variant} under {one.row.group.label}"
    if one.split is None or one.broken:
        return f"{where}: cannot be split: {'; '.join(one.broken)}."
    amount = one.split.difference_s
    if one.split.throughput_share is None:
        ends = f"{format_quantity(amount.low, 's')} … {format_quantity(amount.high, 's')}"
        return f"{where}: not shown to differ ({ends}): there is nothing to split."
    more = "more" if amount.value > 0 else "less"
    return (
        f"{where}: of {format_quantity(abs(amount.value), 's')} {more}, {format_share(one.split.latency_share)} are "
        f"latency and {format_share(one.split.throughput_share)} throughput, {format_counts(one)}."
    )


def format_counts(one: SplitRow) -> str:
    """Return `n = 5 + 5 runs, 5 + 5 transfers`."""
    return (
        f"n = {one.runs[0]} + {one.runs[1]} runs, {one.transfers[0]} + {one.transfers[1]} transfers"
    )


def format_share(found: Estimate | None) -> str:
    """Return `70 % (65 … 75)`."""
    if found is None or found.low is None or found.high is None:
        return MISSING
    value, low, high = (f"{100 * v:.3g}" for v in (found.value, found.low, found.high))
    return f"{value} % ({low} … {high})".replace("-", "−")


def format_seconds(found: Estimate) -> str:
    """Return `50.0 s (48.0 s … 52.0 s)`."""
    ends = f" ({format_quantity(found.low, 's')} … {format_quantity(found.high, 's')})"
    return format_quantity(found.value, "s") + (ends if found.low is not None else "")


def table_row(one: SplitRow) -> tuple[str, ...]:
    parts = one.split if one.is_valid else None
    return (
        one.row.group.label,
        one.row.group.variant,
        MISSING if one.split is None else format_seconds(one.split.difference_s),
        MISSING if parts is None else format_share(parts.latency_share),
        MISSING if parts is None else format_share(parts.throughput_share),
        f"{format_quantity(one.bytes_moved[0], 'bytes')} ({one.bytes_metric})",
        " / ".join(format_quantity(rate, "bytes_per_s") for rate in one.bytes_per_s),
        one.bulk,
        format_counts(one).removeprefix("n = "),
    )


def split_document(one: SplitRow) -> dict[str, Any]:
    """Return the split for `--json`; invalid terms and shares are null, and `broken` states why."""
    names = ("throughput_s", "latency_s", "throughput_share", "latency_share")
    parts = one.split if one.is_valid else None
    return {
        "variant": one.row.group.variant,
        "condition": one.row.group.label,
        "baseline": one.base.group.label,
        "metric": one.row.metric.name,
        "holds": one.is_valid,
        "broken": list(one.broken),
        "difference_s": estimate_document(one.split.difference_s if one.split else None),
        **{name: estimate_document(getattr(parts, name, None)) for name in names},
        "bytes_metric": one.bytes_metric,
        "bytes": list(one.bytes_moved),
        "throughput_of": one.bulk,
        "bytes_per_s": list(one.bytes_per_s),
        "n": list(one.runs),
        "n_transfers": list(one.transfers),
    }


def estimate_document(found: Estimate | Choice | None) -> dict[str, float | None] | None:
    """Return an estimate; null if missing."""
    return None if found is None else {"value": found.value, "low": found.low, "high": found.high}
