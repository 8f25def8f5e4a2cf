"""Scaling of a figure: speed-up, parallel efficiency, serial fractions, and the best scale.

A relative scale q is a scale divided by the reference, the smallest scale with values: with 2 and 8
nodes the reference is 2 and q of 8 nodes is 4. A speed-up is the reference's mean time for the same
work divided by the mean time at q: a ratio of means, with the interval of an overhead. In weak
scaling the work grows with q, so the speed-up is the scaled one (Gustafson 1988).

Results are not cut to what a law allows: an efficiency above 1 and a serial fraction below 0 are
results (superlinear scaling).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE, Estimate
from steelyard.analysis.stats.overhead import Overhead

LEAST_EFFICIENCY = 0.7  # of a scale that is worth its processors


def speed_up(found: Overhead) -> Estimate | None:
    """Return the speed-up of a scale from the overhead of the reference compared with it.

    Returns None if the overhead has no value. Times are never negative, nor is their ratio.
    """
    if found.value is None:
        return None
    if found.low is None or found.high is None:
        return Estimate(1 + found.value)
    return Estimate(1 + found.value, max(1 + found.low, 0.0), 1 + found.high)


def efficiency(speed: Estimate, q: float) -> Estimate:
    """Return the speed-up divided by the relative scale; 1 is linear scaling."""
    ends = [None if end is None else end / q for end in (speed.low, speed.high)]
    return Estimate(speed.value / q, *ends)


def serial_fraction(speed: Estimate, q: float) -> Estimate | None:
    """Return the experimentally determined serial fraction, (1/S − 1/q) / (1 − 1/q); None at q = 1.

    Karp & Flatt (1990), "Measuring Parallel Processor Performance", Communications of the ACM
    33(5). It falls as the speed-up rises, so its interval is that of the speed-up, transformed.
    """

    def fraction(s: float) -> float:
        return (1 / s - 1 / q) / (1 - 1 / q)

    return apply_falling(fraction, speed) if q > 1 and speed.value > 0 else None


def scaled_serial_fraction(speed: Estimate, q: float) -> Estimate | None:
    """Return the serial fraction of a scaled speed-up, (q − S) / (q − 1); None at q = 1.

    Gustafson (1988), "Reevaluating Amdahl's Law", Communications of the ACM 31(5): S = q − s (q −
    1).
    """
    return apply_falling(lambda s: (q - s) / (q - 1), speed) if q > 1 else None


def apply_falling(of: Callable[[float], float], speed: Estimate) -> Estimate:
    """Apply a falling function to a speed-up.

    The result has no ends if the speed-up has none or its interval reaches 0.
    """
    if not speed.low or speed.high is None:
        return Estimate(of(speed.value))
    return Estimate(of(speed.value), of(speed.high), of(speed.low))


def one_sided_confidence(confidence: float, scales: int) -> float:
    """Return the confidence of each scale's interval for find_largest_efficient().

    Bonferroni's correction over all scales but the reference, with one-sided limits.
    """
    return 1 - 2 * (1 - confidence) / max(scales - 1, 2)


@dataclass(frozen=True, slots=True)
class Choice:
    """A measured scale or level, and the range of scales or levels that the data allow."""

    value: float
    low: float
    high: float


def find_largest_efficient(
    scales: Sequence[float],
    efficiencies: Sequence[Estimate],
    least: float = LEAST_EFFICIENCY,
) -> Choice | None:
    """Return the largest measured scale whose efficiency is at least `least`.

    The data allow a scale if it is not shown to be below `least` and no larger scale is shown to
    reach it. The true scale is missed only if its own upper limit or the lower limit of a larger
    scale is wrong: with intervals of one_sided_confidence() in at most 5 % of studies. An
    efficiency without an interval may be anything. The reference has exactly 1; without it the
    result may be None.
    """
    pairs = list(zip(scales, efficiencies, strict=True))
    reached = [scale for scale, found in pairs if found.value >= least]
    if not reached:
        return None
    largest = max(
        (s for s, found in pairs if found.low is not None and found.low >= least), default=0
    )
    allowed = [s for s, e in pairs if s >= largest and (e.high is None or e.high >= least)]
    return Choice(max(reached), min(allowed), max(allowed))


def find_best_levels(
    means: Sequence[float],
    p_of: Callable[[int, int], float | None],
    level: float = 1 - CONFIDENCE,
) -> list[int]:
    """Return the indices of the levels that may have the smallest mean.

    They are the levels that are not shown to exceed another.

    Gupta (1965), "On Some Multiple Decision (Selection and Ranking) Rules", Technometrics 7(2), the
    set that Hsu's multiple comparisons with the best (1984, Annals of Statistics 12(3)) leaves at
    0. The best level is compared with k − 1 others; by Bonferroni it is lost in at most `level` of
    studies, whatever the levels' spreads. `p_of(i, j)` returns the two-sided p of two means, or
    None without a test.
    """
    each = level / max(len(means) - 1, 1)

    ranked = sorted(range(len(means)), key=means.__getitem__)  # the best level excludes most others

    def is_significantly_worse(i: int, j: int) -> bool:
        if means[i] <= means[j]:
            return False
        p = p_of(i, j)
        return p is not None and p / 2 <= each

    return [i for i in range(len(means)) if not any(is_significantly_worse(i, j) for j in ranked)]
