"""Rows of a metric over a numeric factor, as box plots and line plots show them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.slope import MIN_LEVELS
from steelyard.analysis.summary.factor_axes import Axis
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted_range

MAX_SERIES = 6  # number of colors
MAX_LEVELS = 24  # per series in a figure; its CSV has all


@dataclass(frozen=True, slots=True)
class Series:
    """A metric over the levels of a factor, with the other factors at the levels in `others`."""

    others: str
    places: tuple[float, ...]  # ascending
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class OverFactor:
    """All series of one variant and metric."""

    variant: str
    factor: str
    factor_label: str  # `delay (ms)`; for any other factor its name
    series: tuple[Series, ...]
    placeless: tuple[str, ...] = ()  # levels that are not on the axis

    @property
    def metric(self) -> str:
        return self.series[0].rows[0].metric.name

    @property
    def unit(self) -> str | None:
        return self.series[0].rows[0].metric.unit

    @property
    def rows(self) -> list[Row]:
        return [row for one in self.series for row in one.rows]


def build_factor_series(
    summary: Summary, variant: str, axis: Axis, metrics: Sequence[str]
) -> Iterator[OverFactor]:
    """Return the series of each metric that has values at three levels or more."""
    for metric in metrics:
        found: dict[str, list[tuple[float, Row]]] = {}
        placeless: dict[str, None] = {}
        for row in summary.rows:
            condition = row.group.condition
            position = axis.position(condition)
            is_wanted = (row.group.variant, row.metric.name) == (variant, metric) and row.values
            if is_wanted and position is not None:
                found.setdefault(axis.others(row.group.levels), []).append((position, row))
            elif is_wanted:
                placeless[str(row.group.levels.get(axis.factor))] = None
        series = [build_series(o, pairs) for o, pairs in found.items() if len(pairs) >= MIN_LEVELS]
        if series:
            yield OverFactor(variant, axis.name, axis.label, tuple(series), tuple(placeless))


def build_series(others: str, pairs: list[tuple[float, Row]]) -> Series:
    places, rows = zip(*sorted(pairs, key=lambda pair: pair[0]), strict=True)
    return Series(others, places, rows)


def select_first_series(found: OverFactor) -> tuple[Series, ...]:
    """Return the series to be plotted."""
    return tuple(thin_series(one) for one in found.series[:MAX_SERIES])


def thin_series(one: Series) -> Series:
    """Return at most MAX_LEVELS of the levels, evenly chosen, with the first and the last."""
    count = len(one.places)
    if count <= MAX_LEVELS:
        return one
    indices = sorted({round(i * (count - 1) / (MAX_LEVELS - 1)) for i in range(MAX_LEVELS)})
    places = tuple(one.places[i] for i in indices)
    return Series(one.others, places, tuple(one.rows[i] for i in indices))


def describe_omissions(found: OverFactor) -> str:
    """Return a caption's sentence on series and levels that are not plotted."""
    text = ""
    if len(found.series) > MAX_SERIES:
        text = f" Shown are the first {MAX_SERIES} of {len(found.series)} series."
    if any(len(one.places) > MAX_LEVELS for one in found.series):
        text += f" Of more than {MAX_LEVELS} levels every few are shown."
    text += " The figure's CSV has all." if text else ""
    if found.placeless:
        text += f" Not on this axis: {', '.join(found.placeless)}."
    return text


def format_n(rows: Sequence[Row], what: str = "level") -> str:
    """Format `n = 5 to 35 runs a level`."""
    return f"n = {counted_range((row.n for row in rows), 'run')} a {what}"
