"""Drift and warm-up: values that depend on when they were measured.

Drift is tested over several conditions at once. Conditions that run in turns share the machine's
hours, so their runs are judged together. Each run counts with its rank among the runs of its own
condition, which removes the effects of the conditions.

Warm-up: the first values of a series, or iterations of a run, differ from the rest.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    Interval,
    check_values,
    mean_interval,
    ranks,
    student_quantile,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


MIN_RUNS = 10
MIN_RANKED = 3  # runs of a condition; with two the ranks carry almost no information


@dataclass(frozen=True, slots=True)
class Timed:
    """The runs of one condition: start times (of a clock that all conditions share) and values."""

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


LEVEL = 0.01  # of each test; after each warm-up that is found, the rest is tested again
MIN_VALUES = 10
PERMUTATIONS = 4999
SEED = 19791


@dataclass(frozen=True, slots=True)
class WarmUp:
    """A warm-up of the first `length` values; intervals with and without them."""

    length: int
    p: float  # of the first cut
    with_it: Interval
    without: Interval


def find_warm_up(values: Sequence[float], confidence: float = CONFIDENCE) -> WarmUp | None:
    """Return the warm-up of a series in the order of measurement; None if none was found.

    Maximally selected rank statistic: of all cuts in the first half the one whose two sides differ
    most by the standardized Mann-Whitney statistic, judged by permutation, and again after the cut
    (binary segmentation) as long as the result stays in the first half: Pettitt (1979), "A
    Non-Parametric Approach to the Change-Point Problem", Applied Statistics 28(2); Hothorn &
    Zeileis (2008), "Generalized Maximally Selected Statistics", Biometrics 64(4). It uses ranks, so
    that an outlier is no change. It needs at least 10 values.
    """
    numbers = check_values(values)
    length, first_p = 0, 1.0
    while len(numbers) - length >= MIN_VALUES and length < len(numbers) // 2:
        cut, p = best_cut(numbers[length:], len(numbers) // 2 - length)
        if p > LEVEL:
            break
        first_p = first_p if length else p
        length += cut
    if not length:
        return None
    with_it, without = (mean_interval(series, confidence) for series in (numbers, numbers[length:]))
    return WarmUp(length, first_p, with_it, without)


def best_cut(numbers: Sequence[float], most: int) -> tuple[int, float]:
    """Return (number of values before the best cut, its p); at most `most` values are before it."""
    import numpy as np

    places = np.asarray(ranks(numbers))
    places -= places.mean()
    if not places.any():
        return 0, 1.0
    found = contrasts(places[None, :], most)[0]
    highest = permuted_highest(tuple(np.sort(places)), most)
    as_high = int(np.count_nonzero(highest >= found.max() - 1e-9))
    # The standard error of p is added: all series of one length share their permutations.
    p = min((1 + as_high + math.sqrt(as_high)) / (PERMUTATIONS + 1), 1.0)
    if not as_high:
        p = min(p, highest_p(float(found.max() / places.std(ddof=1)), most))
    return int(found.argmax()) + 1, p


def highest_p(z: float, most: int) -> float:
    """Return p of the highest of `most` standardized contrasts if no permutation comes near it.

    Normal tails, added up: Hothorn & Lausen (2003), "On the Exact Distribution of Maximally
    Selected Rank Statistics", Computational Statistics & Data Analysis 43(2), the first of their
    bounds. In the far tail it is rather too large than too small, because sums of ranks are
    bounded.
    """
    from scipy.special import ndtr

    return min(most * 2 * float(ndtr(-z)), 1.0)


def contrasts(places: Floats, most: int) -> Floats:
    """Return |standardized sum of the first k centered ranks|, k = 1 … most, for each row.

    The result lacks a factor that is the same for every cut of one series.
    """
    import numpy as np

    n = places.shape[1]
    k = np.arange(1, most + 1)
    result: Floats = np.abs(np.cumsum(places[:, :most], axis=1)) / np.sqrt(k * (n - k) / n)
    return result


@functools.lru_cache(maxsize=64)
def permuted_highest(places: tuple[float, ...], most: int) -> Floats:
    """Return the highest contrast of each permutation, cached: series without ties share it."""
    import numpy as np

    generator = np.random.default_rng((SEED, len(places), most))
    rows = generator.permuted(np.tile(np.asarray(places), (PERMUTATIONS, 1)), axis=1)
    highest: Floats = contrasts(rows, most).max(axis=1)
    return highest


MIN_ITERATIONS = 3
MIN_JOBS = 5


@dataclass(frozen=True, slots=True)
class InnerWarmUp:
    """The first `length` iterations of a run, compared with the mean of those after them."""

    length: int
    iterations: int
    runs: int
    jobs: int
    excess: float  # 0.2: 20 % above the rest
    p: float


def find_inner_warm_up(jobs: Mapping[object, Sequence[Sequence[float]]]) -> InnerWarmUp | None:
    """Return the cut in the first half of the iterations whose sides differ most.

    Each job (its runs, each a sequence of iterations) gives one difference between the sides,
    relative to the mean of the iterations after the cut. The p of Student's test of these is
    multiplied by the number of cuts (Bonferroni). Iterations of one run resemble each other, so
    they are not permuted. Runs of an unusual length are left out. Returns None for fewer than 3
    iterations or 5 jobs.
    """
    length = statistics.mode([len(run) for runs in jobs.values() for run in runs] or [0])
    full_jobs = [[run for run in runs if len(run) == length] for runs in jobs.values()]
    full_jobs = [runs for runs in full_jobs if runs]
    if length < MIN_ITERATIONS or len(full_jobs) < MIN_JOBS:
        return None
    cuts = range(1, length // 2 + 1)
    excesses = {cut: [job_excess(runs, cut) for runs in full_jobs] for cut in cuts}

    def contrast(cut: int) -> float:
        """Scale the excess as contrasts() does: a middle cut has more iterations on both sides."""
        return abs(statistics.fmean(excesses[cut])) * math.sqrt(cut * (length - cut) / length)

    best = max(cuts, key=contrast)
    p = min(student_p(excesses[best]) * len(cuts), 1.0)
    runs = sum(map(len, full_jobs))
    return InnerWarmUp(best, length, runs, len(full_jobs), statistics.fmean(excesses[best]), p)


def job_excess(runs: Sequence[Sequence[float]], cut: int) -> float:
    """Return (mean of the first − mean of the rest) / mean of the rest, averaged over a job's runs.

    A run whose rest has a mean of 0 counts as 0.
    """
    shares = []
    for run in runs:
        rest = statistics.fmean(run[cut:])
        shares.append((statistics.fmean(run[:cut]) - rest) / rest if rest else 0.0)
    return statistics.fmean(shares)


def student_p(values: Sequence[float]) -> float:
    """Return the two-sided p of a mean of 0: Student (1908).

    Without spread it is 1.0 if the mean is 0, else 0.0.
    """
    from scipy.special import stdtr

    found = mean_interval(values)
    if not found.half_width:
        return 0.0 if found.mean else 1.0
    error = found.half_width / student_quantile(0.975, found.n - 1)
    return 2 * float(stdtr(found.n - 1, -abs(found.mean) / error))
