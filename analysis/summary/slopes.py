"""Fits a metric over a factor with numeric levels, or delays: the change per unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import fmean

from steelyard.analysis.stats.hypothesis_tests import holm
from steelyard.analysis.stats.slope import LEVEL, Line, fit_slope
from steelyard.analysis.summary.numeric_factors import Axis, find_axes
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import check_level
from steelyard.analysis.summary.summary import Summary


@dataclass(frozen=True, slots=True)
class FactorLine:
    """A metric of one variant over one factor, with all other factors at the levels in `others`."""

    variant: str
    metric: str
    unit: str | None
    factor: str
    factor_unit: str  # `ms of delay`, `% of loss`; for any other factor its name
    others: str  # `launcher=podman, cache=cold`, `rate=100mbit`; empty: no other factor
    is_primary: bool
    line: Line
    p: float  # of the slope, corrected for all lines

    @property
    def is_significant(self) -> bool:
        """Whether both the interval and the test among all lines show a slope."""
        return self.p <= LEVEL and self.line.slope.excludes_zero


def fit_factor_lines(summary: Summary) -> list[FactorLine]:
    """Fit every metric with values over every factor with at least three numeric levels."""
    plain = [
        line for axis in find_axes(summary.data.meta.factors) for line in fit_lines(summary, axis)
    ]
    main = correct_p([line for line in plain if line.is_primary])
    rest = correct_p([line for line in plain if not line.is_primary])
    return [next(main if line.is_primary else rest) for line in plain]


def correct_p(lines: list[FactorLine]) -> Iterator[FactorLine]:
    """Apply Holm's correction to the slopes and the breaks of all of these lines together."""
    # Without a break its p is not known, but it is above the level and raises no other.
    breaks = [b.p if (b := line.line.break_point) is not None else 1.0 for line in lines]
    found = holm([*(line.p for line in lines), *breaks])
    for line, p, p_break in zip(lines, found, found[len(lines) :], strict=False):
        broken = line.line.break_point
        if broken is not None:
            broken = replace(broken, p=p_break) if p_break <= LEVEL else None
        yield replace(line, p=p, line=replace(line.line, break_point=broken))


def fit_lines(summary: Summary, axis: Axis) -> Iterator[FactorLine]:
    """Yield one line per variant, metric, and levels of the other factors, without correction."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in summary.rows:
        condition = row.group.condition
        if row.values and axis.position(condition) is not None:
            key = (row.group.variant, row.metric.name, axis.others(row.group.levels))
            groups.setdefault(key, []).append(row)
    for (variant, metric, others), rows in groups.items():
        line = fit_line(rows, axis)
        if line is not None:
            first = rows[0].metric
            yield FactorLine(
                variant, metric, first.unit, axis.factor, axis.unit, others, first.is_primary, line,
                check_level(line.slope.p, rows[0]),
            )  # fmt: skip


def fit_line(rows: list[Row], axis: Axis) -> Line | None:
    """Fit a line, by block if at least 10 blocks hold every level, as overheads are paired.

    A job's runs are one value: what they have in common is not spread around the line.
    """
    places: list[float] = []
    values: list[float] = []
    blocks: list[object] = []
    for row in rows:
        of_row = blocks_and_values(row)
        places += [axis.position(row.group.condition) or 0.0] * len(of_row)
        blocks += [block for block, _ in of_row]
        values += [value for _, value in of_row]
    return fit_slope(places, values, None if None in blocks else blocks, rows[0].confidence)


def blocks_and_values(row: Row) -> list[tuple[object, float]]:
    """Return (block, mean of the runs) of each job."""
    group = row.group
    jobs = [group.jobs[run] for run in row.run_ids]
    blocks = [group.blocks[run] for run in row.run_ids]
    if len(set(jobs)) == len(jobs):
        return list(zip(blocks, row.values, strict=True))
    found: dict[str, tuple[object, list[float]]] = {}
    for job, block, value in zip(jobs, blocks, row.values, strict=True):
        found.setdefault(job, (block, []))[1].append(value)
    return [(block, fmean(values)) for block, values in found.values()]
