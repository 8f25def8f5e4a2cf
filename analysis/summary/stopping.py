"""Decides whether a study that repeats until its intervals are narrow has enough runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import spread
from steelyard.analysis.stats.planning import (
    FIRST_LOOK,
    STOPPING_CONFIDENCE,
    can_stop,
    repeats_needed,
)
from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.sampling_units import sample_means
from steelyard.analysis.summary.summary import Summary


@dataclass(frozen=True, slots=True)
class Need:
    """The main figures judged, those too wide, and how many more repeats every condition needs.

    `failing` has the conditions in which most runs gave no value. They are not judged, because
    further runs would fail, too.
    """

    judged: int
    too_wide: int
    repeats: int
    failing: tuple[str, ...] = ()


def compute_need(summary: Summary, half_width: float) -> Need:
    """Return the need for further repeats.

    `half_width` is that of each main figure's interval, as a share of its mean. Figures without a
    value, or with a mean of 0, cannot become narrow and are not judged. The need is estimated from
    the spread so far and never exceeds the existing runs: a study at most doubles between two
    checks.
    """
    failing = failing_conditions(summary)
    rows = [
        row
        for row in summary.rows
        if row.metric.is_primary
        and row.n
        and read_mean(row)
        and format_name(row.group) not in failing
    ]
    more = [count_missing_runs(row, half_width * abs(read_mean(row))) for row in rows]
    return Need(len(rows), sum(map(bool, more)), max(more, default=0), tuple(failing))


def failing_conditions(summary: Summary) -> dict[str, int]:
    """Return how many runs gave a value, by condition, if these are fewer than half."""
    most: dict[str, int] = {}
    for row in summary.rows:
        if row.metric.is_primary:
            most[format_name(row.group)] = max(most.get(format_name(row.group), 0), row.n)
    names = {format_name(group): len(group.runs) for group in summary.groups}
    return {name: n for name, runs in names.items() if 2 * (n := most.get(name, 0)) < runs}


def format_name(group: Group) -> str:
    """Format `variant · condition`."""
    return f"{group.variant} · {group.label}" if group.label else group.variant


def read_mean(row: Row) -> float:
    """Return the mean, or 0 without one."""
    return row.interval.mean if row.interval is not None else 0.0


def count_missing_runs(row: Row, half_width: float) -> int:
    """Return how many more runs this row needs, with as many per job or block as now."""
    values = sample_means(row)
    return math.ceil(count_missing_values(values, half_width) * row.n / len(values))


def count_missing_values(values: Sequence[float], half_width: float) -> int:
    """Return how many more values an interval needs to be this narrow, or 0."""
    if can_stop(values, half_width):
        return 0
    try:
        needed = repeats_needed(spread(values).sd or 0.0, half_width, STOPPING_CONFIDENCE)
    except ValueError:  # more than a million are needed
        needed = 2 * len(values)
    n = len(values)
    return min(max(FIRST_LOOK, needed) - n, n) or 1
