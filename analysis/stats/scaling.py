"""Scaling of a figure: speed-up, efficiency, serial fractions, the best scale, and fitted laws.

A relative scale q is a scale divided by the reference, the smallest scale with values: with 2 and 8
nodes the reference is 2 and q of 8 nodes is 4. A speed-up is the reference's mean time for the same
work divided by the mean time at q: a ratio of means, with the interval of an overhead. In weak
scaling the work grows with q, so the speed-up is the scaled one (Gustafson 1988).

Results are not cut to what a law allows: an efficiency above 1 and a serial fraction below 0 are
results (superlinear scaling).

Three laws are fitted to mean times:

    Amdahl      S = q / (1 + σ (q − 1))                 the rest of the work takes 1/q of its time
    USL         S = q / (1 + σ (q − 1) + κ q (q − 1))   κ: what each pair of processors adds
    Gustafson   S = q − σ (q − 1)                       the work grows with q

Amdahl (1967), "Validity of the Single Processor Approach to Achieving Large Scale Computing
Capabilities", AFIPS 30; Gunther (1993), "A Simple Capacity Model of Massively Parallel Transaction
Systems", CMG, and (2007), "Guerrilla Capacity Planning", chapter 4; Gustafson (1988),
Communications of the ACM 31(5).

With times for the same work the first two are linear (T = a/q + b (q − 1)/q + c (q − 1), σ = b/a,
κ = c/a); so is the third with 1/T. They are fitted by least squares, weighted for one relative
spread at all scales. Intervals do not use that spread: each scale has its own, or blocks are the
sampling units if they hold all scales. A law that the means contradict is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    Estimate,
    fieller,
    student_quantile,
    welch_degrees,
)
from steelyard.analysis.stats.grouped_runs import Groups, mean, residuals
from steelyard.analysis.stats.overhead import MIN_RUNS, ROUNDING, Overhead
from steelyard.jobscripts.plurals import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


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
    scales: Sequence[float], efficiencies: Sequence[Estimate], least: float = LEAST_EFFICIENCY
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
    means: Sequence[float], p_of: Callable[[int, int], float | None], level: float = 1 - CONFIDENCE
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


LEVEL = 0.05
AMDAHL, GUSTAFSON, USL = "Amdahl", "Gustafson", "Universal Scalability Law"
NEEDED = {AMDAHL: 3, GUSTAFSON: 3, USL: 4}  # scales: one more than a law has parameters
COARSE = "coarse: without a spread of the runs there is neither an interval nor a test of the fit"


@dataclass(frozen=True, slots=True)
class Curve:
    """Mean times for the same work over relative scales.

    `errors` holds how far each independent group (run, job, block) moves a mean from where the
    others have it (grouped_runs.residuals). With `is_paired` the groups are the same blocks at all
    scales.
    """

    scales: tuple[float, ...]
    means: tuple[float, ...]
    errors: tuple[tuple[float, ...], ...]
    is_paired: bool = False

    @classmethod
    def of(
        cls, scales: Sequence[float], groups: Sequence[Groups], is_paired: bool = False
    ) -> Curve:
        """Make a curve from the independent groups of runs at each scale."""
        errors = tuple(tuple(residuals(one)) for one in groups)
        return cls(tuple(scales), tuple(map(mean, groups)), errors, is_paired)


@dataclass(frozen=True, slots=True)
class Law:
    """The parameters of a law; `reason` states why it is refused, and its parameters are then None.

    `peak` is the relative scale with the largest speed-up by the Universal Scalability Law. `p` is
    that of means at least as far from the law as these; None if it cannot be tested.
    """

    name: str
    serial: Estimate | None = None  # σ
    crosstalk: Estimate | None = None  # κ
    peak: Estimate | None = None
    p: float | None = None
    reason: str | None = None


def fit_amdahl(curve: Curve, confidence: float = CONFIDENCE) -> Law:
    """Fit Amdahl's law."""
    return fit_law(AMDAHL, curve, confidence)


def fit_gustafson(curve: Curve, confidence: float = CONFIDENCE) -> Law:
    """Fit Gustafson's law to the speeds 1/T, with their errors by the delta method."""
    speeds = tuple(1 / one for one in curve.means)
    errors = tuple(
        tuple(-error * speed**2 for error in row)
        for row, speed in zip(curve.errors, speeds, strict=True)
    )
    return fit_law(GUSTAFSON, Curve(curve.scales, speeds, errors, curve.is_paired), confidence)


def fit_universal(curve: Curve, confidence: float = CONFIDENCE) -> Law:
    """Fit the Universal Scalability Law."""
    return fit_law(USL, curve, confidence)


def fit_law(name: str, curve: Curve, confidence: float) -> Law:
    """Return a law's parameters with Fieller's intervals, or why the law is refused."""
    if reason := find_refusal_reason(name, curve):
        return Law(name, reason=reason)
    found = fit_least_squares(name, curve)
    p = misfit_p(curve, found)
    if p is None:
        return Law(name, reason=COARSE)
    if p <= LEVEL:
        return Law(name, p=p, reason=describe_misfit(curve, found, p))
    serial = ratio(found, (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), confidence)
    if serial.low is None or serial.high is None:
        return Law(name, p=p, reason="the runs vary too much for an interval")
    if serial.low <= 0 and serial.high >= 1:
        return Law(name, p=p, reason="the runs vary too much: no serial fraction is excluded")
    if serial.high < 0:
        return Law(name, p=p, reason="superlinear: it would take a serial fraction below 0")
    if serial.low > 1:
        return Law(name, p=p, reason="times grow: it would take a serial fraction above 100 %")
    if name != USL:
        return Law(name, serial, p=p)
    crosstalk = ratio(found, (0.0, 0.0, 1.0), (1.0, 0.0, 0.0), confidence)
    return Law(name, serial, crosstalk, compute_peak(found, crosstalk, confidence), p)


def find_refusal_reason(name: str, curve: Curve) -> str | None:
    """Return why a law cannot be fitted to these scales at all, or None."""
    scales = len(set(curve.scales))
    if scales < NEEDED[name]:
        return f"{counted(scales, 'scale')} with values, {NEEDED[name]} are needed"
    fewest = min(map(len, curve.errors))
    if fewest < MIN_RUNS:
        return f"a scale has {counted(fewest, 'independent run')}, {MIN_RUNS} are needed"
    return None


@dataclass(frozen=True, slots=True)
class Fitted:
    """Coefficients (a, b, c), each a linear function of the means (one row of `of_means`)."""

    coefficients: Floats
    of_means: Floats
    values: Floats  # of the law at each scale
    residual_maker: Floats  # projection to the residuals, for means of relative spread 1
    weights: Floats
    curve: Curve


def build_columns(name: str, q: Floats) -> Floats:
    """Return the terms of a law at each scale, one column per term."""
    import numpy as np

    if name == GUSTAFSON:
        return np.column_stack([q, -(q - 1)])
    terms = [1 / q, (q - 1) / q] + ([q - 1] if name == USL else [])
    return np.column_stack(terms)


def fit_least_squares(name: str, curve: Curve) -> Fitted:
    """Fit a law by least squares, with weights from its own values.

    Weights from the means would give a mean that is too small by chance too much weight, so a
    second round uses the fitted values.
    """
    import numpy as np

    means = np.asarray(curve.means)
    columns = build_columns(name, np.asarray(curve.scales))
    roots = np.sqrt([len(row) for row in curve.errors])
    values = means
    for _ in range(2):
        weights = roots / (values if np.all(values > 0) else means)
        weighted = columns * weights[:, None]
        inverse = np.linalg.pinv(weighted)
        of_means = inverse * weights
        coefficients = of_means @ means
        values = columns @ coefficients
    residual_maker = np.eye(len(means)) - weighted @ inverse
    return Fitted(coefficients, of_means, values, residual_maker, weights, curve)


def compute_spread(curve: Curve, share: Floats) -> tuple[float, float]:
    """Return (variance, degrees of freedom) of a linear function of the means."""
    import numpy as np

    if curve.is_paired:
        errors = np.asarray(share) @ np.asarray(curve.errors)
        m = len(errors)
        return m / (m - 1) * float(errors @ errors), float(m - 1)
    parts = [float(s) ** 2 * variance(row) for s, row in zip(share, curve.errors, strict=True)]
    total = math.fsum(parts)
    degrees = [len(row) - 1 for row in curve.errors]
    return total, welch_degrees(parts, degrees) if total > 0 else float(sum(degrees))


def variance(errors: Sequence[float]) -> float:
    """Return the variance of a mean from its errors."""
    m = len(errors)
    return m / (m - 1) * math.fsum(error * error for error in errors)


def ratio(
    found: Fitted, top: Sequence[float], bottom: Sequence[float], confidence: float
) -> Estimate:
    """Return top · (a, b, c) divided by bottom · (a, b, c), with Fieller's interval.

    It has Welch's degrees of freedom at the observed ratio.
    """
    import numpy as np

    size = len(found.coefficients)
    above, below = (np.asarray(side[:size]) @ found.of_means for side in (top, bottom))
    means = np.asarray(found.curve.means)
    over, under = float(above @ means), float(below @ means)
    value = over / under
    _, degrees = compute_spread(found.curve, above - value * below)
    var_top, var_bottom, var_sum = (
        compute_spread(found.curve, share)[0] for share in (above, below, above + below)
    )
    t = student_quantile((1 + confidence) / 2, degrees)
    both = (var_sum - var_top - var_bottom) / 2
    ends = fieller(over, under, (var_top, both, var_bottom), t)
    return Estimate(value) if ends is None else Estimate(value, *ends)


def compute_peak(found: Fitted, crosstalk: Estimate, confidence: float) -> Estimate | None:
    """Return the relative scale of the peak, √((1 − σ) / κ); None unless κ is shown to be above 0.

    Gunther (2007), equation 4.34.
    """
    if not crosstalk.low or crosstalk.low <= 0:
        return None
    square = ratio(found, (1.0, -1.0, 0.0), (0.0, 0.0, 1.0), confidence)
    if square.low is None or square.high is None or square.low <= 0:
        return None
    return Estimate(*(math.sqrt(v) for v in (square.value, square.low, square.high)))


def misfit_p(curve: Curve, found: Fitted) -> float | None:
    """Return p of means at least as far from a true law; None without a spread.

    Lack of fit compared with the runs' own spread, which may differ between scales: Brunner, Dette
    & Munk (1997), "Box-Type Approximations in Nonparametric Factorial Designs", JASA 92. With the
    same spread and number of runs at all scales it is the F test of lack of fit (Draper & Smith
    1998, section 2.1).
    """
    import numpy as np
    from scipy.special import fdtrc

    residual_maker = found.residual_maker
    scaled = found.weights * np.asarray(curve.means)
    if curve.is_paired:
        errors = np.asarray(curve.errors) * found.weights[:, None]
        m = errors.shape[1]
        spread = m / (m - 1) * errors @ errors.T
    else:
        variances = [variance(row) for row in curve.errors]
        spread = np.diag(found.weights**2 * variances)
    product = residual_maker @ spread
    trace, squares = float(np.trace(product)), float(np.trace(product @ product))
    if trace <= (ROUNDING * float(np.max(np.abs(scaled)))) ** 2:
        return None
    top = trace**2 / squares
    if curve.is_paired:
        bottom = top * (len(curve.errors[0]) - 1)
    else:
        parts = np.diag(residual_maker) * np.diag(spread)
        degrees = np.asarray([len(row) - 1 for row in curve.errors])
        bottom = trace**2 / float(np.sum(parts**2 / degrees))
    return float(fdtrc(top, bottom, float(scaled @ residual_maker @ scaled) / trace))


def describe_misfit(curve: Curve, found: Fitted, p: float) -> str:
    """Return a sentence on the scale at which the law fails most."""
    off = [m / v - 1 for m, v in zip(curve.means, found.values.tolist(), strict=True)]
    worst = max(range(len(off)), key=lambda index: abs(off[index]))
    return (
        f"does not fit: off by {100 * abs(off[worst]):.2g} % at {curve.scales[worst]:g} times the "
        f"reference, more than the runs vary (p = {p:.2g})"
    )
