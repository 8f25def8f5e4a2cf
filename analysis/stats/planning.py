"""Planning of repeats: before a study from a pilot, and while it runs."""

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
from steelyard.analysis.stats.grouped_runs import MIN_BLOCKS

MOST_REPEATS = 1_000_000
MOST_DIFFERENCE = 1e6  # in standard deviations
POWER = 0.8  # Cohen's convention, see power()
MIN_PILOT = 3

# Found by simulation in bench/coverage.py; see can_stop().
FIRST_LOOK = 15
STOPPING_CONFIDENCE = 0.96


def repeats_needed(sd: float, half_width: float, confidence: float = CONFIDENCE) -> int:
    """Return the least n for which t(n − 1) · sd / √n is at most `half_width`.

    Student (1908). `sd` and `half_width` are in the unit of the measure. The sd of the future runs
    may be larger than this one: repeats_assured() allows for it. Raises ValueError for a half-width
    not above 0, or if more than a million runs are needed.
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
    """Return the repeats that reach `half_width` with this probability, from the spread of a pilot.

    The pilot's sd is replaced by its upper confidence limit (chi square): Kupper & Hafner (1989),
    "How Appropriate are Popular Sample Size Formulas?", The American Statistician 43(2); Browne
    (1995), Statistics in Medicine 14(17). Raises ValueError for fewer than 3 values.
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
    """Return whether a study that is checked after each run may stop: the interval is narrow.

    Chow & Robbins (1965), "On the Asymptotic Theory of Fixed-Width Sequential Confidence Intervals
    for the Mean", Annals of Mathematical Statistics 36(2). Stopping at the first narrow interval
    prefers small spreads, so the plain rule covers less than its nominal share (Starr 1966, "The
    Performance of a Sequential Procedure", same journal 37(1)). So the rule needs 15 runs, and an
    interval of 96 % must be narrow. bench/coverage.py shows that the reported 95 % interval then
    keeps its coverage. `half_width` is in the unit of the measure.
    """
    if len(values) < FIRST_LOOK:
        return False
    half = mean_interval(values, STOPPING_CONFIDENCE).half_width
    return half is not None and half <= half_width


def power(difference: float, repeats: int, level: float, blocks: int | None = None) -> float:
    """Return the probability that a two-sided t test at `level` shows a difference.

    `difference` is in standard deviations inside a block, `repeats` counts the runs of each
    condition, and the distribution is the noncentral t. Cohen (1988), "Statistical Power Analysis
    for the Behavioral Sciences", 2nd ed., chapter 2. `blocks` is the number of blocks that hold
    both conditions. The test is that of the report: of the differences of blocks if there are
    enough, else of all runs.
    """
    from scipy.special import nctdtr

    if repeats < 2:
        return 0.0
    pairs = 0 if blocks is None else min(blocks, repeats)
    degrees = pairs - 1 if pairs >= MIN_BLOCKS else 2 * (repeats - 1)
    critical = student_quantile(1 - level / 2, degrees)
    shift = difference * math.sqrt(repeats / 2)
    missed = float(nctdtr(degrees, shift, critical))
    # The probability of a difference to the wrong side; scipy returns nan if it underflows.
    wrong = float(nctdtr(degrees, shift, -critical))
    return 1 - missed + (0.0 if math.isnan(wrong) else wrong)


def least_detectable_difference(
    repeats: int, level: float, blocks: int | None = None, min_power: float = POWER
) -> float | None:
    """Return the least difference, in standard deviations, that is shown with this power.

    Returns None if no test exists.
    """
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
    """Return the least number of runs per condition that shows a difference in standard deviations.

    Returns None if more than a million runs are needed.
    """

    def is_detectable(repeats: int) -> bool:
        return power(difference, repeats, level, blocks) >= wanted

    # From MIN_BLOCKS blocks on, pairs are tested, with fewer degrees of freedom than runs.
    for repeats in range(2, MIN_BLOCKS):
        if is_detectable(repeats):
            return repeats
    low, high = MIN_BLOCKS - 1, MIN_BLOCKS
    while not is_detectable(high):
        low, high = high, 2 * high
        if high > MOST_REPEATS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_detectable(middle) else (middle, high)
    return high
