"""A measure over a numeric factor: its slope with an interval, and a break of the line."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import CONFIDENCE, check_values, student_quantile, variance
from steelyard.analysis.stats.grouped_runs import MIN_BLOCKS, block_mean
from steelyard.analysis.stats.overhead import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.05
MIN_VALUES = 4
MIN_LEVELS = 3  # two levels give a slope, but no evidence of a line between them
MIN_LEVELS_BROKEN = 4
COARSE = "coarse: the runs of each level print one value, and without a spread there is no test"


@dataclass(frozen=True, slots=True)
class Slope:
    """A slope in units of the measure per unit of the factor; `p` is that of a slope of 0.

    `reason` states why interval and test are missing; then low and high are None and p is 1.
    """

    value: float
    low: float | None
    high: float | None
    intercept: float
    n: int
    levels: int
    p: float
    blocks: int | None = None  # number of blocks that the slope averages; None: all values together
    all_blocks: int | None = None  # including those that do not hold every level
    reason: str | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Break:
    """A break of a line: the slopes below and above `place`, a value of the factor."""

    position: float
    before: float
    behind: float
    p: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and its break if one is shown."""

    slope: Slope
    break_point: Break | None


def fit_slope(
    places: Sequence[float],
    values: Sequence[float],
    blocks: Sequence[object] | None = None,
    confidence: float = CONFIDENCE,
) -> Line | None:
    """Return the line through values measured at places; None for fewer than 3 levels or 4 values.

    `blocks` has the block of each value if levels were measured in turns, block by block. If enough
    blocks hold every level, the line is fitted to these.
    """
    slope = line_slope(places, values, confidence)
    if slope is None or slope.levels < MIN_LEVELS:
        return None
    if blocks is not None:
        slope = slope_by_block(group_by_block(places, values, blocks), confidence) or slope
    return Line(slope, line_break(places, values) if slope.reason is None else None)


def group_by_block(
    places: Sequence[float], values: Sequence[float], blocks: Sequence[object]
) -> list[dict[float, list[float]]]:
    """Return the values of each block by place."""
    found: dict[object, dict[float, list[float]]] = {}
    for level, value, block in zip(places, values, blocks, strict=True):
        found.setdefault(block, {}).setdefault(level, []).append(value)
    return list(found.values())


def line_slope(
    places: Sequence[float], values: Sequence[float], confidence: float = CONFIDENCE
) -> Slope | None:
    """Fit a line by least squares, with an interval that allows each level its own spread.

    Standard error HC3: MacKinnon & White (1985), "Some Heteroskedasticity-Consistent Covariance
    Matrix Estimators with Improved Finite Sample Properties", Journal of Econometrics 29; Student's
    quantile with n − 2 degrees of freedom, as Long & Ervin (2000), The American Statistician 54(3),
    advise. Returns None for fewer than 2 levels or 4 values. If no level has a spread, no interval
    is given: a coarse clock then decides how far the values are from the line.
    """
    import numpy as np

    x, y = np.asarray(check_values(places)), np.asarray(check_values(values))
    if len(x) != len(y):
        raise ValueError(f"{len(x)} places for {len(y)} values")
    levels, n = len(set(x.tolist())), len(x)
    if levels < 2 or n < MIN_VALUES:
        return None
    centred = x - x.mean()
    squares = float(centred @ centred)
    slope = float(centred @ (y - y.mean())) / squares
    residuals = y - y.mean() - slope * centred
    leverage = 1 / n + centred**2 / squares
    # A level with only one value may have leverage 1. Its residual is then 0 and has no
    # information.
    free = np.maximum(1 - leverage, 1e-9)
    error = math.sqrt(float(np.sum((centred * residuals / free) ** 2))) / squares
    intercept = float(y.mean() - slope * x.mean())
    # The larger p of HC3 and of a common spread is used. In the tails, which matter for the
    # correction for many lines, the p of HC3 alone is slightly too small.
    common = math.sqrt(float(residuals @ residuals) / (n - 2) / squares)
    if is_coarse(x, y) or common <= ROUNDING * abs(slope):
        return Slope(slope, None, None, intercept, n, levels, 1.0, reason=COARSE)
    p = max(compute_p(slope, error, n - 2), compute_p(slope, common, n - 2))
    ends = student_ends(slope, error, n - 2, confidence)
    return Slope(slope, *ends, intercept, n, levels, p)


def is_coarse(x: Floats, y: Floats) -> bool:
    """Return whether levels have several values and none of them has a spread."""
    values_by_level: dict[float, set[float]] = {}
    for level, value in zip(x.tolist(), y.tolist(), strict=True):
        values_by_level.setdefault(level, set()).add(value)
    return len(values_by_level) < len(x) and all(
        len(values) == 1 for values in values_by_level.values()
    )


def student_ends(
    value: float, error: float, degrees: int, confidence: float
) -> tuple[float, float]:
    """Return Student's interval from a standard error."""
    half = student_quantile((1 + confidence) / 2, degrees) * error
    return value - half, value + half


def compute_p(value: float, error: float, degrees: int) -> float:
    """Return the two-sided p of 0; 1 without an error, because nothing can be tested."""
    from scipy.special import stdtr

    return 1.0 if error <= 0 else 2 * float(stdtr(degrees, -abs(value) / error))


def slope_by_block(
    blocks: Sequence[Mapping[float, Sequence[float]]], confidence: float = CONFIDENCE
) -> Slope | None:
    """Return the mean of the slopes of blocks, with Student's interval.

    `blocks` has each block's values by place. What a block does to all its values cancels out of
    its slope, as in a paired overhead. Only blocks that hold every level count, each level with its
    mean. Returns None for fewer than 10 of them. No interval is given if all blocks have the same
    slope.
    """
    import numpy as np

    places = sorted({level for block in blocks for level in block})
    complete = [block for block in blocks if len(block) == len(places)]
    if len(places) < 2 or len(complete) < MIN_BLOCKS:
        return None
    rows = [check_values([block_mean(block[level]) for level in places]) for block in complete]
    # All blocks have the same places, so the mean of their slopes is the slope of all values.
    centre, middle = np.mean(places), np.mean([np.mean(y) for y in rows])
    # Relative to the first value: rounding would else give equal values a slope without spread.
    slopes = [float((np.asarray(places) - centre) @ (np.asarray(y) - y[0])) for y in rows]
    squares = float(np.sum((np.asarray(places) - centre) ** 2))
    own = [one / squares for one in slopes]
    mean, m = statistics.fmean(own), len(own)
    error = math.sqrt(variance(own, mean) / m)
    n = sum(len(values) for block in complete for values in block.values())
    low = high = reason = None
    if error <= ROUNDING * abs(mean):
        reason = COARSE
    else:
        low, high = student_ends(mean, error, m - 1, confidence)
    p = 1.0 if reason else compute_p(mean, error, m - 1)
    intercept = float(middle - mean * centre)
    return Slope(mean, low, high, intercept, n, len(places), p, m, len(blocks), reason)


def line_break(places: Sequence[float], values: Sequence[float]) -> Break | None:
    """Return the inner level at which two joined lines fit best, if one line is shown to fit worse.

    Hudson (1966), "Fitting Segmented Curves Whose Join Points Have to be Estimated", JASA 61(316);
    the F test of the second slope, with p times the number of places tried (Bonferroni). Returns
    None below 4 levels and if one line fits.
    """
    import numpy as np
    from scipy.special import fdtrc

    x, y = np.asarray(check_values(places)), np.asarray(check_values(values))
    inner = sorted(set(x.tolist()))[1:-1]
    degrees = len(x) - 3
    if len(inner) + 2 < MIN_LEVELS_BROKEN or degrees < 1:
        return None
    levels = group_levels(x, y)
    straight, _ = residual_squares(levels, None)
    tried = [(*residual_squares(levels, break_at), break_at) for break_at in inner]
    least, slopes, break_at = min(tried, key=lambda each: each[0])
    noise = least / degrees
    if noise <= 0:
        return None
    p = min(float(fdtrc(1, degrees, max(straight - least, 0.0) / noise)) * len(inner), 1.0)
    return Break(break_at, slopes[0], slopes[0] + slopes[1], p) if p <= LEVEL else None


@dataclass(frozen=True, slots=True)
class Levels:
    """The values by place, summarized as far as a function of the place can be fitted to them."""

    places: Floats
    means: Floats
    roots: Floats  # of the numbers of values
    within: float  # sum of the squares of the values around the means of their places


def group_levels(x: Floats, y: Floats) -> Levels:
    """Summarize the values by place, so that 10,000 values at 100 places become 100 means."""
    import numpy as np

    places, where, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(where, y) / counts
    return Levels(places, means, np.sqrt(counts), float(np.sum((y - means[where]) ** 2)))


def residual_squares(levels: Levels, break_at: float | None) -> tuple[float, list[float]]:
    """Return (sum of squared residuals, coefficients after the intercept)."""
    import numpy as np

    columns = [np.ones_like(levels.places), levels.places - levels.places.mean()]
    if break_at is not None:
        columns.append(np.maximum(levels.places - break_at, 0.0))
    design = np.column_stack(columns) * levels.roots[:, None]
    found, *_ = np.linalg.lstsq(design, levels.means * levels.roots, rcond=None)
    residuals = levels.means * levels.roots - design @ found
    return levels.within + float(residuals @ residuals), [float(c) for c in found[1:]]
