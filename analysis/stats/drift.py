"""Drift: values that depend on when they were measured, tested over several conditions at once.

Conditions that run in turns share the machine's hours, so their runs are judged together. Each run
counts with its rank among the runs of its own condition, which removes the effects of the
conditions.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from steelyard.analysis.stats.basics import check_values, ranks

MIN_RUNS = 10
MIN_RANKED = 3  # runs of a condition; with two the ranks carry almost no information


@dataclass(frozen=True, slots=True)
class Timed:
    """The runs of one condition: start times (of any clock that all conditions share) and
    values.
    """

    times: Sequence[float]
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Trend:
    """The rank correlation with time, and its two-sided p."""

    rho: float
    p: float
    n: int


def find_trend(conditions: Sequence[Timed]) -> Trend | None:
    """Test whether values rise or fall with time, over all conditions; None below 10 runs.

    Spearman's correlation within conditions: ranks of values (divided by their number + 1, as van
    Elteren (1960), Bulletin de l'Institut International de Statistique 37, weights strata) and
    ranks of times, both centered in each condition; Student's t with n − 1 − the number of
    conditions degrees of freedom. With one condition it is Spearman's (1904) own test.
    """
    from scipy.special import stdtr

    pairs = [pair for one in rank_runs(conditions) for pair in one]
    n, degrees = len(pairs), len(pairs) - 1 - len(rank_runs(conditions))
    if n < MIN_RUNS or degrees < 1:
        return None
    times = math.fsum(t * t for t, _ in pairs)
    values = math.fsum(v * v for _, v in pairs)
    if times == 0 or values == 0:
        return None
    rho = math.fsum(t * v for t, v in pairs) / math.sqrt(times * values)
    if abs(rho) >= 1:
        return Trend(rho, 0.0, n)
    t = abs(rho) * math.sqrt(degrees / (1 - rho * rho))
    return Trend(rho, 2 * float(stdtr(degrees, -t)), n)


def rank_runs(conditions: Sequence[Timed]) -> list[list[tuple[float, float]]]:
    """Return (centered rank in time, centered rank of the value in its condition) of each run."""
    ranked = [one for one in conditions if len(one.values) >= MIN_RANKED]
    places = iter(
        ranks([time for one in ranked for time in check_values(one.times)]) if ranked else ()
    )
    found = []
    for one in ranked:
        n = len(one.values)
        mine = [next(places) for _ in range(n)]
        middle = statistics.fmean(mine)
        values = [(rank - (n - 1) / 2) / (n + 1) for rank in ranks(check_values(one.values))]
        found.append(
            [(run_rank - middle, value) for run_rank, value in zip(mine, values, strict=True)]
        )
    return found


def find_wander(conditions: Sequence[Timed]) -> float | None:
    """Return the one-sided p that runs resemble their predecessors no more than any other runs.

    This finds periodic changes, such as a file server's busy noon: Bartels (1982), "The Rank
    Version of von Neumann's Ratio Test for Randomness", JASA 77(377), over the runs of all
    conditions in the order of time, each as its rank in its condition. Returns None below 10 runs
    and if all ranks are equal.
    """
    from scipy.special import ndtr

    ranked = [one for one in conditions if len(one.values) >= MIN_RANKED]
    times = [time for one in ranked for time in check_values(one.times)]
    values = [value for one in rank_runs(ranked) for _, value in one]
    n = len(values)
    # Jobs of an array start in the same second: sorted by their values they would be alike.
    in_order = sorted(zip(times, values, strict=True), key=lambda pair: pair[0])
    series = ranks([value for _, value in in_order])
    squares = math.fsum((rank - (n - 1) / 2) ** 2 for rank in series)
    if n < MIN_RUNS or squares == 0:
        return None
    ratio = math.fsum((b - a) ** 2 for a, b in pairwise(series)) / squares
    return float(ndtr((ratio - 2) / math.sqrt(20 / (5 * n + 7))))
