"""Tests of equivalence: two one-sided tests (TOST) of the ratio of two means, or one of them.

Schuirmann (1987), "A Comparison of the Two One-Sided Tests Procedure and the Power Approach for
Assessing the Equivalence of Average Bioavailability", Journal of Pharmacokinetics and
Biopharmaceutics 15(6). For a ratio with an estimated baseline mean: Hauschke, Kieser, Diletti &
Burke (1999), "Sample Size Determination for Proving Equivalence Based on the Ratio of Two Means for
Normally Distributed Data", Statistics in Medicine 18(1), part 2. Spreads may be unequal:
Dannenberg, Dette & Munk (1994), "An Extension of Welch's Approximate t-Solution to Comparative
Bioequivalence Problems", Biometrika 81(1). The test towards the worse side alone is the test of
non-inferiority: Blackwelder (1982), "'Proving the Null Hypothesis' in Clinical Trials", Controlled
Clinical Trials 3(4).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import welch_degrees
from steelyard.analysis.stats.grouped_mean import covariance, mean, residuals
from steelyard.analysis.stats.grouped_overhead import Group, compute_mean_error


@dataclass(frozen=True, slots=True)
class Sides:
    """Two means, their variances and covariance, and the degrees of freedom of each variance.

    For pairs `degrees` has one member, that of their difference.
    """

    means: tuple[float, float]
    spread: tuple[float, float, float]
    degrees: tuple[int, ...]


def independent_sides(condition: Sequence[Group], baseline: Sequence[Group]) -> Sides | None:
    """Return the sides from their groups (runs, jobs or blocks); None with fewer than 2 groups."""
    if min(len(condition), len(baseline)) < 2:
        return None
    ours, base = compute_mean_error(condition), compute_mean_error(baseline)
    return Sides(
        (ours.mean, base.mean),
        (ours.variance, 0.0, base.variance),
        (ours.degrees, base.degrees),
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
