"""How many repeats: before a study from a pilot, and while it runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    check_values,
    mean_interval,
    student_quantile,
    variance,
)
from steelyard.analysis.stats.dependent_runs import MIN_BLOCKS

MOST_REPEATS = 1_000_000
MOST_DIFFERENCE = 1e6  # in standard deviations
POWER = 0.8  # Cohen's convention, see `power`
MIN_PILOT = 3

# See `enough`: found and proved by bench/coverage.py.
FIRST_LOOK = 15
STOPPING_CONFIDENCE = 0.96


def repeats_needed(sd: float, half_width: float, confidence: float = CONFIDENCE) -> int:
    """The least n whose interval t(n − 1) · sd / √n is no wider than `half_width` to each side.

    Student (1908); both in the unit of the measure. The sd of the runs to come may be larger than
    this one: `repeats_assured` allows for it. ValueError for a half-width not above 0, or when
    more than a million runs were needed.
    """
    if not (half_width > 0 and sd >= 0):
        raise ValueError(f"expected half_width > 0 and sd >= 0, found {half_width} and {sd}")

    def fits(n: int) -> bool:
        quantile = student_quantile((1 + confidence) / 2, n - 1)
        return quantile * sd / math.sqrt(n) <= half_width

    low, high = 1, 2
    while not fits(high):
        low, high = high, high * 2
        if high > MOST_REPEATS:
            raise ValueError(f"more than {MOST_REPEATS} runs: ask for a wider interval")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def repeats_assured(pilot: Sequence[float], half_width: float, assurance: float = 0.9) -> int:
    """Repeats that reach `half_width` with this probability, from the spread of a pilot.

    The pilot's sd is replaced by its upper confidence limit (chi square): Kupper & Hafner (1989),
    "How Appropriate are Popular Sample Size Formulas?", The American Statistician 43(2); Browne
    (1995), Statistics in Medicine 14(17). ValueError for fewer than 3 values.
    """
    from scipy.special import chdtri

    numbers = check_values(pilot)
    if len(numbers) < MIN_PILOT:
        raise ValueError(f"a pilot needs {MIN_PILOT} runs, found {len(numbers)}")
    degrees = len(numbers) - 1
    spread = variance(numbers, statistics.fmean(numbers))
    worst = math.sqrt(degrees * spread / float(chdtri(degrees, assurance)))
    return repeats_needed(worst, half_width)


def can_stop(values: Sequence[float], half_width: float) -> bool:
    """Whether a study that is looked at after each run may stop: its interval is narrow enough.

    Chow & Robbins (1965), "On the Asymptotic Theory of Fixed-Width Sequential Confidence Intervals
    for the Mean", Annals of Mathematical Statistics 36(2). Stopping at the first narrow interval
    prefers small spreads, so that the plain rule covers less than it says (Starr 1966, "The
    Performance of a Sequential Procedure", same journal 37(1)). So: no look before 15 runs, and the
    interval that must be narrow is one of 96 %; bench/coverage.py shows that the 95 % interval
    told afterwards, which is that same one, then keeps its coverage. `half_width` in the measure's unit.
    """
    if len(values) < FIRST_LOOK:
        return False
    half = mean_interval(values, STOPPING_CONFIDENCE).half_width
    return half is not None and half <= half_width


def power(difference: float, repeats: int, level: float, blocks: int | None = None) -> float:
    """The chance that a t test of two conditions with `repeats` runs each tells a difference of so
    many standard deviations, at this level, two-sided: by the noncentral t distribution.

    Cohen (1988), "Statistical Power Analysis for the Behavioral Sciences", 2nd ed., chapter 2.
    `blocks`: that hold both conditions. The test is the report's: of the blocks' differences where
    they are enough, else of all runs. The standard deviation is that inside a block.
    """
    from scipy.special import nctdtr

    if repeats < 2:
        return 0.0
    pairs = 0 if blocks is None else min(blocks, repeats)
    degrees = pairs - 1 if pairs >= MIN_BLOCKS else 2 * (repeats - 1)
    critical = student_quantile(1 - level / 2, degrees)
    shift = difference * math.sqrt(repeats / 2)
    missed = float(nctdtr(degrees, shift, critical))
    # To the wrong side. Where that is less than a double can tell scipy gives nan.
    wrong = float(nctdtr(degrees, shift, -critical))
    return 1 - missed + (0.0 if math.isnan(wrong) else wrong)


def least_detectable_difference(
    repeats: int, level: float, blocks: int | None = None, min_power: float = POWER
) -> float | None:
    """The least difference, in standard deviations, that is told with this power; None: no test."""
    if power(MOST_DIFFERENCE, repeats, level, blocks) < min_power:
        return None
    low, high = 0.0, 1.0
    while power(high, repeats, level, blocks) < min_power:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        low, high = (
            (low, middle) if power(middle, repeats, level, blocks) >= min_power else (middle, high)
        )
    return high


def repeats_to_detect(
    difference: float, level: float, blocks: int | None = None, wanted: float = POWER
) -> int | None:
    """The least runs of each condition with which a difference of so many standard deviations is
    told; None: more than a million."""

    def is_seen(repeats: int) -> bool:
        return power(difference, repeats, level, blocks) >= wanted

    # Pairs of few blocks have fewer degrees of freedom than their runs, from MIN_BLOCKS on.
    for repeats in range(2, MIN_BLOCKS):
        if is_seen(repeats):
            return repeats
    low, high = MIN_BLOCKS - 1, MIN_BLOCKS
    while not is_seen(high):
        low, high = high, 2 * high
        if high > MOST_REPEATS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_seen(middle) else (middle, high)
    return high
