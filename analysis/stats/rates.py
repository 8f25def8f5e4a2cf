"""Rates (work by time): their mean is the work by the mean time, which is the harmonic mean.

Hoefler & Belli (2015), "Scientific Benchmarking of Parallel Computing Systems", SC '15, rule 3:
costs have an arithmetic mean, rates a harmonic one. A rate is therefore averaged and compared as
its cost, the time for one unit of work: then seconds and throughput of the same runs say the same.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.overhead import Overhead

WIDE = "the condition's rates differ too widely"


def is_rate(unit: str | None, better: str | None) -> bool:
    """Bytes, operations, files by second, of which more is better."""
    return better == "higher" and (unit or "").endswith(("/s", "_per_s"))


def to_costs(values: Sequence[float]) -> tuple[float, ...]:
    """Seconds for one unit of work; of values above 0."""
    return tuple(1 / value for value in values)


def mean_by_kind(values: Sequence[float], rate: bool) -> float:
    """The harmonic mean of rates, the plain one of all else; of a rate of 0, too."""
    if rate and min(values) > 0:
        return statistics.harmonic_mean(values)
    return statistics.fmean(values)


def rate_interval(cost: Interval) -> Interval:
    """Of a rate, from the interval of its cost; without ends where the cost's reaches to 0."""
    if cost.low is None or cost.high is None or cost.low <= 0:
        return Interval(1 / cost.mean, None, None, cost.n)
    return Interval(1 / cost.mean, 1 / cost.high, 1 / cost.low, cost.n)


def rate_overhead(plain: Overhead, inverse: Overhead) -> Overhead:
    """The counts and words of `plain` with the numbers of `inverse`.

    `inverse` compares the baseline's costs with the condition's: that is the ratio of the rates.
    """
    if plain.value is None or inverse.low is None:
        value = None if plain.value is None else inverse.value
        reason = plain.reason or WIDE
        return replace(plain, value=value, low=None, high=None, method="none", reason=reason)
    return replace(
        plain,
        value=inverse.value,
        low=inverse.low,
        high=inverse.high,
        method=inverse.method,
        reason=None,
    )
