"""Finds the levels of a numeric factor with the shortest time or the least energy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from steelyard.analysis.collect.network import FACTOR
from steelyard.analysis.stats.basics import to_costs
from steelyard.analysis.stats.scaling import Choice, find_best_levels
from steelyard.analysis.summary.numeric_factors import Axis, find_axes
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import compute_means_p, is_rate_row
from steelyard.analysis.summary.summary import Summary, is_common

ENERGY = "energy_j"
TIME_UNITS = frozenset(("s", "ms", "us", "µs", "ns"))


@dataclass(frozen=True, slots=True)
class Optimum:
    """The best level of a factor in one metric, and the levels not shown to be worse."""

    variant: str
    metric: str
    factor: str
    others: str
    choice: Choice
    allowed: tuple[float, ...]
    tried: tuple[float, ...]  # ascending
    is_rate: bool = False  # the best level then has the largest mean

    @property
    def is_distinct(self) -> bool:
        """Whether any level is shown not to be the best."""
        return len(self.allowed) < len(self.tried)

    @property
    def is_inside(self) -> bool:
        """Whether neither end of the factor may be the best, which a slope does not show."""
        return self.tried[0] not in self.allowed and self.tried[-1] not in self.allowed


def is_speed_row(row: Row) -> bool:
    """Return whether a row has times, or rates, which are the inverse of times."""
    is_time = row.metric.unit in TIME_UNITS and row.metric.better == "lower"
    return bool(row.values) and (is_time or is_rate_row(row))


def find_optimum(
    factor: str, others: str, levels: Sequence[float], rows: Sequence[Row]
) -> Optimum | None:
    """Return the level with the smallest mean time or energy, or the largest mean rate.

    Returns None for fewer than 2 levels, and for values not above 0, which are no time and no
    energy.
    """
    if len(rows) < 2 or any(min(row.values) <= 0 for row in rows):
        return None
    means = [fmean(to_costs(r.values) if is_rate_row(r) else r.values) for r in rows]
    places = find_best_levels(means, lambda i, j: compute_means_p(rows[i], rows[j]))
    allowed = tuple(sorted({levels[index] for index in places}))
    best = levels[min(range(len(means)), key=means.__getitem__)]
    first = rows[0]
    return Optimum(
        first.group.variant, first.metric.name, factor, others,
        Choice(best, allowed[0], allowed[-1]), allowed, tuple(sorted(set(levels))),
        is_rate_row(first),
    )  # fmt: skip


def find_numeric_optima(summary: Summary) -> list[Optimum]:
    """Return the optima of numeric factors if they add to the slopes.

    They do if the best level is inside, or if time and energy have different ones. A factor that
    the study scales over has its own section.
    """
    scaling = summary.data.meta.scaling
    own = (FACTOR, *(scaling.over if scaling else ()))
    every = [axis for axis in find_axes(summary.data.meta.factors) if axis.factor not in own]
    return [one for axis in every for one in find_optima(summary, axis)]


def find_optima(summary: Summary, axis: Axis) -> Iterator[Optimum]:
    """Yield the optima of time and energy by variant and levels of the other factors.

    The time is the main figure, or elapsed_s.
    """
    found: dict[tuple[str, str], dict[str, list[tuple[float, Row]]]] = {}
    for row in summary.rows:
        position = axis.position(row.group.condition)
        if (
            position is not None
            and (row.metric.name == ENERGY or is_reported_speed(row))
            and row.values
        ):
            key = row.group.variant, axis.others(row.group.levels)
            found.setdefault(key, {}).setdefault(row.metric.name, []).append((position, row))
    for (_, others), metrics in found.items():
        best = [
            one
            for pairs in metrics.values()
            if (one := find_optimum(axis.factor, others, *zip(*pairs, strict=True)))
            and one.is_distinct
        ]
        if any(one.is_inside for one in best) or is_clearly_different(best):
            yield from best


def is_reported_speed(row: Row) -> bool:
    """Return whether a row is a main figure in time, or elapsed_s if the report shows it."""
    is_elapsed = row.metric.name == "elapsed_s" and is_common(row.group.variant, "elapsed_s")
    return (row.metric.is_primary or is_elapsed) and is_speed_row(row)


def is_clearly_different(found: Sequence[Optimum]) -> bool:
    """Return whether no level of least energy is also one of the shortest time."""
    energy = {level for one in found if one.metric == ENERGY for level in one.allowed}
    return bool(energy) and any(
        energy.isdisjoint(one.allowed) for one in found if one.metric != ENERGY
    )
