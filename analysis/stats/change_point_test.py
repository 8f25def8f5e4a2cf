"""The statistic that finds a step in a series of sessions, and its threshold.

At each night the last 3, 4, 5, … sessions are compared with the sessions before them, by Student's
statistic with the pooled variance: the changepoint model of Hawkins, Qiu & Kang (2003), "The
Changepoint Model for Statistical Process Control", Journal of Quality Technology 35(4), with window
lengths on a geometric grid (Lai 1995, "Sequential Changepoint Detection in Quality Control and
Dynamical Systems", JRSS B 57(4)).

Neighboring sessions may resemble each other (AR(1) noise). Few sessions estimate that correlation
badly, but they show well how far neighbors differ. The levels are fitted to these differences by
generalized least squares, so that a step that is large compared with them is found whatever the
correlation is. A session is compared with φ times the one before it: y(i) − φ y(i − 1). These
innovations are independent, so their variance has the full degrees of freedom whatever φ is. The
larger φ is, the more the first session after a step counts. Prais & Winsten (1954), "Trend
Estimators and Serial Correlation", Cowles Commission Discussion Paper 383; for a step at any place:
Robbins, Gallagher, Lund & Aue (2011), "Mean Shift Testing in Correlated Data", Journal of Time
Series Analysis 32(5).

Few sessions cannot determine φ: 8 independent sessions may show 0.9 by chance. The variance of a
session, inflated by φ, would then have one degree of freedom, and no step would be significant.

The threshold is calibrated by simulated nights, so that it allows for a test every night.
bench/history.py repeats the simulation. Arrays have one number for each pair of a night and a
length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats.session_means import Cleaned, Sessions

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Numbers = NDArray[np.floating] | NDArray[np.int64] | float


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence of whitened sessions on their level; `score` / `information` is its estimate."""

    information: Floats  # 1 / variance of the level, in units of the variance of an innovation
    score: Floats
    squares: Floats  # of the innovations, around 0

    def __add__(self, other: Evidence) -> Evidence:
        return Evidence(
            self.information + other.information,
            self.score + other.score,
            self.squares + other.squares,
        )

    @classmethod
    def of_sums(cls, weight: Floats, total: Floats, squares: Floats, phi: Floats) -> Evidence:
        """Make it from sums over sessions: weights, weighted innovations and squares."""
        return cls((1 - phi) ** 2 * weight, (1 - phi) * total, squares)

    @classmethod
    def of_one(cls, weight: Floats, innovation: Floats, phi: Floats) -> Evidence:
        """Make it from one session after another of the same level."""
        return cls.of_sums(weight, weight * innovation, weight * innovation**2, phi)

    @classmethod
    def of_first(cls, weight: Floats, value: Floats, phi: Floats) -> Evidence:
        """Make it from a session without a predecessor, which has the variance of the series."""
        information = weight * (1 - phi**2)
        return cls(information, information * value, information * value**2)


@dataclass(frozen=True, slots=True)
class TwoLevels:
    """The step between two levels, and the residuals."""

    step: Floats
    share_before: Floats  # weight of the variance of an innovation before it
    share_after: Floats
    rest: Floats  # sum of squares of the innovations


def fit_two_levels(
    before: Evidence, first: tuple[Floats, Floats], after: Evidence, phi: Floats
) -> TwoLevels:
    """Fit two levels by least squares.

    `first` is the weight and the innovation of the first session after the step. Its predecessor
    has the other level, so it shows its own level − φ times the other.
    """
    import numpy as np

    weight, innovation = first
    # The normal equations: [[p, -q], [-q, r]] · levels = scores.
    p, q, r = before.information + phi**2 * weight, phi * weight, weight + after.information
    score_before = before.score - q * innovation
    score_after = after.score + weight * innovation
    determinant = p * r - q * q
    level_before = (r * score_before + q * score_after) / determinant
    level_after = (q * score_before + p * score_after) / determinant
    squares = before.squares + weight * innovation**2 + after.squares
    rest = squares - level_before * score_before - level_after * score_after
    of_before, of_after = (q - r) / determinant, (p - q) / determinant
    return TwoLevels(
        level_after - level_before,
        of_before**2 * before.information,
        of_after**2 * after.information + weight * (of_after - phi * of_before) ** 2,
        np.maximum(rest, 0.0),
    )


def innovation_squares(
    squares: Floats | float, products: Floats | float, phi: Floats | float
) -> Floats | float:
    """Return the sum of squares of innovations from that of residuals and of products of neighbors.

    Both ends count as inner sessions, which is too large by at most the 2 φ² / n-th part.
    """
    return (1 + phi**2) * squares - 2 * phi * products


MIN_AFTER = 3  # sessions; one or two may be outliers
MIN_BEFORE = 5
LONG = 8  # sessions, from which on their own variance is precise enough
MOST_CORRELATED = 0.9
CAUTION = 3.0  # calibrated by simulation, as FALSE_ALARMS is
BORROWED = 30  # upper limit of the degrees of freedom from the noise of earlier segments
YEAR = 365  # sessions
# False alarms in a year of nightly tests of all series together, if nothing changes. White noise
# has half of it, noise with a correlation of 0.3 up to twice, of 0.6, and bimodal noise, up to 4
# times as many.
FALSE_ALARMS = 0.25


@dataclass(frozen=True, slots=True)
class Noise:
    """Sums from earlier segments for the variance of the next segment."""

    squares: float = 0.0
    degrees: float = 0.0
    products: float = 0.0  # of neighboring residuals

    def joined(self, squares: float, degrees: float, products: float) -> Noise:
        """Add a segment, scaled so that the sum counts for at most BORROWED degrees of freedom."""
        total = self.degrees + degrees
        scale = min(1.0, BORROWED / total) if total > 0 else 1.0
        return Noise(
            scale * (self.squares + squares), scale * total, scale * (self.products + products)
        )


@dataclass(frozen=True, slots=True)
class Sums:
    """Cumulative sums over sessions, from which the mean and variance of every window follow."""

    weight: Floats
    first: Floats
    second: Floats
    lagged: Floats  # products of neighbors
    plain: Floats
    past: Floats  # as `first`, of the preceding session
    past_second: Floats
    past_product: Floats  # of a session and the preceding one
    values: Floats
    newest: Floats
    before_newest: Floats
    weights: Floats
    coarse: NDArray[np.bool_]
    rounding: float

    @classmethod
    def of(cls, found: Sessions, cleaned: Cleaned) -> Sums:
        """Make the sums, each starting with 0: sums[b] - sums[a] is that of sessions a … b - 1."""
        import numpy as np

        def cumulated(values: Floats) -> Floats:
            return np.concatenate([[0.0], np.cumsum(values)])

        w, y = found.weight, cleaned.y
        past = np.concatenate([[0.0], y[:-1]])
        return cls(
            cumulated(w), cumulated(w * y), cumulated(w * y * y), cumulated(y[:-1] * y[1:]),
            cumulated(y), cumulated(w * past), cumulated(w * past * past), cumulated(w * y * past),
            y, cleaned.newest, cleaned.second, w, cleaned.coarse, found.rounding,
        )  # fmt: skip

    def statistics(
        self, begin: int, nights: NDArray[np.int64], lengths: NDArray[np.int64], noise: Noise
    ) -> Floats:
        """Return |z| of a step for each night (rows) and number of sessions after it (columns).

        It is 0 for too few sessions.
        """
        import numpy as np

        t, after = nights[:, None], np.minimum(lengths[None, :], nights[:, None] - begin)
        cut = t + 1 - after
        before = cut - begin
        w_before = self.weight[cut] - self.weight[begin]
        mean_before = (self.first[cut] - self.first[begin]) / w_before
        squares, products = self.around(begin, cut, mean_before, w_before)
        phi = correlation(
            products + noise.products, squares + noise.squares, before + noise.degrees
        )
        joint = self.values[cut] - phi * self.values[cut - 1]
        fit = fit_two_levels(
            self.evidence_before(begin, cut, phi),
            (self.weights[cut], joint),
            self.evidence_after(cut, t, phi),
            phi,
        )
        degrees = before + after - 2 + noise.degrees
        earlier = innovation_squares(noise.squares, noise.products, phi)
        floor = self.rounding**2
        pooled = np.maximum((fit.rest + earlier) / degrees, floor)
        own = self.own_variance(cut, t, phi) * (1 - phi**2)
        error = pooled * fit.share_before + np.maximum(pooled, own) * fit.share_after
        step = fit.step**2
        t_squared = np.where(step > floor, step / np.maximum(error, 1e-300), 0.0)
        z = normal_equivalent(t_squared, degrees)
        z = np.where(self.coarse[t], np.minimum(z, permutation_limit(before, after)), z)
        few = MIN_BEFORE if noise.degrees == 0 else MIN_AFTER
        enough = (before >= few) & (lengths[None, :] <= t - begin)
        result: Floats = np.where(enough, z, 0.0)
        return result

    def evidence_before(self, begin: int, cut: NDArray[np.int64], phi: Floats) -> Evidence:
        """Return the evidence of sessions begin … cut - 1."""
        first = Evidence.of_first(self.weights[begin], self.values[begin], phi)
        return first + self.evidence(begin + 1, cut, phi)

    def evidence_after(
        self, cut: NDArray[np.int64], night: NDArray[np.int64], phi: Floats
    ) -> Evidence:
        """Return the evidence of sessions cut + 1 … night; the last two as known then."""
        newest, second, w = self.newest[night], self.before_newest[night], self.weights
        return (
            self.evidence(cut + 1, night - 1, phi)
            + Evidence.of_one(w[night - 1], second - phi * self.values[night - 2], phi)
            + Evidence.of_one(w[night], newest - phi * second, phi)
        )

    def evidence(
        self, begin: int | NDArray[np.int64], end: NDArray[np.int64], phi: Floats
    ) -> Evidence:
        """Return the evidence of sessions begin … end - 1, each after its predecessor."""

        def between(sums: Floats) -> Floats:
            result: Floats = sums[end] - sums[begin]
            return result

        return Evidence.of_sums(
            between(self.weight),
            between(self.first) - phi * between(self.past),
            between(self.second)
            - 2 * phi * between(self.past_product)
            + phi**2 * between(self.past_second),
            phi,
        )

    def own_variance(self, cut: NDArray[np.int64], night: NDArray[np.int64], phi: Floats) -> Floats:
        """Return the variance of sessions cut … night around their mean; half of it for few."""
        import numpy as np

        after, w = night + 1 - cut, self.weights
        newest, second = self.newest[night], self.before_newest[night]
        weight = self.weight[night + 1] - self.weight[cut]
        total = self.first[night - 1] - self.first[cut] + w[night] * newest + w[night - 1] * second
        squares = (
            self.second[night - 1] - self.second[cut]
            + w[night] * newest**2 + w[night - 1] * second**2 - total**2 / weight
        )  # fmt: skip
        variance = squares / np.maximum(after - inflation(after, phi), 1.0)
        result: Floats = np.where(after < LONG, variance / 2, variance)
        return result

    def around(
        self, begin: int, end: NDArray[np.int64], mean: Floats, weight: Floats
    ) -> tuple[Floats, Floats]:
        """Return sums of squares and of products of neighbors of begin … end - 1 around `mean`."""
        import numpy as np

        squares = self.second[end] - self.second[begin] - weight * mean**2
        last = np.maximum(end - 1, begin)
        ends = self.plain[end] - self.plain[begin + 1] + self.plain[last] - self.plain[begin]
        products = (
            self.lagged[last] - self.lagged[begin] - mean * ends + (end - begin - 1) * mean**2
        )
        return np.maximum(squares, 0.0), products

    def residuals(self, begin: int, end: int) -> tuple[float, float, float]:
        """Return (sum of squares, degrees of freedom, products of neighbors) of begin … end - 1."""
        import numpy as np

        ends = np.array([end])
        weight = self.weight[ends] - self.weight[begin]
        mean = (self.first[ends] - self.first[begin]) / weight
        squares, products = self.around(begin, ends, mean, weight)
        return float(squares[0]), float(end - begin - 1), float(products[0])


def window_lengths(n: int) -> NDArray[np.int64]:
    """Return the window lengths 3, 4, 5, …, each a fifth longer, up to n or just above."""
    import numpy as np

    lengths = [MIN_AFTER]
    while lengths[-1] < n:
        lengths.append(max(lengths[-1] + 1, round(lengths[-1] * 1.2)))
    return np.array(lengths)


def correlation(products: Numbers, squares: Numbers, n: Numbers, segments: int = 1) -> Floats:
    """Return the correlation of neighboring sessions, 0 … MOST_CORRELATED, from n sessions.

    Corrected for its bias: Kendall (1954), "Note on Bias in the Estimation of Autocorrelation",
    Biometrika 41(3/4). CAUTION times its square / √n is added, because an underestimate of a strong
    correlation raises false alarms and costs more than an overestimate. Each of `segments` has its
    own mean, and with it the bias of its own sessions.
    """
    import numpy as np

    # Rounding may leave products where there are no squares.
    raw = np.clip(products / np.maximum(squares, 1e-300), -1.0, 1.0)
    corrected = np.maximum(raw + (1 + 3 * raw) * segments / n, 0.0)
    cautious = np.minimum(corrected + CAUTION * corrected**2 / np.sqrt(n), MOST_CORRELATED)
    return np.asarray(cautious, dtype=np.float64)


def inflation(n: Numbers, phi: Numbers) -> Floats:
    """Return the variance of a mean of n sessions with AR(1) noise, times n / session variance.

    Bayley & Hammersley (1946), "The 'Effective' Number of Independent Observations in an
    Autocorrelated Time Series", Supplement to the JRSS 8(2).
    """
    import numpy as np

    lost = 2 * phi * (1 - phi**n) / (n * (1 - phi) ** 2)
    return np.asarray((1 + phi) / (1 - phi) - lost, dtype=np.float64)


def normal_equivalent(t_squared: Numbers, degrees: Numbers) -> Floats:
    """Return the standard normal deviate that is as improbable as Student's t.

    Wallace (1959), "Bounds on Normal Approximations to Student's and the Chi-Square Distributions",
    Annals of Mathematical Statistics 30(4). It never overflows. For large t it is too small rather
    than too large, by at most 0.1 for 2 degrees of freedom and 0.01 for 50.
    """
    import numpy as np

    factor = (8 * degrees + 1) / (8 * degrees + 3)
    z = factor * np.sqrt(degrees * np.log1p(t_squared / degrees))
    return np.asarray(z, dtype=np.float64)


def permutation_limit(before: NDArray[np.int64], after: NDArray[np.int64]) -> Floats:
    """Return the largest z that as many sessions can show if only their order is known.

    Without a change all orders are equally likely, and two of them separate the values.
    """
    import numpy as np
    from scipy.special import gammaln, ndtri

    orders = gammaln(before + after + 1.0) - gammaln(before + 1.0) - gammaln(after + 1.0)
    result: Floats = -ndtri(np.exp(-orders))
    return result


def normal_tail(z: float) -> float:
    """Return the probability that a standard normal deviate is above z."""
    return 0.5 * math.erfc(z / math.sqrt(2))


def false_alarm_rate(z: float) -> float:
    """Return the probability per night that a series without a change reports a step of at least z.

    The form z² (1 − Φ(z)) is that of the largest of many neighboring statistics (Siegmund &
    Venkatraman 1995, "Using the Generalized Likelihood Ratio Statistic for Sequential Detection of
    a Change-Point", Annals of Statistics 23(1)). Its factor, 1, is on the safe side of the
    simulated 0.5 for white noise.
    """
    return min(1.0, z * z * normal_tail(z))


def threshold(series: int) -> float:
    """Return the z that `series` unchanged series exceed FALSE_ALARMS times in a YEAR of nights."""
    allowed = FALSE_ALARMS / YEAR / series
    low, high = 1.0, 38.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if false_alarm_rate(middle) > allowed else (low, middle)
    return high
