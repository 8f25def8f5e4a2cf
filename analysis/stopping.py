"""Whether a study that repeats until its intervals are narrow enough has enough runs."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.analysis.stats_planning import (
    FIRST_LOOK,
    STOPPING_CONFIDENCE,
    enough,
    repeats_needed,
)
from steelyard.analysis.summary import Row, Summary


@dataclass(frozen=True, slots=True)
class Need:
    """Main figures judged, those too wide, and how many more repeats of every condition it takes."""

    judged: int
    too_wide: int
    repeats: int


def more_repeats(summary: Summary, half_width: float) -> Need:
    """`half_width`: of each main figure's interval, as a share of its mean.

    Figures without a value, or with a mean of 0, cannot become narrow and are not judged. Estimated
    from the spread so far, and never more than there are: a study at most doubles between two looks.
    """
    rows = [row for row in summary.rows if row.metric.is_primary and row.n and mean(row)]
    wide = [row for row in rows if not enough(row.values, half_width * abs(mean(row)))]
    repeats = max((lacking(row, half_width) for row in wide), default=0)
    return Need(len(rows), len(wide), repeats)


def mean(row: Row) -> float:
    """0 where there is none."""
    return row.interval.mean if row.interval is not None else 0.0


def lacking(row: Row, half_width: float) -> int:
    """How many more runs this row takes, at least 1."""
    sd = row.spread.sd if row.spread is not None and row.spread.sd is not None else 0.0
    try:
        needed = repeats_needed(sd, half_width * abs(mean(row)), STOPPING_CONFIDENCE)
    except ValueError:  # more than a million
        needed = 2 * row.n
    return min(max(FIRST_LOOK, needed) - row.n, row.n) or 1
