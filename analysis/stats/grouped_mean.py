"""A mean and its interval when groups of runs (jobs, blocks) are independent and runs are not."""

from __future__ import annotations

import math
from collections.abc import Sequence

from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    Interval,
    compute_ends,
    mean_interval,
    student_quantile,
)

Groups = Sequence[Sequence[float]]  # the runs of each job, or block


def mean(groups: Groups) -> float:
    """Return the mean of all members."""
    return math.fsum(math.fsum(group) for group in groups) / size(groups)


def size(groups: Groups) -> int:
    """Return the number of members of all groups."""
    return sum(map(len, groups))


def residuals(groups: Groups) -> list[float]:
    """Return how far each group moves the mean of all runs from where the other groups have it."""
    middle, n = mean(groups), size(groups)
    return [(math.fsum(group) - middle * len(group)) / n for group in groups]


def covariance(ours: Sequence[float], others: Sequence[float]) -> float:
    """Return the covariance of two means from their residuals.

    Cochran (1977), "Sampling Techniques", equation 6.13.
    """
    m = len(ours)
    return m / (m - 1) * math.fsum(a * b for a, b in zip(ours, others, strict=True))


def mean_by_group(
    groups: Groups, confidence: float = CONFIDENCE, never_negative: bool = False
) -> Interval:
    """Return the mean of all runs and Student's interval with the degrees of freedom of the groups.

    With one run per group it is mean_interval(). With fewer than 2 groups it has no ends.
    """
    middle, n = mean(groups), size(groups)
    if len(groups) == n:
        return mean_interval([group[0] for group in groups], confidence, never_negative)
    if len(groups) < 2:
        return Interval(middle, None, None, n)
    errors = residuals(groups)
    quantile = student_quantile((1 + confidence) / 2, len(groups) - 1)
    half = quantile * math.sqrt(covariance(errors, errors))
    return Interval(middle, *compute_ends(middle, half, len(groups), never_negative), n)
