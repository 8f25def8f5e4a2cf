"""Ratios of means: Fieller's interval, and Welch's degrees of freedom of a sum of variances."""

from __future__ import annotations

import math
from collections.abc import Sequence


def welch_degrees(parts: Sequence[float], degrees: Sequence[float]) -> float:
    """Degrees of freedom of a sum of variances (`parts`), each with its own; the sum is above 0.

    Satterthwaite (1946), "An Approximate Distribution of Estimates of Variance Components",
    Biometrics Bulletin 2(6); Welch (1947), "The Generalization of 'Student's' Problem when Several
    Different Population Variances are Involved", Biometrika 34. By shares of the sum: squares of
    very large or small variances are no doubles.
    """
    total = math.fsum(parts)
    return 1 / math.fsum((part / total) ** 2 / n for part, n in zip(parts, degrees, strict=True))


def fieller(
    top: float, bottom: float, covariance: tuple[float, float, float], quantile: float
) -> tuple[float, float] | None:
    """All r for which top − r · bottom may be 0: (low, high); None where the set has no ends.

    `covariance`: variance of top, covariance, variance of bottom. Fieller (1954), "Some Problems in
    Interval Estimation", JRSS B 16(2). Solved in terms of top / bottom, since squares of the
    estimates would leave nothing of a small spread.
    """
    ratio = top / bottom
    of_top, of_both, of_bottom = ((quantile / bottom) ** 2 * part for part in covariance)
    if of_bottom >= 1:  # bottom itself may be 0
        return None
    square = of_top - 2 * ratio * of_both + ratio**2 * of_bottom + of_both**2 - of_bottom * of_top
    root = math.sqrt(max(square, 0.0))
    middle, scale = ratio - of_both, 1 - of_bottom
    return (middle - root) / scale, (middle + root) / scale
