"""The harmonic mean of rates (work per time), and the overhead of such means.

The mean rate is work divided by mean time, which is the harmonic mean of the rates.

Hoefler & Belli (2015), "Scientific Benchmarking of Parallel Computing Systems", SC '15, rule 3:
costs have an arithmetic mean, rates a harmonic one. A rate is therefore averaged and compared as
its cost, the time for one unit of work, so that seconds and throughput of the same runs agree.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.overhead import Overhead

WIDE = "the condition's rates differ too widely"


def is_rate(unit: str | None, better: str | None) -> bool:
    """Return whether a unit is one of work per second, of which more is better."""
    return better == "higher" and (unit or "").endswith(("/s", "_per_s"))


def to_costs(values: Sequence[float]) -> tuple[float, ...]:
    """Return the seconds for one unit of work; the values must be above 0."""
    return tuple(1 / value for value in values)


def mean_by_kind(values: Sequence[float], rate: bool) -> float:
    """Return the harmonic mean of rates above 0, and the arithmetic mean of all other values."""
    if rate and min(values) > 0:
        return statistics.harmonic_mean(values)
    return statistics.fmean(values)


def rate_interval(cost: Interval) -> Interval:
    """Return the interval of a rate from that of its cost; without ends if that contains 0."""
    if cost.low is None or cost.high is None or cost.low <= 0:
        return Interval(1 / cost.mean, None, None, cost.n)
    return Interval(1 / cost.mean, 1 / cost.high, 1 / cost.low, cost.n)


def rate_overhead(plain: Overhead, inverse: Overhead) -> Overhead:
    """Return `plain` with the numbers of `inverse`.

    `inverse` compares the baseline's costs with the condition's, which is the ratio of the
    rates.
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
