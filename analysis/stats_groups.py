"""A mean with its interval where what is independent are jobs, each with one run or several."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.analysis.stats import CONFIDENCE, Interval, mean_interval, student_quantile
from steelyard.analysis.stats_overhead import MIN_BOOTSTRAP, SEED, bca_limits, weights

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

Groups = Sequence[Sequence[float]]  # the runs of each job


def mean(groups: Groups) -> float:
    """The mean of all members."""
    return math.fsum(math.fsum(group) for group in groups) / size(groups)


def size(groups: Groups) -> int:
    """How many members all have together."""
    return sum(map(len, groups))


def residuals(groups: Groups) -> list[float]:
    """What each job takes the mean of all runs away from where the others have it."""
    middle, n = mean(groups), size(groups)
    return [(math.fsum(group) - middle * len(group)) / n for group in groups]


def covariance(ours: Sequence[float], others: Sequence[float]) -> float:
    """Of two means, from their residuals (Cochran 1977, "Sampling Techniques", equation 6.13)."""
    m = len(ours)
    return m / (m - 1) * math.fsum(a * b for a, b in zip(ours, others, strict=True))


def mean_by_job(jobs: Groups, confidence: float = CONFIDENCE) -> Interval:
    """The mean of all runs, Student's interval with the degrees of freedom of jobs.

    With one run a job it is stats.mean_interval(). Without ends for fewer than 2 jobs.
    """
    middle, n = mean(jobs), size(jobs)
    if len(jobs) == n:
        return mean_interval([job[0] for job in jobs], confidence)
    if len(jobs) < 2:
        return Interval(middle, None, None, n)
    errors = residuals(jobs)
    quantile = student_quantile((1 + confidence) / 2, len(jobs) - 1)
    half = quantile * math.sqrt(covariance(errors, errors))
    return Interval(middle, middle - half, middle + half, n)


def mean_bca(jobs: Groups, confidence: float = CONFIDENCE, seed: int = SEED) -> Interval | None:
    """The same by bootstrap: BCa, jobs drawn again, widened for few as overheads are.

    Efron (1987), "Better Bootstrap Confidence Intervals", JASA 82(397); Hesterberg (2015), The
    American Statistician 69(4), part 5.3. None for fewer than 10 jobs, and where all are equal.
    """
    import numpy as np

    m = len(jobs)
    sums, sizes = (
        np.array([math.fsum(job) for job in jobs]),
        np.array([float(len(j)) for j in jobs]),
    )
    middle = float(sums.sum() / sizes.sum())
    without = (sums.sum() - sums) / (sizes.sum() - sizes) if m > 1 else sums
    if m < MIN_BOOTSTRAP or (without == without[0]).all():
        return None
    shares = weights(m, seed, 0)
    # Taken off first: exact beside a large common offset.
    means = middle + drawn_means(shares, sums - middle * sizes, sizes)
    z = student_quantile((1 + confidence) / 2, m - 1) * math.sqrt(m / (m - 1))
    low, high, _ = bca_limits(means, middle, [without], z)
    return Interval(middle, low, high, size(jobs))


def drawn_means(shares: Floats, sums: Floats, sizes: Floats) -> Floats:
    """Means of groups drawn again, from the share of each group in each draw."""
    # Shares add up to 1: groups of one size need no second product.
    drawn_sizes = sizes[0] if (sizes == sizes[0]).all() else shares @ sizes
    means: Floats = (shares @ sums) / drawn_sizes
    return means
