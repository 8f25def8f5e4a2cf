"""Comparison of nodes with their median: sentences, table and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from steelyard.analysis.report.phrases import join_phrases
from steelyard.analysis.report.tables import Table, join_names
from steelyard.analysis.stats.node_contrasts import Contrast
from steelyard.analysis.stats.number_format import MISSING, format_quantity
from steelyard.analysis.stats.overhead_verdict import (
    choose_comparison,
    format_percent,
    format_percent_range,
)
from steelyard.analysis.summary.node_comparisons import NodeComparison, build_node_comparisons
from steelyard.analysis.summary.summary import Summary

HEADINGS = ("Node", "Metric", "Variant", "Other factors", "Against the median", "In words", "n")
MAX_NAMED = 5  # nodes in a sentence
MAX_ROWS = 60  # per metric in the table
MAX_SENTENCES = 12


def build_node_section(summary: Summary) -> dict[str, Any] | None:
    """Return sentences and table; None without the factor `node`."""
    found = build_node_comparisons(summary)
    if not found:
        return None
    return {
        "sentences": describe_comparisons(found),
        "table": Table(HEADINGS, [cells for one in found for cells in build_table_rows(one)]),
    }


def describe_comparisons(found: Sequence[NodeComparison]) -> list[str]:
    """Describe the benchmarks' main figures."""
    return [describe_comparison(one) for one in found if one.metric.is_primary][:MAX_SENTENCES]


def describe_comparison(one: NodeComparison) -> str:
    """Return `app: seconds: n17 is 8.2 % slower than the median of 12 nodes (6.9 to 9.5 %); …`."""
    who = f"{one.variant}{f' ({one.others})' if one.others else ''}: {one.metric.name}: "
    absent = ""
    if one.omitted:
        verb = "is" if len(one.omitted) == 1 else "are"
        what = "runs" if one.blocks is None else "blocks"
        absent = f" Fewer than 3 {what}: {join_names(one.omitted)} {verb} not judged."
    if one.reason is not None:
        return f"{who}nodes cannot be compared: {one.reason}.{absent}"
    apart = sorted(
        (n for n, c in one.nodes.items() if c.differs), key=lambda n: -abs(one.nodes[n].value)
    )
    alike = [contrast for contrast in one.nodes.values() if not contrast.differs]
    most = 100 * max((max(-c.low, c.high) for c in alike), default=0.0)
    bound = f"by more than {most:{'.0f' if most >= 99.5 else '.2g'}} %"
    of = f"the median of {len(one.nodes)} nodes ({format_quantity(one.middle, one.metric.unit)})"
    if not apart:
        return f"{who}no node is shown to differ from {of}, and none does {bound}.{absent}"
    named = [f"{name} is {format_difference(one, one.nodes[name])}" for name in apart[:MAX_NAMED]]
    remaining = len(apart) - MAX_NAMED
    more = f"; {remaining} more differ" if remaining > 0 else ""
    rest = f"; the others do not differ {bound}" if alike else ""
    return f"{who}{join_phrases(named)} than {of}{more}{rest}.{absent}"


def format_difference(one: NodeComparison, found: Contrast) -> str:
    """Return `8.2 % slower (6.9 to 9.5 %)`."""
    word, _ = choose_comparison(
        found.value > 0, one.metric.unit, one.metric.better, one.metric.name
    )
    low, high = sorted((abs(found.low), abs(found.high)))
    size = format_percent(abs(found.value), low, high)
    return f"{size} % {word} ({format_percent_range(low, high).replace(' … ', ' to ')} %)"


def build_table_rows(one: NodeComparison) -> list[tuple[str, ...]]:
    """Return all nodes; of many those that differ, then those with the largest differences."""
    names = list(one.nodes)
    if len(names) > MAX_ROWS:
        ranked = sorted(
            names, key=lambda name: (not one.nodes[name].differs, -abs(one.nodes[name].value))
        )
        top_names = set(ranked[:MAX_ROWS])
        names = [name for name in names if name in top_names]
    return [table_row(one, name) for name in names]


def table_row(one: NodeComparison, name: str) -> tuple[str, ...]:
    found = one.nodes[name]
    value = format_percent(found.value, found.low, found.high)
    return (
        name,
        one.metric.name,
        one.variant,
        one.others or MISSING,
        f"{value} % ({format_percent_range(found.low, found.high)})",
        format_difference(one, found) if found.differs else "not shown to differ",
        f"{found.n} {'blocks' if one.blocks else 'runs'}",
    )


def node_documents(one: NodeComparison) -> list[dict[str, Any]]:
    """Return a row for each node, for `--json` and exports; null is not known."""
    fixed = {
        "variant": one.variant,
        "metric": one.metric.name,
        "unit": one.metric.unit,
        "others": one.others,
        "median": one.middle,
        "blocks": one.blocks,
    }
    judged = [
        {
            "node": name, **fixed, "difference": c.value, "low": c.low, "high": c.high, "n": c.n,
            "differs": c.differs, "reason": None,
        }
        for name, c in one.nodes.items()
    ]  # fmt: skip
    unknown = dict.fromkeys(("difference", "low", "high", "n", "differs"))
    unjudged = [
        {"node": name, **fixed, **unknown, "reason": "fewer than 3 independent values"}
        for name in one.omitted
    ]
    return [*judged, *unjudged]
