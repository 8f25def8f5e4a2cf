"""Overhead of a condition against the baseline, with its interval and in words."""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from steelyard.analysis.stats import CONFIDENCE, checked, student_quantile, variance
from steelyard.analysis.stats_ratio import fieller, welch_degrees

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

RESAMPLES = 9999
MIN_RUNS = 3  # of 2 + 2 runs an interval would reach over 13 standard errors to each side
# Of fewer runs (or jobs) resamples cannot reach as far as a 95 % interval must: bench/coverage.py.
MIN_BOOTSTRAP = 10
SEED = 20121129
CACHED_VALUES = 500  # weights of larger samples are made anew: 9,999 x 500 doubles are 40 MB
CHUNK = 2_000_000  # weights held at once

Limits = tuple[float, float, str]  # of a ratio: low, high, method
NO_LIMITS: Limits = (math.nan, math.nan, "none")
TOO_CLOSE = "the baseline is too close to 0"

ROUNDING = 1e-12  # of a ratio: a narrower interval is made by rounding

NO_DURATION = frozenset(("cpu_s",))  # seconds of which more is not slower


@dataclass(frozen=True, slots=True)
class Overhead:
    """(condition − baseline) / baseline of two means; 0.1 is 10 % more.

    value is None where the ratio does not exist, low and high where no interval can be given;
    `reason` then says why. `method`: `BCa`, `percentile`, `Fieller`, or `none`.
    """

    value: float | None
    low: float | None
    high: float | None
    n_condition: int
    n_baseline: int
    method: str
    reason: str | None = None
    design: str | None = None  # what was drawn again, in words; None: runs (stats_clusters)


class Direction(StrEnum):
    """What an overhead means for the user."""

    WORSE = "worse"
    BETTER = "better"
    DIFFERENT = "different"
    NOT_SHOWN = "not shown to differ"
    UNKNOWN = "cannot be judged"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An overhead in words, with its interval and numbers of runs."""

    direction: Direction
    text: str


def overhead(
    condition: Sequence[float],
    baseline: Sequence[float],
    confidence: float = CONFIDENCE,
    seed: int = SEED,
    expand: bool = True,
) -> Overhead:
    """Overhead of two independent samples with an interval of the ratio of their means.

    Fieller's for fewer than 10 runs on a side. Else the bootstrap's, BCa: Efron (1987), "Better
    Bootstrap Confidence Intervals", JASA 82(397); the percentile interval where BCa does not exist.
    `expand` widens the nominal level so that few runs do not
    look too certain: Hesterberg (2015), "What Teachers Should Know About the Bootstrap", The
    American Statistician 69(4), part 5.3, here for two samples; without it all is BCa. The same
    values and seed give the same interval.
    """
    numbers, base = checked(condition), checked(baseline)
    plain, is_final = without_bootstrap(numbers, base)
    if is_final:
        return plain
    if expand and min(len(numbers), len(base)) < MIN_BOOTSTRAP:
        return by_fieller(plain, MeanError.of(numbers), MeanError.of(base), confidence)
    z = normal_limit(numbers, base, confidence, expand)
    return found_in(plain, bootstrap_ratio(numbers, base, z, seed))


def found_in(plain: Overhead, found: Limits) -> Overhead:
    """The overhead with these limits of its ratio."""
    low, high, method = found
    if method == "none":
        return replace(plain, low=None, high=None, method=method, reason=TOO_CLOSE)
    return replace(plain, low=low - 1, high=high - 1, method=method)


@dataclass(frozen=True, slots=True)
class MeanError:
    """A mean, its variance, and the degrees of freedom of that."""

    mean: float
    variance: float
    degrees: int

    @classmethod
    def of(cls, values: Sequence[float]) -> MeanError:
        """Of independent values."""
        mean = statistics.fmean(values)
        return cls(mean, variance(values, mean) / len(values), len(values) - 1)


def by_fieller(
    plain: Overhead, ours: MeanError, base: MeanError, confidence: float = CONFIDENCE
) -> Overhead:
    """The overhead with Fieller's interval; Welch's degrees of freedom at the ratio that was seen."""
    parts = [ours.variance, (ours.mean / base.mean) ** 2 * base.variance]
    if math.fsum(parts) <= 0:  # nothing but 0, or jobs with one and the same mean
        return found_in(plain, (ours.mean / base.mean, ours.mean / base.mean, "Fieller"))
    degrees = welch_degrees(parts, (ours.degrees, base.degrees))
    t = student_quantile((1 + confidence) / 2, degrees)
    ends = fieller(ours.mean, base.mean, (ours.variance, 0.0, base.variance), t)
    return found_in(plain, (*ends, "Fieller") if ends else NO_LIMITS)


def without_bootstrap(numbers: Sequence[float], base: Sequence[float]) -> tuple[Overhead, bool]:
    """The overhead without its interval, and whether it stays so: too few, a mean of 0, no spread."""
    mean, base_mean = statistics.fmean(numbers), statistics.fmean(base)
    counts = len(numbers), len(base)
    if base_mean <= 0:
        reason = "the baseline's mean is not above 0"
        return Overhead(None, None, None, *counts, "none", reason), True
    value = (mean - base_mean) / base_mean
    if min(counts) < MIN_RUNS:
        return Overhead(value, None, None, *counts, "none", too_few(*counts)), True
    if min(numbers) == max(numbers) and min(base) == max(base):
        reason = "all runs of a condition gave the same value"
        return Overhead(value, value, value, *counts, "none", reason), True
    return Overhead(value, None, None, *counts, "none"), False


def too_few(n_condition: int, n_baseline: int) -> str:
    """Which side has too few runs to be judged."""
    if n_condition == n_baseline:
        return f"{count_runs(n_condition)} each"
    if n_condition < MIN_RUNS:
        return count_runs(n_condition)
    return f"{count_runs(n_baseline)} of the baseline"


def count_runs(n: int) -> str:
    """`1 run`, `5 runs`."""
    return "1 run" if n == 1 else f"{n} runs"


def normal_limit(
    condition: Sequence[float], baseline: Sequence[float], confidence: float, expand: bool
) -> float:
    """How many standard errors the interval reaches to each side.

    Expanded: Student's quantile with Welch's degrees of freedom, times the factor by which the
    bootstrap's standard error is too small, since it divides by n where n − 1 is right.
    """
    from scipy.special import ndtri

    if not expand:
        return float(ndtri((1 + confidence) / 2))
    ours, base = MeanError.of(condition), MeanError.of(baseline)
    parts = [ours.variance, (ours.mean / base.mean) ** 2 * base.variance]
    return widened(parts, (ours.degrees, base.degrees), confidence)


def widened(
    parts: Sequence[float], degrees: Sequence[int], confidence: float = CONFIDENCE
) -> float:
    """Student's quantile times what the bootstrap's standard error of these parts is too small."""
    if math.fsum(parts) <= 0:  # no spread to be widened
        return student_quantile((1 + confidence) / 2, math.inf)
    seen = math.fsum(part * n / (n + 1) for part, n in zip(parts, degrees, strict=True))
    quantile = student_quantile((1 + confidence) / 2, welch_degrees(parts, degrees))
    return quantile * math.sqrt(math.fsum(parts) / seen)


def bootstrap_ratio(
    condition: Sequence[float], baseline: Sequence[float], z: float, seed: int
) -> Limits:
    """Limits of mean(condition) / mean(baseline) and the method: `BCa`, `percentile`, `none`."""
    import numpy as np

    above, below = np.asarray(condition, float), np.asarray(baseline, float)
    below_means = baseline_means(tuple(baseline), seed)
    if below_means.min() <= 0:
        return NO_LIMITS
    ratios = resampled_means(above, seed, 0) / below_means
    without = [left_out_means(above) / below.mean(), above.mean() / left_out_means(below)]
    return bca_limits(ratios, float(above.mean() / below.mean()), without, z)


def bca_limits(ratios: Floats, ratio: float, without: Sequence[Floats], z: float) -> Limits:
    """From resampled ratios, and those without each member (of each side) in turn."""
    import numpy as np

    levels, method = bca_levels(ratios, ratio, acceleration(without), z)
    low, high = np.quantile(ratios, levels)
    return float(low), float(high), method


def bca_levels(ratios: Floats, ratio: float, acceleration: float, z: float) -> tuple[Floats, str]:
    """The two levels at which resampled ratios bound the interval, and the method's name."""
    import numpy as np
    from scipy.special import ndtr, ndtri

    limits = np.array((-z, z))
    share = ((ratios < ratio).mean() + (ratios <= ratio).mean()) / 2
    if 0 < share < 1 and math.isfinite(acceleration):
        bias = ndtri(share)
        reach = 1 - acceleration * (bias + limits)
        if (reach > 0).all():
            return ndtr(bias + (bias + limits) / reach), "BCa"
    return ndtr(limits), "percentile"


def acceleration(without: Sequence[Floats]) -> float:
    """Efron's, from estimates without each member of each sample in turn; nan where there is none.

    Efron & Tibshirani (1993), "An Introduction to the Bootstrap", equation 14.15, summed over the
    samples as in Davison & Hinkley (1997), "Bootstrap Methods and their Application", part 5.3.
    """
    import numpy as np

    influences = [(len(e) - 1) * (e.mean() - e) / len(e) for e in without]
    # Relative to the largest: cubes of very large or small ones are no doubles.
    largest = max(float(np.abs(influence).max()) for influence in influences)
    if largest == 0:
        return math.nan
    together = np.concatenate(influences) / largest
    return float(np.sum(together**3) / 6 / np.sum(together**2) ** 1.5)


def left_out_means(values: Floats) -> Floats:
    """The mean without each value in turn."""
    mean = values.mean()
    without: Floats = mean - (values - mean) / (len(values) - 1)
    return without


@functools.lru_cache(maxsize=32)
def baseline_means(values: tuple[float, ...], seed: int) -> Floats:
    """Resampled once for all conditions that are compared with it."""
    import numpy as np

    return resampled_means(np.asarray(values, float), seed, 1)


def resampled_means(values: Floats, seed: int, role: int) -> Floats:
    """Means of RESAMPLES samples drawn with replacement; `role` keeps the two sides apart.

    How often each value is drawn does not depend on the values, so samples of one size share
    their draws: a report over hundreds of conditions draws once.
    """
    import numpy as np

    mean = values.mean()  # taken off first: exact beside a large common offset
    n = len(values)
    if n <= CACHED_VALUES:
        cached: Floats = mean + weights(n, seed, role) @ (values - mean)
        return cached
    generator = np.random.default_rng((seed, role, n))
    means = np.empty(RESAMPLES)
    step = max(CHUNK // n, 1)
    for start in range(0, RESAMPLES, step):
        part = means[start : start + step]
        draws = generator.integers(0, n, (len(part), n))
        part[:] = mean + (values - mean)[draws].mean(axis=1)
    return means


@functools.lru_cache(maxsize=8)
def weights(n: int, seed: int, role: int) -> Floats:
    """RESAMPLES x n shares with which each of n values is drawn."""
    import numpy as np

    generator = np.random.default_rng((seed, role, n))
    drawn: Floats = generator.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n
    return drawn


def verdict(
    result: Overhead,
    unit: str | None,
    better: str | None,
    metric: str | None = None,
    p: float | None = None,
) -> Verdict:
    """The overhead in words; `better` is `lower`, `higher` or None as in the database.

    `p`: of the test, corrected for all comparisons (stats_tests); a difference is told only when
    both the interval and the test show it. None: there is no test, the interval decides.
    """
    if result.value is None or result.low is None or result.high is None:
        return Verdict(Direction.UNKNOWN, f"cannot be judged: {result.reason}")
    low, high = result.low, result.high
    if high - low <= ROUNDING * abs(1 + result.value):  # every pair with the same ratio
        low = high = result.value
    counts = f"n = {result.n_condition} + {result.n_baseline}"
    if result.design is not None:
        counts += f", {result.design}"
    if low == high:  # no spread at all: one number and not a range
        counts = f"no spread seen, {counts}"
    if low <= 0 <= high:
        ends = "" if low == high else f" ({percent_range(low, high)} %)"
        return Verdict(Direction.NOT_SHOWN, f"not shown to differ{ends}, {counts}")
    if p is not None and p > 1 - CONFIDENCE:
        ends = f"({percent_range(low, high)} %; among all comparisons p = {p:.2g})"
        return Verdict(Direction.NOT_SHOWN, f"not shown to differ {ends}, {counts}")
    word, direction = comparison(result.value > 0, unit, better, metric)
    if high < 0:
        low, high = -high, -low
    amount = f"{percent(abs(result.value), low, high)} %"
    ends = "" if low == high else f" ({percent_range(low, high)})"
    return Verdict(direction, f"{word} by {amount}{ends}, {counts}")


def comparison(
    more: bool, unit: str | None, better: str | None, metric: str | None
) -> tuple[str, Direction]:
    """`slower` and WORSE for more seconds, `lower` and WORSE for fewer Gflop/s …"""
    if unit == "s" and better == "lower" and metric not in NO_DURATION:
        word = "slower" if more else "faster"
    else:
        word = "higher" if more else "lower"
    if better is None:
        return word, Direction.DIFFERENT
    return word, Direction.WORSE if more == (better == "lower") else Direction.BETTER


MOST_DECIMALS = 12
HUGE_PERCENT = 1e6  # from here on as 1.33e+09: nobody counts digits


def percent_decimals(low: float, high: float) -> int:
    """As many as make half the width at least 5 in the last place, and no end 0 that is not."""
    half, nearest = (high - low) / 2 * 100, min(abs(low), abs(high)) * 100
    if half > 0:
        places = max(digits(half / 5), 0)
        shown = digits(nearest) if low * high > 0 else 0
    else:
        places, shown = 1, digits(nearest) + 2 if nearest else 0
    return min(max(places, shown), MOST_DECIMALS)


def digits(number: float) -> int:
    """Decimals that show a number's first digit; below 0 for a large one."""
    return math.ceil(-math.log10(number))


def percent(value: float, low: float, high: float) -> str:
    """`12.1` from 0.121, to the decimals that the interval allows, with a true minus sign."""
    if abs(value) * 100 >= HUGE_PERCENT:
        return f"{value * 100:.3g}".replace("-", "−")
    text = f"{value * 100:.{percent_decimals(low, high)}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def percent_range(low: float, high: float) -> str:
    """`11.3 … 12.9`."""
    return f"{percent(low, low, high)} … {percent(high, low, high)}"
