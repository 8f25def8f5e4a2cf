"""The level of a numeric factor at which a figure is worse than at the baseline by a margin.

Along the levels from the baseline outwards, c(x) = m(x) − ratio · m(baseline), with m(x) the mean
of the figure at x. The margin is passed where c changes its sign: the place is where the straight
line (chord) between two neighboring levels does so. Each level's mean enters c linearly, so
Student's test of c(x) = 0 exists at every x, and all x that it does not reject form the interval:
Fieller (1954), "Some Problems in Interval Estimation", JRSS B 16(2), for a line between two means;
inverse prediction in Draper & Smith (1998), "Applied Regression Analysis", chapter 3.2. Degrees of
freedom are Welch's at each x, or those of the blocks if every block holds every level.

The method assumes no curve, except that it does not turn between two levels, and that around the
crossing it bends to one side only. A convex curve is below its chord and above the neighboring
chords extended; a concave curve is the opposite (Rockafellar (1970), "Convex Analysis", section
24). The interval contains what all of these allow, so it is as wide as the levels are coarse.
Beyond the farthest level the method makes no statement.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.grouped_runs import Group, block_mean, compute_mean_error
from steelyard.analysis.stats.overhead import MIN_RUNS, ROUNDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

STEPS = 64  # points between two levels at which c is tested
# Share of studies in which a level within the margin may wrongly end the search for the far end.
BEYOND_DOUBT = 0.005
FEW_RUNS = f"a level has fewer than {MIN_RUNS} independent runs"
NO_SPREAD = "no level has a spread, and without one there is no test"
NOT_POSITIVE = "the baseline's mean is not above 0"


class State(StrEnum):
    """The knowledge about the crossing."""

    CROSSED = "crossed"  # between two levels
    AT_ONCE = "at once"  # before the first level beyond the baseline, at an unknown place
    BEYOND = "beyond"  # shown not to be reached at any level
    NOT_REACHED = "not reached"  # by the means; the tests do not exclude it
    UNKNOWN = "unknown"  # no test exists; `reason` states why


@dataclass(frozen=True, slots=True)
class Crossing:
    """The crossing of the margin, in places as given; None is not known.

    Up to `low` the margin is shown not to be reached; from `high` on it is shown to be passed.
    `before` and `behind` are the levels that enclose the crossing by their means. `returns` is a
    level farther out that is shown not to be past the margin.
    """

    state: State
    value: float | None = None
    low: float | None = None
    high: float | None = None
    before: float | None = None
    behind: float | None = None
    returns: float | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Means:
    """Means of the levels, their covariance, and the degrees of freedom of each variance.

    If blocks hold every level, `degrees` has one member, that of the blocks.
    """

    values: Floats
    covariance: Floats
    degrees: Floats


def find_crossing(
    places: Sequence[float],
    levels: Sequence[Sequence[Group]],
    ratio: float,
    by_block: bool = False,
    confidence: float = CONFIDENCE,
) -> Crossing:
    """Find where the mean passes `ratio` times the baseline's; more is worse if ratio is above 1.

    `places` ascend outwards from the baseline, which is the first. `levels` has the independent
    groups of values of each (runs of one value, jobs, blocks); with `by_block` group i of every
    level is from block i. Raises ValueError for fewer than 2 places and for places that do not
    ascend.
    """
    import numpy as np

    if len(places) < 2 or any(b <= a for a, b in itertools.pairwise(places)):
        raise ValueError("expected two places or more, ascending from the baseline")
    x, side = np.asarray(places, dtype=float), 1.0 if ratio > 1 else -1.0
    plain = np.array([fmean(value for group in level for value in group) for level in levels])
    if plain[0] <= 0:
        return Crossing(State.UNKNOWN, reason=NOT_POSITIVE)
    past = side * (plain - ratio * plain[0])
    if min(map(len, levels)) < MIN_RUNS:
        return enclose_by_means(x, past, FEW_RUNS)
    means = paired_means(levels) if by_block else independent_means(levels)
    errors = np.sqrt(np.diag(means.covariance))
    if errors.max() <= ROUNDING * np.abs(means.values).max():
        return enclose_by_means(x, past, NO_SPREAD)
    return search_crossing(x, means, side, ratio, confidence)


def independent_means(levels: Sequence[Sequence[Group]]) -> Means:
    """Return the means of levels that share no runs, jobs or blocks."""
    import numpy as np

    errors = [compute_mean_error(level) for level in levels]
    return Means(
        np.array([error.mean for error in errors]),
        np.diag([error.variance for error in errors]),
        np.array([error.degrees for error in errors], dtype=float),
    )


def paired_means(levels: Sequence[Sequence[Group]]) -> Means:
    """Return the means of levels that share every block.

    What a block does to all levels is in their covariance.
    """
    import numpy as np

    table = np.array([[block_mean(group) for group in level] for level in levels])
    blocks = table.shape[1]
    return Means(table.mean(axis=1), np.cov(table) / blocks, np.array([blocks - 1.0]))


def enclose_by_means(x: Floats, past: Floats, reason: str) -> Crossing:
    """Return the levels between which the means pass the margin."""
    import numpy as np

    above = np.flatnonzero(past >= 0)
    if not len(above):
        return Crossing(State.UNKNOWN, reason=reason)
    before, behind = float(x[above[0] - 1]), float(x[above[0]])
    return Crossing(State.UNKNOWN, before=before, behind=behind, reason=reason)


def search_crossing(
    x: Floats, means: Means, side: float, ratio: float, confidence: float
) -> Crossing:
    """Return the crossing that the tests along the levels show."""
    import numpy as np
    from scipy.special import stdtrit

    steps = np.linspace(0, len(x) - 1, (len(x) - 1) * STEPS + 1)
    grid = np.interp(steps, np.arange(len(x)), x)
    segments = np.minimum(steps.astype(int), len(x) - 2)
    base = np.zeros(len(x))
    base[0] = ratio

    def test(first: NDArray[np.int_]) -> tuple[Floats, Floats, Floats]:
        """Return (c, t, degrees of freedom) on the lines through levels `first` and the next."""
        return tests_along(side * (secants(x, grid, first) - base), means)

    past, t, degrees = test(segments)
    at_levels = np.arange(STEPS, len(grid), STEPS)
    sure = stdtrit(degrees[at_levels], 1 - BEYOND_DOUBT / len(at_levels))
    passed = at_levels[t[at_levels] > sure]
    end = int(passed[0]) + 1 if len(passed) else len(grid)
    above, below = (
        envelope(x, grid, segments, test, sign, (1 + confidence) / 2)[:end] for sign in (1, -1)
    )
    low, high = first_root(grid, above), last_root(grid, below)
    value = first_root(grid, past)
    if value is None:
        state = State.BEYOND if low is None else State.NOT_REACHED
        return Crossing(state, low=float(x[-1]) if low is None else refine_grid(low, grid))
    quantile = stdtrit(degrees, (1 + confidence) / 2)
    index = max(int(np.searchsorted(x, value)), 1)
    back = [n for n in range(index + 1, len(x)) if (t + quantile)[n * STEPS] < 0]
    # At the estimate t is 0, so the interval holds it; only the grid can place an end beside it.
    low = None if low is None else refine_grid(min(low, value), grid)
    is_at_once = index == 1 and low is None
    if high is not None:
        high = max(high, float(x[1]) if is_at_once else value)
    return Crossing(
        State.AT_ONCE if is_at_once else State.CROSSED, None if is_at_once else value, low, high,
        float(x[index - 1]), float(x[index]), float(x[back[0]]) if back else None,
    )  # fmt: skip


def refine_grid(low: float, grid: Floats) -> float | None:
    """Return a lower end, or None if it is next to the baseline and has no information."""
    return low if low > grid[1] else None


def secants(x: Floats, grid: Floats, first: NDArray[np.int_]) -> Floats:
    """Return the weight of each level's mean at each place, on the line through two levels."""
    import numpy as np

    places = np.arange(len(grid))
    share = (grid - x[first]) / (x[first + 1] - x[first])
    weights = np.zeros((len(grid), len(x)))
    weights[places, first] = 1 - share
    weights[places, first + 1] = share
    return weights


def tests_along(weights: Floats, means: Means) -> tuple[Floats, Floats, Floats]:
    """Return (c, t of c = 0, degrees of freedom) at each place."""
    import numpy as np

    past = weights @ means.values
    variances = ((weights @ means.covariance) * weights).sum(axis=1)
    if len(means.degrees) == 1:
        degrees = np.full(len(past), means.degrees[0])
    else:
        parts = weights**2 * np.diag(means.covariance)
        variance = np.maximum(parts.sum(axis=1), np.finfo(float).tiny)[:, None]
        degrees = 1 / np.maximum(((parts / variance) ** 2 / means.degrees).sum(axis=1), 1e-9)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = past / np.sqrt(np.maximum(variances, 0.0))
    return past, np.clip(np.nan_to_num(t, nan=0.0), -1e9, 1e9), degrees


def envelope(
    x: Floats,
    grid: Floats,
    segments: NDArray[np.int_],
    test: Callable[[NDArray[np.int_]], tuple[Floats, Floats, Floats]],
    sign: int,
    probability: float,
) -> Floats:
    """Return whether a curve may be past the margin (sign 1) or not yet past it (−1).

    It may where the result is at least 0, or at most 0 for sign −1. Beyond the chord the curve
    is limited by a neighboring chord on that side, extended, and by the levels at the segment's
    ends.
    """
    import numpy as np
    from scipy.special import stdtrit

    def may(first: NDArray[np.int_]) -> tuple[Floats, Floats]:
        past, t, degrees = test(np.clip(first, 0, len(x) - 2))
        return sign * past, sign * t + stdtrit(degrees, probability)

    past, chord = may(segments)
    has_neighbor = np.zeros(len(grid), dtype=bool)
    bound = np.full(len(grid), np.inf)
    for first in (segments - 1, segments + 1):
        exists = (first >= 0) & (first < len(x) - 1)
        beside, reach = may(first)
        bound = np.where(exists & (beside >= past), np.minimum(bound, reach), bound)
        has_neighbor |= exists
    bound = np.where(has_neighbor & np.isinf(bound), chord, bound)
    ends = np.maximum(chord[::STEPS][segments], chord[::STEPS][segments + 1])
    found: Floats = sign * np.maximum(chord, np.minimum(bound, ends))
    found[::STEPS] = sign * chord[::STEPS]
    return found


def first_root(grid: Floats, heights: Floats) -> float | None:
    """Return where the heights first reach 0 from below, interpolated linearly; None if nowhere."""
    import numpy as np

    above = np.flatnonzero(heights >= 0)
    return None if not len(above) else root_before(grid, heights, int(above[0]))


def last_root(grid: Floats, heights: Floats) -> float | None:
    """Return where the heights last rise above 0; None if the last height is not above 0."""
    import numpy as np

    below = np.flatnonzero(heights <= 0)
    if len(below) and below[-1] == len(heights) - 1:
        return None
    return root_before(grid, heights, int(below[-1]) + 1 if len(below) else 0)


def root_before(grid: Floats, heights: Floats, index: int) -> float:
    """Return the root between a place and the one before it."""
    if index == 0:
        return float(grid[0])
    before, after = float(heights[index - 1]), float(heights[index])
    share = before / (before - after) if before != after else 1.0
    return float(grid[index - 1] + share * (grid[index] - grid[index - 1]))
