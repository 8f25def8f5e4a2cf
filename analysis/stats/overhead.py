"""Overhead of a condition compared with the baseline, with its interval."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    check_values,
    fieller,
    student_quantile,
    variance,
    welch_degrees,
)
from steelyard.jobscripts.plurals import counted

MIN_RUNS = 3  # of 2 + 2 runs an interval would reach over 13 standard errors to each side
TOO_CLOSE = "the baseline is too close to 0"

EXACT = "exact"  # the method of compute_exact_overhead()

ROUNDING = 1e-12  # of a ratio: a narrower interval is made by rounding


@dataclass(frozen=True, slots=True)
class Overhead:
    """(condition − baseline) / baseline of two means; 0.1 is 10 % more.

    `value` is None if the ratio does not exist; `low` and `high` are None if no interval exists;
    `reason` then states why. `method` is `Fieller`, `exact` (counts that do not vary) or `none`.
    """

    value: float | None
    low: float | None
    high: float | None
    n_condition: int
    n_baseline: int
    method: str
    reason: str | None = None
    design: str | None = None  # the independent units, in words; None: runs (see grouped_runs.py)


def compute_overhead(
    condition: Sequence[float], baseline: Sequence[float], confidence: float = CONFIDENCE
) -> Overhead:
    """Return the overhead of two independent samples, with Fieller's interval of their ratio.

    The bootstrap is not used: with few delayed runs, or heavy tails, BCa covers 81 to 93 % instead
    of 95 (bench/coverage.py, its peer column).
    """
    numbers, base = check_values(condition), check_values(baseline)
    plain, is_final = without_interval(numbers, base)
    if is_final:
        return plain
    return compute_fieller_overhead(plain, MeanError.of(numbers), MeanError.of(base), confidence)


def with_interval(plain: Overhead, ends: tuple[float, float] | None) -> Overhead:
    """Return the overhead with these limits of its ratio."""
    if ends is None:
        return replace(plain, low=None, high=None, method="none", reason=TOO_CLOSE)
    return replace(plain, low=ends[0] - 1, high=ends[1] - 1, method="Fieller")


@dataclass(frozen=True, slots=True)
class MeanError:
    """A mean, its variance, and the degrees of freedom of the variance."""

    mean: float
    variance: float
    degrees: int

    @classmethod
    def of(cls, values: Sequence[float]) -> MeanError:
        """Compute it from independent values."""
        mean = statistics.fmean(values)
        return cls(mean, variance(values, mean) / len(values), len(values) - 1)


def compute_fieller_overhead(
    plain: Overhead, ours: MeanError, base: MeanError, confidence: float = CONFIDENCE
) -> Overhead:
    """Return the overhead with Fieller's interval, by Welch's degrees of freedom at the ratio."""
    parts = [ours.variance, (ours.mean / base.mean) ** 2 * base.variance]
    if math.fsum(parts) > 0:
        degrees = welch_degrees(parts, (ours.degrees, base.degrees))
    else:  # all values are 0, or all jobs of a side have the same mean: only the baseline can vary
        degrees = float(base.degrees)
    t = student_quantile((1 + confidence) / 2, degrees)
    return with_interval(
        plain, fieller(ours.mean, base.mean, (ours.variance, 0.0, base.variance), t)
    )


def without_interval(numbers: Sequence[float], base: Sequence[float]) -> tuple[Overhead, bool]:
    """Return the overhead without an interval, and whether none can follow.

    None can follow with too few runs, a mean of 0 or no spread.
    """
    mean, base_mean = statistics.fmean(numbers), statistics.fmean(base)
    counts = len(numbers), len(base)
    if base_mean <= 0:
        reason = "the baseline's mean is not above 0"
        return Overhead(None, None, None, *counts, "none", reason), True
    value = (mean - base_mean) / base_mean
    if min(counts) < MIN_RUNS:
        return Overhead(value, None, None, *counts, "none", find_too_few_reason(*counts)), True
    if min(numbers) == max(numbers) and min(base) == max(base):
        return Overhead(
            None, None, None, *counts, "none", find_coarse_reason(numbers[0], base[0])
        ), True
    return Overhead(value, None, None, *counts, "none"), False


def find_too_few_reason(n_condition: int, n_baseline: int) -> str:
    """Return which side has too few runs to be judged."""
    if n_condition == n_baseline:
        return f"{counted(n_condition, 'run')} each"
    if n_condition < MIN_RUNS:
        return counted(n_condition, "run")
    return f"{counted(n_baseline, 'run')} of the baseline"


# --- values without a spread -----------------------------------------------------------------------

PRINTED_DIGITS = 9  # a number with more digits is a quotient and was not printed


def find_resolution(values: Sequence[float]) -> Decimal | None:
    """Return the unit of the last decimal of any value; None if the values were not printed."""
    finest = Decimal(1)
    for value in values:
        number = Decimal(repr(float(value))).normalize()
        _, digits, exponent = number.as_tuple()
        if len(digits) > PRINTED_DIGITS or not isinstance(exponent, int):
            return None
        finest = min(finest, Decimal(1).scaleb(exponent))
    return finest


def find_coarse_reason(condition: float, baseline: float) -> str:
    """Return why no test can distinguish two sides that each have one value in all runs."""
    step = find_resolution((condition, baseline))
    known = "not known" if step is None else f"{step:f}"
    ours, theirs = (f"{value:.{PRINTED_DIGITS}g}" for value in (condition, baseline))
    return (
        f"coarse: all runs print the same value ({ours}, of the baseline {theirs}); "
        f"the resolution is {known}, and without a spread there is no test"
    )


# Equal numbers in all runs have two causes. A count (bytes of a file, messages, iterations) is
# deterministic: the next run has the same count. A clock that prints 0.01 s hides any variation
# below its step. The unit distinguishes them, never the values: only whole numbers of a counted
# unit are exact. A value with another unit, or none, may be rounded.
UNITS = frozenset((
    "B", "bytes", "bit", "bits", "calls", "count", "events", "faults", "files", "iterations",
    "messages", "operations", "packets", "processes", "segments", "steps",
))  # fmt: skip
SAMPLED = "memory"  # sampled in pages: a peak between two readings is missed
UNNAMED = (None, "", "1")


def is_counted(metric: str, unit: str | None, values: Sequence[float]) -> bool:
    """Return whether each value is a whole number of a counted unit."""
    return unit in UNITS and SAMPLED not in metric and are_integers(values)


def can_be_counted(unit: str | None, values: Sequence[float]) -> bool:
    """Return whether the values could be counts if they had a counted unit."""
    return unit in UNNAMED and are_integers(values)


def are_integers(values: Sequence[float]) -> bool:
    return all(float(value).is_integer() for value in values)


def compute_exact_overhead(
    condition: Sequence[float], baseline: Sequence[float]
) -> Overhead | None:
    """Return the exact ratio of two counts, each the same in all of its runs.

    Returns None if a count varies or has too few runs to show that it does not, and if the counts
    differ and the baseline is not above 0.
    """
    counts = len(condition), len(baseline)
    if min(counts) < MIN_RUNS or len(set(condition)) > 1 or len(set(baseline)) > 1:
        return None
    if condition[0] == baseline[0]:
        return Overhead(0.0, 0.0, 0.0, *counts, EXACT)
    if baseline[0] <= 0:
        return None
    value = (condition[0] - baseline[0]) / baseline[0]
    return Overhead(value, value, value, *counts, EXACT)


def rate_overhead(plain: Overhead, inverse: Overhead) -> Overhead:
    """Return `plain` with the numbers of `inverse`.

    `inverse` compares the baseline's costs with the condition's, which is the ratio of the
    rates.
    """
    if plain.value is None or inverse.low is None:
        value = None if plain.value is None else inverse.value
        reason = plain.reason or "the condition's rates differ too widely"
        return replace(plain, value=value, low=None, high=None, method="none", reason=reason)
    return replace(
        plain,
        value=inverse.value,
        low=inverse.low,
        high=inverse.high,
        method=inverse.method,
        reason=None,
    )
