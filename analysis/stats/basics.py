"""Means, spreads, intervals, outliers and proportions of sequences of finite floats.

Each value belongs to one run. Repeated measurements inside a run are averaged before.

The mean of rates (work per time) is work divided by mean time: their harmonic mean. Hoefler & Belli
(2015), "Scientific Benchmarking of Parallel Computing Systems", SC '15, rule 3: costs have an
arithmetic mean, rates a harmonic one. A rate is therefore averaged and compared as its cost, the
time for one unit of work, so that seconds and throughput of the same runs agree.
"""

from __future__ import annotations

import functools
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

CONFIDENCE = 0.95

# Iglewicz & Hoaglin (1993), "How to Detect and Handle Outliers", ASQC, chapter 3.
OUTLIER_LIMIT = 3.5
MAD_TO_SD = 0.6745  # the normal distribution's third quartile: MAD = 0.6745 sd
MEAN_DEVIATION_TO_SD = 1.253314  # sqrt(pi / 2): mean absolute deviation = sd / 1.2533
MIN_FOR_LOG = 3
MIN_FOR_OUTLIERS = 5  # with fewer values an outlier cannot be identified


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean with its confidence interval; low and high are None for fewer than 2 values."""

    mean: float
    low: float | None
    high: float | None
    n: int

    @property
    def half_width(self) -> float | None:
        """Half of the interval's width, or None if the interval has no ends."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its 95 % interval; low and high are None if no interval exists."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Standard deviation and median absolute deviation; None for fewer than 2 values."""

    sd: float | None
    mad: float | None


@dataclass(frozen=True, slots=True)
class Outliers:
    """Indices of the outlying values; `note` explains a special case."""

    indices: tuple[int, ...]
    note: str | None = None


def check_values(values: Sequence[float]) -> list[float]:
    """Return the values as a list of floats.

    Raises ValueError if there are no values, and for nan and infinity.
    """
    numbers = [float(value) for value in values]
    if not numbers:
        raise ValueError("no values: a mean or median of nothing does not exist")
    if not all(map(math.isfinite, numbers)):
        raise ValueError("values must be finite; leave out what could not be measured, and say so")
    return numbers


def variance(values: Sequence[float], mean: float) -> float:
    """Return the sample variance for n >= 2, accurate even with a large common offset.

    Corrected two-pass algorithm: Chan, Golub & LeVeque (1983), "Algorithms for Computing the Sample
    Variance", The American Statistician 37(3), equation 1.7.
    """
    deviations = [value - mean for value in values]
    squares = math.fsum(d * d for d in deviations)
    return max(squares - math.fsum(deviations) ** 2 / len(values), 0.0) / (len(values) - 1)


def mean_interval(
    values: Sequence[float], confidence: float = CONFIDENCE, never_negative: bool = False
) -> Interval:
    """Return the mean and Student's confidence interval, mean ± t(n − 1) · sd / √n.

    Student (1908), "The Probable Error of a Mean", Biometrika 6(1). For `never_negative` see
    compute_ends(). For one value low and high are None. Raises ValueError if there are no
    values.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, not {confidence}")
    numbers = check_values(values)
    n = len(numbers)
    mean = statistics.fmean(numbers)
    if n < 2:
        return Interval(mean, None, None, n)
    half = student_quantile((1 + confidence) / 2, n - 1) * math.sqrt(variance(numbers, mean) / n)
    return Interval(mean, *compute_ends(mean, half, n, never_negative), n)


def compute_ends(mean: float, half: float, n: int, never_negative: bool) -> tuple[float, float]:
    """Return the ends of an interval that extends `half` to both sides of a mean of n values.

    For a quantity that cannot be negative the lower end is cut at 0. Its upper end is that of the
    same interval on a logarithmic scale, which extends farther: run times have a tail to the slow
    side, where Student's interval covers too little (bench/coverage.py: log-normal). For 2 values
    the logarithmic scale is not used, since its end could be 300,000 times the mean.
    """
    low, high = mean - half, mean + half
    if not never_negative or mean <= 0:
        return low, high
    return max(low, 0.0), mean * math.exp(half / mean) if n >= MIN_FOR_LOG else high


@functools.lru_cache(maxsize=1024)  # a report needs the same quantiles a thousand times
def student_quantile(probability: float, degrees: float) -> float:
    """Return the quantile of Student's t; degrees of freedom may be fractional (Welch)."""
    # Importing scipy.special takes a tenth of the time that scipy.stats takes.
    from scipy.special import stdtrit

    return float(stdtrit(degrees, probability))


def median(values: Sequence[float]) -> float:
    """Return the median; for an even number of values, the mean of the middle two."""
    return statistics.median(check_values(values))


def spread(values: Sequence[float]) -> Spread:
    """Return the sample standard deviation (n − 1) and the unscaled median absolute deviation."""
    numbers = check_values(values)
    if len(numbers) < 2:
        return Spread(None, None)
    sd = math.sqrt(variance(numbers, statistics.fmean(numbers)))
    return Spread(sd, median_deviation(numbers))


def median_deviation(numbers: Sequence[float]) -> float:
    """Return the median of the absolute deviations from the median."""
    middle = statistics.median(numbers)
    return statistics.median([abs(number - middle) for number in numbers])


def ranks(values: Sequence[float]) -> list[float]:
    """Return ascending ranks from 0; equal values share their mean rank."""
    places: dict[float, list[int]] = {}
    for rank, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(rank)
    return [(places[value][0] + places[value][-1]) / 2 for value in values]


def find_outliers(values: Sequence[float], limit: float = OUTLIER_LIMIT) -> Outliers:
    """Find values whose modified z-score |0.6745 (x − median) / MAD| is above `limit`.

    Iglewicz & Hoaglin (1993). Outliers are to be marked, never dropped. If more than half of the
    values are equal, the MAD is 0; then the mean absolute deviation replaces it, scaled by 1.2533
    to the same meaning (IBM SPSS, "Modified z score"), and `note` reports it.
    """
    numbers = check_values(values)
    if len(numbers) < MIN_FOR_OUTLIERS:
        return Outliers((), f"not looked for: fewer than {MIN_FOR_OUTLIERS} values")
    middle = statistics.median(numbers)
    scale, note = median_deviation(numbers) / MAD_TO_SD, None
    if scale == 0:
        scale = MEAN_DEVIATION_TO_SD * statistics.fmean(abs(x - middle) for x in numbers)
        note = "more than half of the values are equal: judged by the mean absolute deviation"
    if scale == 0:
        return Outliers((), "all values are equal")
    marked = (i for i, x in enumerate(numbers) if abs(x - middle) > limit * scale)
    return Outliers(tuple(marked), note)


def welch_degrees(parts: Sequence[float], degrees: Sequence[float]) -> float:
    """Return the degrees of freedom of a sum of variances (`parts`), which must be above 0.

    `degrees` has the degrees of freedom of each variance. Satterthwaite (1946), "An Approximate
    Distribution of Estimates of Variance Components", Biometrics Bulletin 2(6); Welch (1947), "The
    Generalization of 'Student's' Problem when Several Different Population Variances are Involved",
    Biometrika 34. The formula uses shares of the sum, because squares of very large or very small
    variances overflow or underflow.
    """
    total = math.fsum(parts)
    return 1 / math.fsum(
        (variance / total) ** 2 / n for variance, n in zip(parts, degrees, strict=True)
    )


def fieller(
    top: float, bottom: float, covariance: tuple[float, float, float], quantile: float
) -> tuple[float, float] | None:
    """Return (low, high) of all r for which top − r · bottom may be 0; None if unbounded.

    `covariance` holds the variance of top, the covariance, and the variance of bottom. Fieller
    (1954), "Some Problems in Interval Estimation", JRSS B 16(2). The equation is solved in terms of
    top / bottom, since squares of the estimates would lose a small spread to rounding.
    """
    ratio = top / bottom
    of_top, of_both, of_bottom = ((quantile / bottom) ** 2 * term for term in covariance)
    if of_bottom >= 1:  # bottom itself may be 0
        return None
    square = of_top - 2 * ratio * of_both + ratio**2 * of_bottom + of_both**2 - of_bottom * of_top
    root = math.sqrt(max(square, 0.0))
    middle, scale = ratio - of_both, 1 - of_bottom
    return (middle - root) / scale, (middle + root) / scale


@dataclass(frozen=True, slots=True)
class Share:
    """A proportion of n trials with its interval, as fractions of 1."""

    value: float
    low: float
    high: float
    n: int


def wilson(hits: float, n: int, confidence: float = CONFIDENCE) -> Share:
    """Return a binomial proportion with Wilson's score interval, which also holds near 0.

    Wilson (1927), "Probable Inference, the Law of Succession, and Statistical Inference", JASA
    22(158). `hits` may be the product of a share and its n. Raises ValueError unless 0 <= hits <= n
    and n > 0.
    """
    if not 0 <= hits <= n or n < 1:
        raise ValueError(f"expected 0 <= hits <= n and n > 0, found {hits} of {n}")
    from scipy.special import ndtri

    z = float(ndtri((1 + confidence) / 2))
    share, factor = hits / n, 1 + z * z / n
    middle = (share + z * z / (2 * n)) / factor
    half = z / factor * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Share(share, max(middle - half, 0.0), min(middle + half, 1.0), n)


def unseen_share(n: int, confidence: float = CONFIDENCE) -> float:
    """Return the largest share of runs that an event may affect although it affected none of n.

    Clopper & Pearson (1934), "The Use of Confidence or Fiducial Limits Illustrated in the Case of
    the Binomial", Biometrika 26(4), for 0 of n: about 3 / n. The interval of a mean of n runs does
    not include such an event.
    """
    return 1 - math.exp(math.log1p(-confidence) / n)


def is_rate(unit: str | None, better: str | None) -> bool:
    """Return whether a unit is one of work per second, of which more is better."""
    return better == "higher" and (unit or "").endswith(("/s", "_per_s"))


def to_costs(values: Sequence[float]) -> tuple[float, ...]:
    """Return the seconds for one unit of work; the values must be above 0."""
    return tuple(1 / value for value in values)


def mean_by_kind(values: Sequence[float], rate: bool) -> float:
    """Return the harmonic mean of rates above 0, and the arithmetic mean of all other values."""
    if rate and min(values) > 0:
        return statistics.harmonic_mean(values)
    return statistics.fmean(values)


def rate_interval(cost: Interval) -> Interval:
    """Return the interval of a rate from that of its cost; without ends if that contains 0."""
    if cost.low is None or cost.high is None or cost.low <= 0:
        return Interval(1 / cost.mean, None, None, cost.n)
    return Interval(1 / cost.mean, 1 / cost.high, 1 / cost.low, cost.n)
