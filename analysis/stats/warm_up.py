"""Warm-up: the first values of a series, or iterations of a run, that differ from the rest."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """The first `length` iterations of a run, compared with the mean of the iterations after
    them.
    """

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
