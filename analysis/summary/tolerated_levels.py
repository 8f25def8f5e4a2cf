"""Finds how far a numeric factor may go until a main figure is worse by `tolerate`.

The search goes outwards from the factor's baseline level, on each side that has levels, with all
other factors at one level each. A network rate counts as the time per bit, so that no limit is
0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from steelyard.analysis.stats.basics import to_costs
from steelyard.analysis.stats.grouped_runs import MIN_BLOCKS
from steelyard.analysis.stats.margin_crossing import Crossing, State, find_crossing
from steelyard.analysis.summary.numeric_factors import Axis, find_axes
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import (
    Groups,
    group_by_block,
    group_samples,
    is_rate_row,
)
from steelyard.analysis.summary.summary import Summary, is_main

ABOVE, BELOW = "above", "below"  # the side of the baseline


@dataclass(frozen=True, slots=True)
class Tolerance:
    """A metric of one variant over one factor, to one side of the baseline."""

    variant: str
    metric: str
    unit: str | None
    is_primary: bool
    axis: Axis
    others: str  # `launcher=podman, cache=cold`, `rate=100mbit`; empty: no other factor
    side: str  # ABOVE or BELOW; empty without runs at the baseline's level
    baseline: float | None  # its number; None: no limit
    first: float | None  # the level next to the baseline
    farthest: float | None
    runs: tuple[int, int]  # fewest and most of a level
    levels: int
    blocks: int | None  # that hold every level, if means are paired by blocks
    crossing: Crossing  # in numbers of the axis; `low` is nearer to the baseline than `high`


@dataclass(frozen=True, slots=True)
class Series:
    """The rows of a metric over an axis, by number, without the baseline's own level."""

    axis: Axis
    others: str
    base: Row | None
    base_position: float | None
    rows: Mapping[float, Row]


def find_tolerances(summary: Summary) -> list[Tolerance]:
    """Return the tolerances of every main figure with a worse side; empty without `tolerate`."""
    every = find_numeric_axes(summary.data.meta.factors)
    return [found for axis in every for found in find_axis_tolerances(summary, axis, summary.rows)]


def find_axis_tolerances(summary: Summary, axis: Axis, rows: Sequence[Row]) -> list[Tolerance]:
    """Return the tolerances of these rows over one axis; empty without `tolerate`."""
    meta = summary.data.meta
    share = meta.tolerate
    # [baseline] within: each level has its own baseline.
    if share is None or axis.factor not in meta.baseline:
        return []
    baseline = str(meta.baseline[axis.factor])
    return [
        found
        for series in build_series(rows, axis, baseline)
        for found in find_series_tolerances(series, share)
    ]


def find_numeric_axes(factors: Mapping[str, Sequence[object]]) -> list[Axis]:
    """Return axes with two levels or more; one of them may have no limit."""
    return [
        a for a in find_axes(factors, least=1) if len({*a.places.values()}) + len(a.unlimited) > 1
    ]


def build_series(rows: Sequence[Row], axis: Axis, baseline: str) -> Iterator[Series]:
    """Return a series per variant, metric and other levels; `baseline` is that level's text."""
    found: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in rows:
        own = str(row.group.condition.get(axis.factor))
        is_on_axis = own in axis.places or own in axis.unlimited
        if is_main(row) and row.metric.better and row.values and is_on_axis:
            key = (row.group.variant, row.metric.name, axis.others(row.group.levels))
            found.setdefault(key, {})[own] = row
    for (_, _, others), members in found.items():
        base, base_position = members.pop(baseline, None), axis.places.get(baseline)
        places: dict[float, Row] = {}
        for own, row in members.items():
            if own in axis.places and axis.places[own] != base_position:
                places.setdefault(axis.places[own], row)
        if places:
            yield Series(axis, others, base, base_position, places)


def find_series_tolerances(series: Series, share: float) -> Iterator[Tolerance]:
    """Yield the tolerance on each side of the baseline that has levels."""
    base, base_position = series.base, series.base_position
    if base is None:
        reason = f"there are no runs at the baseline's level of {series.axis.factor} here"
        yield build_tolerance(series, "", [], Crossing(State.UNKNOWN, reason=reason))
        return
    below = [one for one in series.rows if base_position is None or one < base_position]
    above = [one for one in series.rows if base_position is not None and one > base_position]
    for side, places in ((ABOVE, sorted(above)), (BELOW, sorted(below, reverse=True))):
        if places:
            yield search_outwards(series, base, side, places, share)


def search_outwards(
    series: Series, base: Row, side: str, places: list[float], share: float
) -> Tolerance:
    """Search from the baseline over numbers that are increasingly far from it."""
    rows = [base, *(series.rows[one] for one in places)]
    is_more = base.metric.better == "lower"
    ratio = 1 + share if is_more else 1 - share
    if all(map(is_rate_row, rows)):  # compared by their costs, like overheads
        rows = [replace(row, values=to_costs(row.values)) for row in rows]
        ratio = 1 / ratio
    scale = Scale.of(series, side)
    walk = [scale.to_distance(one) for one in (series.base_position, *places)]
    blocks = paired_blocks(rows)
    groups = blocks or [group_samples(row)[1] for row in rows]
    found = find_crossing(walk, groups, ratio, blocks is not None, rows[0].confidence)
    count = None if blocks is None else len(blocks[0])
    return build_tolerance(series, side, places, scale.convert_crossing(found), count)


def paired_blocks(rows: list[Row]) -> list[list[list[float]]] | None:
    """Return each row's values by the blocks that hold every row; None if these blocks are few."""
    by_block: list[Groups] = [group_by_block(row) for row in rows]
    shared = [block for block in by_block[0] if all(block in one for one in by_block)]
    if None in shared or len(shared) < MIN_BLOCKS:
        return None
    return [[one[block] for block in shared] for one in by_block]


@dataclass(frozen=True, slots=True)
class Scale:
    """Converts numbers of an axis to ascending distances from the baseline, and back."""

    sign: float
    is_inverse: bool  # of a rate: 1 / number, so that no limit is 0

    @classmethod
    def of(cls, series: Series, side: str) -> Scale:
        is_inverse = series.axis.has_no_end
        return cls(1.0 if (side == ABOVE) != is_inverse else -1.0, is_inverse)

    def to_distance(self, position: float | None) -> float:
        """Return the distance of a number; None means no limit."""
        if position is None:
            return 0.0
        return self.sign * (1 / position if self.is_inverse else position)

    def to_position(self, distance: float | None) -> float | None:
        """Return the number at a distance; None for None and for no limit."""
        if distance is None or (self.is_inverse and distance == 0):
            return None
        return 1 / (self.sign * distance) if self.is_inverse else self.sign * distance

    def convert_crossing(self, found: Crossing) -> Crossing:
        return replace(
            found,
            value=self.to_position(found.value),
            low=self.to_position(found.low),
            high=self.to_position(found.high),
            before=self.to_position(found.before),
            behind=self.to_position(found.behind),
            returns=self.to_position(found.returns),
        )


def build_tolerance(
    series: Series, side: str, places: list[float], found: Crossing, blocks: int | None = None
) -> Tolerance:
    base = [] if series.base is None else [series.base]
    rows = [*base, *(series.rows[one] for one in places or series.rows)]
    sizes = [row.n for row in rows]
    metric = rows[0].metric
    first, farthest = (places[0], places[-1]) if places else (None, None)
    return Tolerance(
        rows[0].group.variant, metric.name, metric.unit, metric.is_primary, series.axis,
        series.others, side, series.base_position, first, farthest, (min(sizes), max(sizes)),
        len(rows), blocks, found,
    )  # fmt: skip
