"""Tests of differences (Welch, Kruskal-Wallis), Holm's correction, and tests of equivalence (TOST).

Two one-sided tests of the ratio of two means: Schuirmann (1987), "A Comparison of the Two One-Sided
Tests Procedure and the Power Approach for Assessing the Equivalence of Average Bioavailability",
Journal of Pharmacokinetics and Biopharmaceutics 15(6). For a ratio with an estimated baseline mean:
Hauschke, Kieser, Diletti & Burke (1999), "Sample Size Determination for Proving Equivalence Based
on the Ratio of Two Means for Normally Distributed Data", Statistics in Medicine 18(1), part 2.
Spreads may be unequal: Dannenberg, Dette & Munk (1994), "An Extension of Welch's Approximate
t-Solution to Comparative Bioequivalence Problems", Biometrika 81(1). The test towards the worse
side alone is the test of non-inferiority: Blackwelder (1982), "'Proving the Null Hypothesis' in
Clinical Trials", Controlled Clinical Trials 3(4).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE, check_values, ranks, variance, welch_degrees
from steelyard.analysis.stats.grouped_runs import (
    Group,
    Groups,
    compute_mean_error,
    covariance,
    mean,
    residuals,
)

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


@dataclass(frozen=True, slots=True)
class Sides:
    """Two means, their variances and covariance, and the degrees of freedom of each variance.

    For pairs `degrees` has one member, that of their difference.
    """

    means: tuple[float, float]
    spread: tuple[float, float, float]
    degrees: tuple[int, ...]


def independent_sides(condition: Groups, baseline: Groups) -> Sides | None:
    """Return the sides from their groups (runs, jobs or blocks); None with fewer than 2 groups."""
    if min(len(condition), len(baseline)) < 2:
        return None
    ours, base = compute_mean_error(condition), compute_mean_error(baseline)
    return Sides(
        (ours.mean, base.mean), (ours.variance, 0.0, base.variance), (ours.degrees, base.degrees)
    )


def paired_sides(blocks: Sequence[tuple[Group, Group]]) -> Sides:
    """Return the sides from (condition, baseline) of each block; 2 blocks or more are needed."""
    ours, base = ([block[side] for block in blocks] for side in (0, 1))
    errors, others = residuals(ours), residuals(base)
    spread = covariance(errors, errors), covariance(errors, others), covariance(others, others)
    return Sides((mean(ours), mean(base)), spread, (len(blocks) - 1,))


def tost(sides: Sides, margin: float) -> float | None:
    """Return p that (condition − baseline) / baseline is beyond −margin or +margin.

    It is the larger p of the two one-sided tests of `condition − r · baseline` having the wrong
    sign, with r = 1 ∓ margin. Returns None without spread. Raises ValueError for a margin that is
    not between 0 and 1.
    """
    tests = [compute_past_margin_p(sides, margin, side) for side in (-1, 1)]
    known = [p for p in tests if p is not None]
    return max(known) if len(known) == len(tests) else None


def compute_past_margin_p(sides: Sides, margin: float, side: int) -> float | None:
    """Return p that the overhead is at or past the margin on this side (1: above).

    Returns None without spread.
    """
    if not 0 < margin < 1:
        raise ValueError(f"a margin must lie between 0 and 1, not {margin}")
    return compute_beyond_p(sides, 1 + side * margin, side)


def compute_beyond_p(sides: Sides, ratio: float, side: int) -> float | None:
    """Return p that condition / baseline is at or past `ratio` on this side (1: above).

    Returns None without spread.
    """
    from scipy.special import stdtr

    (ours, base), (of_ours, of_both, of_base) = sides.means, sides.spread
    parts = [of_ours, ratio**2 * of_base]
    variance = math.fsum([*parts, -2 * ratio * of_both])
    if variance <= 0:
        return None
    degrees = sides.degrees[0] if len(sides.degrees) == 1 else welch_degrees(parts, sides.degrees)
    return float(stdtr(degrees, side * (ours - ratio * base) / math.sqrt(variance)))
