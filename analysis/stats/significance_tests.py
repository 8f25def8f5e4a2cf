"""Significance tests, and their correction for many comparisons."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from steelyard.analysis.stats.basics import CONFIDENCE, check_values, ranks, variance, welch_degrees

LEVEL = 1 - CONFIDENCE


def welch(condition: Sequence[float], baseline: Sequence[float]) -> float | None:
    """Return the two-sided p of equal means, without assuming equal variances.

    Welch (1947), with the degrees of freedom of basics.welch_degrees(). Returns None if no test
    exists: fewer than 2 values on a side, or no spread on either.
    """
    return welch_effective(condition, baseline, (len(condition), len(baseline)))


def welch_effective(
    condition: Sequence[float], baseline: Sequence[float], sizes: tuple[float, float]
) -> float | None:
    """Return welch() as if the sides had `sizes` independent values.

    Autocorrelated series have fewer independent values than values.
    """
    from scipy.special import stdtr

    sides = [check_values(condition), check_values(baseline)]
    if min(map(len, sides)) < 2:
        return None
    means = [statistics.fmean(side) for side in sides]
    parts = [variance(s, m) / n for s, m, n in zip(sides, means, sizes, strict=True)]
    total = math.fsum(parts)
    if total <= 0:
        return None
    degrees = welch_degrees(parts, [n - 1 for n in sizes])
    return 2 * float(stdtr(degrees, -abs(means[0] - means[1]) / math.sqrt(total)))


def kruskal(groups: Sequence[Sequence[float]]) -> float | None:
    """Return p that all groups of values come from one distribution, by ranks.

    The groups may have any spread and shape. Kruskal & Wallis (1952), "Use of Ranks in
    One-Criterion Variance Analysis", JASA 47(260), with their correction for ties and the
    chi-squared approximation, which they advise from 5 values per group on. Returns None for fewer
    than 2 groups, an empty group, or if all values are equal.
    """
    from scipy.special import chdtrc

    sizes = [len(group) for group in groups]
    if len(groups) < 2 or min(sizes) < 1:
        return None
    places = ranks(check_values([value for group in groups for value in group]))
    n, middle = len(places), (len(places) - 1) / 2
    squares = math.fsum((rank - middle) ** 2 for rank in places)
    if squares == 0:
        return None
    between, rest = 0.0, iter(places)
    for size in sizes:
        mean = math.fsum(next(rest) for _ in range(size)) / size
        between += size * (mean - middle) ** 2
    return float(chdtrc(len(groups) - 1, (n - 1) * between / squares))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return each p corrected for all: by chance 5 of 100 families have one below 0.05.

    Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal
    of Statistics 6(2). The order is kept. The correction holds for any dependence between the
    tests.
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min((len(p_values) - rank) * p_values[index], 1.0))
        corrected[index] = highest
    return corrected
