"""What several findings ask of a summary: main figures, their places, numbers of runs."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.analysis.findings.finding import place
from steelyard.analysis.summary.summary import Group, Row, Summary


def main_rows(summary: Summary) -> list[Row]:
    """The benchmarks' own main figures, those without a value too."""
    return [row for row in summary.rows if row.metric.is_primary]


def measured_rows(summary: Summary) -> list[Row]:
    """Those with a value."""
    return [row for row in main_rows(summary) if row.values]


def row_place(row: Row) -> str:
    """`variant · condition · metric`."""
    return f"{place(row.group)} · {row.metric.name}"


def total_runs(summary: Summary) -> int:
    """Of the whole study."""
    return len(summary.data.runs)


def shares(summary: Summary, number: Callable[[Group], int]) -> tuple[str, ...]:
    """`place: 1 of 5` for the groups with any."""
    return tuple(
        f"{place(group)}: {number(group)} of {group.counts.planned}"
        for group in summary.groups
        if number(group)
    )
