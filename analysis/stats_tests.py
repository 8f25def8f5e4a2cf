"""Tests, their correction for many comparisons, and the size of an effect."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats import CONFIDENCE, checked, ranks, variance

LEVEL = 1 - CONFIDENCE


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference in standard deviations, with its interval."""

    value: float
    low: float
    high: float
    design: str | None = None  # whose standard deviations, in words; None: those of runs


def welch(condition: Sequence[float], baseline: Sequence[float]) -> float | None:
    """Two-sided p of two means being equal, without assuming equal variances.

    Welch (1947), "The Generalization of 'Student's' Problem when Several Different Population
    Variances are Involved", Biometrika 34. None where there is no test: fewer than 2 values on a
    side, or no spread on either.
    """
    return welch_effective(condition, baseline, (len(condition), len(baseline)))


def welch_effective(
    condition: Sequence[float], baseline: Sequence[float], sizes: tuple[float, float]
) -> float | None:
    """welch() as if the sides had `sizes` independent values (autocorrelated series have fewer)."""
    from scipy.special import stdtr

    sides = [checked(condition), checked(baseline)]
    if min(map(len, sides)) < 2:
        return None
    means = [statistics.fmean(side) for side in sides]
    parts = [variance(s, m) / n for s, m, n in zip(sides, means, sizes, strict=True)]
    total = math.fsum(parts)
    if total <= 0:
        return None
    degrees = total**2 / math.fsum(p**2 / (n - 1) for p, n in zip(parts, sizes, strict=True))
    return 2 * float(stdtr(degrees, -abs(means[0] - means[1]) / math.sqrt(total)))


def kruskal(groups: Sequence[Sequence[float]]) -> float | None:
    """p of groups of values all coming from one distribution, by ranks; any spread, any shape.

    Kruskal & Wallis (1952), "Use of Ranks in One-Criterion Variance Analysis", JASA 47(260), with
    their correction for ties and the chi-squared approximation, which they advise from 5 values a
    group on. None for fewer than 2 groups, an empty one, or where all values are equal.
    """
    from scipy.special import chdtrc

    sizes = [len(group) for group in groups]
    if len(groups) < 2 or min(sizes) < 1:
        return None
    places = ranks(checked([value for group in groups for value in group]))
    n, middle = len(places), (len(places) - 1) / 2
    squares = math.fsum((place - middle) ** 2 for place in places)
    if squares == 0:
        return None
    between, rest = 0.0, iter(places)
    for size in sizes:
        mean = math.fsum(next(rest) for _ in range(size)) / size
        between += size * (mean - middle) ** 2
    return float(chdtrc(len(groups) - 1, (n - 1) * between / squares))


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p corrected for all of them: one below 0.05 is a false alarm in 5 of 100 families.

    Holm (1979), "A Simple Sequentially Rejective Multiple Test Procedure", Scandinavian Journal of
    Statistics 6(2). In the order given; holds whatever the tests have to do with each other.
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, place in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        highest = max(highest, min((len(p_values) - rank) * p_values[place], 1.0))
        corrected[place] = highest
    return corrected


def hedges(condition: Sequence[float], baseline: Sequence[float]) -> Effect | None:
    """Hedges' g: difference of means in pooled standard deviations, corrected for few values.

    Hedges (1981), "Distribution Theory for Glass's Estimator of Effect Size and Related
    Estimators", Journal of Educational Statistics 6(2), with the exact correction and the
    large-sample variance of Hedges & Olkin (1985), chapter 5, equation 15. None without spread.
    """
    from scipy.special import gammaln, ndtri

    numbers, base = checked(condition), checked(baseline)
    n, m = len(numbers), len(base)
    if min(n, m) < 2:
        return None
    mean, base_mean = statistics.fmean(numbers), statistics.fmean(base)
    degrees = n + m - 2
    pooled = ((n - 1) * variance(numbers, mean) + (m - 1) * variance(base, base_mean)) / degrees
    if pooled <= 0:
        return None
    gammas = float(gammaln(degrees / 2) - gammaln((degrees - 1) / 2))
    g = (mean - base_mean) / math.sqrt(pooled) * math.exp(gammas) / math.sqrt(degrees / 2)
    half = float(ndtri((1 + CONFIDENCE) / 2)) * math.sqrt((n + m) / (n * m) + g * g / (2 * (n + m)))
    return Effect(g, g - half, g + half)


# Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences", part 2.2.4.
SIZES = ((0.8, "large"), (0.5, "medium"), (0.2, "small"), (0.0, "very small"))


def effect_words(effect: Effect) -> str:
    """`large (g = 1.9)`."""
    word = next(word for least, word in SIZES if abs(effect.value) >= least)
    places = ".2g" if abs(effect.value) < 100 else ".0f"
    design = f", {effect.design}" if effect.design else ""
    return f"{word} (g = {effect.value:{places}}{design})".replace("-", "−")
