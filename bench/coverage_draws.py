"""Distributions from which the simulated studies of bench/coverage.py are drawn, and helpers."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steelyard.analysis.stats.overhead import Overhead
from steelyard.analysis.stats.overhead_verdict import SHOWN, Evidence, make_verdict
from steelyard.analysis.summary.stopping import count_missing_values

Chance = np.random.Generator
Values = NDArray[np.float64]
# One simulated study returns for us and for the peer: whether the interval held or an alarm was
# reported; None: nothing was reported.
Study = Callable[[Chance, bool], tuple[bool | None, bool | None]]


def normal(chance: Chance, n: int, mean: float = 10.0, share: float = 0.05) -> Values:
    """Draw runs with a standard deviation of a share of their mean."""
    return mean * (1 + share * chance.standard_normal(n))


def skewed(chance: Chance, n: int, mean: float = 10.0, share: float = 0.3) -> Values:
    """Draw log-normal runs of the same mean: a tail to the slow side, like run times."""
    variance = math.log1p(share**2)
    return mean * np.exp(math.sqrt(variance) * chance.standard_normal(n) - variance / 2)


Draw = Callable[..., Values]


def heavy(chance: Chance, n: int, mean: float = 10.0, share: float = 0.1) -> Values:
    """Draw Student's t with 3 degrees of freedom: tails as heavy as a finite variance allows."""
    return mean * (1 + share * chance.standard_t(3, n) / math.sqrt(3))


def delayed(times: float) -> Draw:
    """Return a distribution in which one run in 20 takes `times` as long."""

    def draw(chance: Chance, n: int, mean: float = 10.0, share: float = 0.05) -> Values:
        usual = normal(chance, n, mean / (1 + 0.05 * (times - 1)), share)
        return usual * np.where(chance.random(n) < 0.05, times, 1.0)

    return draw


def following(correlation: float) -> Draw:
    """Return a distribution in which runs correlate with the previous one: AR(1)."""

    def draw(chance: Chance, n: int, mean: float = 10.0, share: float = 0.05) -> Values:
        noise = chance.standard_normal(n)
        noise[1:] *= math.sqrt(1 - correlation**2)
        for place in range(1, n):
            noise[place] += correlation * noise[place - 1]
        return mean * (1 + share * noise)

    return draw


SIGMA_HALF = math.sqrt(math.expm1(0.25))  # share of log-normal runs with sigma 0.5


def held(low: float | None, high: float | None, truth: float) -> bool | None:
    """Whether the interval contains the truth; None: no interval."""
    return None if low is None or high is None else low <= truth <= high


def flat(groups: list[list[float]]) -> list[float]:
    return [value for group in groups for value in group]


PLACES = np.array([0.0, 0.025, 0.05, 0.075, 0.1])
LEVELS = np.repeat(PLACES, 5)


def grown(chance: Chance, share: float, half_width: float) -> tuple[list[float], list[float]]:
    """Draw two conditions of at least 5 runs each, until both means are known to a share.

    submit adds runs in the same way.
    """
    ours, base = (
        normal(chance, 2000, 11.0, share).tolist(),
        normal(chance, 2000, 10.0, share).tolist(),
    )
    n = 5
    while more := max(
        count_missing_values(side[:n], half_width * statistics.fmean(side[:n]))
        for side in (ours, base)
    ):
        n += more
    return ours[:n], base[:n]


def differs(found: Overhead, p: float | None) -> bool:
    """Whether the report states a difference."""
    return make_verdict(found, "s", "lower", evidence=Evidence(p)).direction in SHOWN
