"""A metric over a factor whose levels are numbers, or delays: how much more per unit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from steelyard.analysis.network import FACTOR, NO_LEVEL, QUANTITY, UNITS
from steelyard.analysis.stats_slope import MIN_LEVELS, Line, fit
from steelyard.analysis.summary import Row, Summary

DELAY = "delay="


@dataclass(frozen=True, slots=True)
class FactorLine:
    """A metric of one variant over one factor, all other factors at the levels in `others`."""

    variant: str
    metric: str
    unit: str | None
    factor: str  # `network` counts in ms of delay
    factor_unit: str  # `ms of delay`; of any other factor its own name
    others: str  # `launcher=podman, cache=cold`; empty: no other factor
    line: Line


def number_of(factor: str, level: object) -> float | None:
    """A level as a number: of the factor `network` ms of delay where nothing else was asked for."""
    if factor == FACTOR:
        return delay_ms(str(level))
    if isinstance(level, bool):
        return None
    try:
        value = float(str(level))
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def delay_ms(specification: str) -> float | None:
    """`none` is 0, `delay=50ms` 50; None for a specification with more in it."""
    if specification == NO_LEVEL:
        return 0.0
    text = "".join(specification.split())
    match = QUANTITY.fullmatch(text.removeprefix(DELAY)) if text.startswith(DELAY) else None
    if match is None or match[2] not in ("us", "ms", "s"):
        return None
    return float(Decimal(match[1]) * UNITS[match[2]] * 1000)


def factor_lines(summary: Summary) -> list[FactorLine]:
    """Of every metric with values, over every factor with at least three numbers for levels."""
    factors = [
        factor
        for factor, levels in summary.data.meta.factors.items()
        if len({number_of(factor, level) for level in levels} - {None}) >= MIN_LEVELS
    ]
    return [line for factor in factors for line in lines_over(summary, factor)]


def lines_over(summary: Summary, factor: str) -> Iterator[FactorLine]:
    """One line per variant, metric, and levels of the other factors."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in summary.rows:
        others = {k: v for k, v in row.group.condition.items() if k != factor}
        label = ", ".join(f"{name}={level}" for name, level in others.items())
        groups.setdefault((row.group.variant, row.metric.name, label), []).append(row)
    for (variant, metric, others_label), rows in groups.items():
        pairs = [
            (place, value)
            for row in rows
            if (place := number_of(factor, row.group.condition.get(factor))) is not None
            for value in row.values
        ]
        line = fit([place for place, _ in pairs], [value for _, value in pairs]) if pairs else None
        if line is not None:
            unit = "ms of delay" if factor == FACTOR else factor
            first = rows[0].metric.unit
            yield FactorLine(variant, metric, first, factor, unit, others_label, line)
