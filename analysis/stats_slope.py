"""A measure over a numeric factor: its slope with interval, and where the line breaks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats import CONFIDENCE, checked, student_quantile

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.05
MIN_VALUES = 4
MIN_LEVELS = 3  # two give a slope, but nothing says that there is a line between them
MIN_LEVELS_BROKEN = 4


@dataclass(frozen=True, slots=True)
class Slope:
    """Units of the measure per unit of the factor."""

    value: float
    low: float
    high: float
    intercept: float
    n: int
    levels: int


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
    broken: Break | None


def fit(places: Sequence[float], values: Sequence[float]) -> Line | None:
    """The line through values measured at places; None for fewer than 3 levels or 4 values."""
    slope = line_slope(places, values)
    if slope is None or slope.levels < MIN_LEVELS:
        return None
    return Line(slope, line_break(places, values))


def line_slope(places: Sequence[float], values: Sequence[float]) -> Slope | None:
    """Least squares with an interval that allows each level a spread of its own.

    Standard error HC3: MacKinnon & White (1985), "Some Heteroskedasticity-Consistent Covariance
    Matrix Estimators with Improved Finite Sample Properties", Journal of Econometrics 29; Student's
    quantile with n − 2 degrees of freedom, as Long & Ervin (2000), The American Statistician 54(3),
    advise. None for fewer than 2 levels or 4 values.
    """
    import numpy as np

    x, y = np.asarray(checked(places)), np.asarray(checked(values))
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
    half = student_quantile((1 + CONFIDENCE) / 2, n - 2) * error
    intercept = float(y.mean() - slope * x.mean())
    return Slope(slope, slope - half, slope + half, intercept, n, levels)


def line_break(places: Sequence[float], values: Sequence[float]) -> Break | None:
    """The inner level at which two joined lines fit best, when one line is shown not to do.

    Hudson (1966), "Fitting Segmented Curves Whose Join Points Have to be Estimated", JASA 61(316);
    the F test of the second slope, its p times the number of places tried (Bonferroni). None below
    4 levels, and where one line will do.
    """
    import numpy as np
    from scipy.special import fdtrc

    x, y = np.asarray(checked(places)), np.asarray(checked(values))
    inner = sorted(set(x.tolist()))[1:-1]
    degrees = len(x) - 3
    if len(inner) + 2 < MIN_LEVELS_BROKEN or degrees < 1:
        return None
    seen = levels_of(x, y)
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


def levels_of(x: Floats, y: Floats) -> Levels:
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
