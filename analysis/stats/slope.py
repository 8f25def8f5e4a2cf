"""A measure over a numeric factor: its slope with interval, and where the line breaks."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import CONFIDENCE, check_values, student_quantile, variance
from steelyard.analysis.stats.dependent_runs import MIN_BLOCKS, block_mean
from steelyard.analysis.stats.overhead import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.05
MIN_VALUES = 4
MIN_LEVELS = 3  # two give a slope, but nothing says that there is a line between them
MIN_LEVELS_BROKEN = 4
COARSE = "coarse: the runs of each level print one value, and without a spread there is no test"


@dataclass(frozen=True, slots=True)
class Slope:
    """Units of the measure per unit of the factor; `p` of there being no slope.

    `reason`: why there is neither interval nor test; low and high are None and p is 1 then.
    """

    value: float
    low: float | None
    high: float | None
    intercept: float
    n: int
    levels: int
    p: float
    blocks: int | None = None  # whose slopes they are; None: all values together
    all_blocks: int | None = None  # with those that do not hold every level
    reason: str | None = None

    @property
    def excludes_zero(self) -> bool:
        """Whether the interval shows a slope."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True, slots=True)
class Break:
    """Where a line breaks: slopes before and behind `place`, a value of the factor."""

    place: float
    before: float
    behind: float
    p: float


@dataclass(frozen=True, slots=True)
class Line:
    """A line, and its break where one is shown."""

    slope: Slope
    break_point: Break | None


def fit_slope(
    places: Sequence[float],
    values: Sequence[float],
    blocks: Sequence[object] | None = None,
    confidence: float = CONFIDENCE,
) -> Line | None:
    """The line through values measured at places; None for fewer than 3 levels or 4 values.

    `blocks` has the block of each value where levels were measured in turns, block by block: where
    enough of them hold every level, the line is through these.
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
    """The values of each block by their places."""
    found: dict[object, dict[float, list[float]]] = {}
    for place, value, block in zip(places, values, blocks, strict=True):
        found.setdefault(block, {}).setdefault(place, []).append(value)
    return list(found.values())


def line_slope(
    places: Sequence[float], values: Sequence[float], confidence: float = CONFIDENCE
) -> Slope | None:
    """Least squares with an interval that allows each level a spread of its own.

    Standard error HC3: MacKinnon & White (1985), "Some Heteroskedasticity-Consistent Covariance
    Matrix Estimators with Improved Finite Sample Properties", Journal of Econometrics 29; Student's
    quantile with n − 2 degrees of freedom, as Long & Ervin (2000), The American Statistician 54(3),
    advise. None for fewer than 2 levels or 4 values. Without an interval where no level has a spread:
    then a coarse clock decides how far the values are from the line, as with two equal sides.
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
    # A level with one value alone may have leverage 1: its residual is 0 then and says nothing.
    free = np.maximum(1 - leverage, 1e-9)
    error = math.sqrt(float(np.sum((centred * residuals / free) ** 2))) / squares
    intercept = float(y.mean() - slope * x.mean())
    # The larger p of this and of one spread for all: in the tails, where the correction for many
    # lines looks, HC3's alone is a little too small.
    common = math.sqrt(float(residuals @ residuals) / (n - 2) / squares)
    if is_coarse(x, y) or common <= ROUNDING * abs(slope):
        return Slope(slope, None, None, intercept, n, levels, 1.0, reason=COARSE)
    p = max(compute_p(slope, error, n - 2), compute_p(slope, common, n - 2))
    ends = student_ends(slope, error, n - 2, confidence)
    return Slope(slope, *ends, intercept, n, levels, p)


def is_coarse(x: Floats, y: Floats) -> bool:
    """Whether levels have several values, and none of them has a spread."""
    seen: dict[float, set[float]] = {}
    for place, value in zip(x.tolist(), y.tolist(), strict=True):
        seen.setdefault(place, set()).add(value)
    return len(seen) < len(x) and all(len(values) == 1 for values in seen.values())


def student_ends(
    value: float, error: float, degrees: int, confidence: float
) -> tuple[float, float]:
    """Student's interval from a standard error."""
    half = student_quantile((1 + confidence) / 2, degrees) * error
    return value - half, value + half


def compute_p(value: float, error: float, degrees: int) -> float:
    """Two-sided p of 0; 1 without an error, which tests nothing."""
    from scipy.special import stdtr

    return 1.0 if error <= 0 else 2 * float(stdtr(degrees, -abs(value) / error))


def slope_by_block(
    blocks: Sequence[Mapping[float, Sequence[float]]], confidence: float = CONFIDENCE
) -> Slope | None:
    """The mean of the blocks' own slopes, with Student's interval; each block's values by place.

    What a block does to all its values drops out of its slope, as out of a paired overhead. Only
    blocks that hold every level count, each level with its mean; None for fewer than 10 of them.
    Without an interval where all blocks have one slope, as where all pairs have one difference.
    """
    import numpy as np

    places = sorted({place for block in blocks for place in block})
    complete = [block for block in blocks if len(block) == len(places)]
    if len(places) < 2 or len(complete) < MIN_BLOCKS:
        return None
    rows = [check_values([block_mean(block[place]) for place in places]) for block in complete]
    # Each with the same places: the mean of the slopes is that of all values together.
    centre, middle = np.mean(places), np.mean([np.mean(y) for y in rows])
    # From the first value on: of equal ones rounding would else leave a slope without spread.
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
    """The inner level at which two joined lines fit best, when one line is shown not to do.

    Hudson (1966), "Fitting Segmented Curves Whose Join Points Have to be Estimated", JASA 61(316);
    the F test of the second slope, its p times the number of places tried (Bonferroni). None below
    4 levels, and where one line will do.
    """
    import numpy as np
    from scipy.special import fdtrc

    x, y = np.asarray(check_values(places)), np.asarray(check_values(values))
    inner = sorted(set(x.tolist()))[1:-1]
    degrees = len(x) - 3
    if len(inner) + 2 < MIN_LEVELS_BROKEN or degrees < 1:
        return None
    seen = group_levels(x, y)
    straight, _ = residual_squares(seen, None)
    tried = [(*residual_squares(seen, place), place) for place in inner]
    least, slopes, place = min(tried, key=lambda each: each[0])
    noise = least / degrees
    if noise <= 0:
        return None
    p = min(float(fdtrc(1, degrees, max(straight - least, 0.0) / noise)) * len(inner), 1.0)
    return Break(place, slopes[0], slopes[0] + slopes[1], p) if p <= LEVEL else None


@dataclass(frozen=True, slots=True)
class Levels:
    """The values by their places: all that any function of the place can be fitted to."""

    places: Floats
    means: Floats
    roots: Floats  # of the numbers of values
    within: float  # sum of the squares of the values around the means of their places


def group_levels(x: Floats, y: Floats) -> Levels:
    """Of 10,000 values at 100 places a line is fitted to 100 means, with the same result."""
    import numpy as np

    places, where, counts = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(where, y) / counts
    return Levels(places, means, np.sqrt(counts), float(np.sum((y - means[where]) ** 2)))


def residual_squares(seen: Levels, place: float | None) -> tuple[float, list[float]]:
    """(sum of squared residuals, coefficients behind the intercept)."""
    import numpy as np

    columns = [np.ones_like(seen.places), seen.places - seen.places.mean()]
    if place is not None:
        columns.append(np.maximum(seen.places - place, 0.0))
    design = np.column_stack(columns) * seen.roots[:, None]
    found, *_ = np.linalg.lstsq(design, seen.means * seen.roots, rcond=None)
    residuals = seen.means * seen.roots - design @ found
    return seen.within + float(residuals @ residuals), [float(c) for c in found[1:]]
