"""Means of sessions (nights) as change points compare them: weighted, and with outliers cut.

A session farther than OUTLIER_LIMIT standard deviations from its neighbors' median is marked, and
counts in means and variances as one at CUT standard deviations (Hampel's identifier: Davies &
Gather (1993), "The Identification of Multiple Outliers", JASA 88(423)). If such sessions are
frequent, they belong to the noise and are not cut. Each session counts at night t as it was known
at night t, so a later night never changes what an earlier night reported.
"""

from __future__ import annotations

import math
import statistics
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import MAD_TO_SD, OUTLIER_LIMIT, check_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

NEIGHBORS = 2  # on each side, for the median that identifies outliers
ROUNDING = 1e-10  # of the usual mean: means that differ by less are equal
CUT = 1.0  # so small that two outliers in a row next to low sessions are no step
RARE = 0.05  # a larger share of sessions is no outliers but part of the noise
MIN_FOR_LIMIT = 5  # sessions with neighbors; with fewer, nothing is cut


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions that have values, in order: their indices in the input, means and weights."""

    index: tuple[int, ...]
    x: Floats  # means / scale − offset, so that sums of squares are exact enough
    weight: Floats  # 1 for a session with the usual number of runs
    offset: float
    scale: float
    rounding: float  # two means that differ by less are equal


@dataclass(frozen=True, slots=True)
class Cleaned:
    """Sessions with outliers cut, as known at each night."""

    y: Floats  # by their neighbors on both sides
    newest: Floats  # the session of night t, as known at night t
    second: Floats  # the session before it, as known at night t
    coarse: NDArray[np.bool_]  # whether more than half of the sessions so far equal their neighbors
    outliers: tuple[int, ...]

    def without_slope(self, begin: int, slope: float) -> Cleaned:
        """Subtract a line of `slope` per session from session `begin` on."""
        import numpy as np

        line = slope * np.maximum(np.arange(len(self.y)) - begin, 0)
        before = np.concatenate([line[:1], line[:-1]])
        return replace(
            self, y=self.y - line, newest=self.newest - line, second=self.second - before
        )


def summarize_sessions(sessions: Sequence[Sequence[float]]) -> Sessions | None:
    """Return the means and weights of the sessions that have values; None if no session has any."""
    import numpy as np

    raw = [(index, check_values(values)) for index, values in enumerate(sessions) if len(values)]
    if not raw:
        return None
    # The usual mean is the unit, so that squares of very large and small values do not overflow.
    sizes = [abs(statistics.fmean(values)) for _, values in raw]
    scale = statistics.median(sizes) or max(sizes) or 1.0
    runs = [[value / scale for value in values] for _, values in raw]
    means = np.array([statistics.fmean(values) for values in runs])
    offset = float(np.median(means))
    index = tuple(night for night, _ in raw)
    return Sessions(index, means - offset, session_weights(runs, means), offset, scale, ROUNDING)


def session_weights(runs: Sequence[list[float]], means: Floats) -> Floats:
    """Return 1 for a session with the usual number of runs, and less for one with fewer.

    The variance of a session's mean is that between sessions plus that within divided by the number
    of runs: the one-way random model, Cochran (1954), "The Combination of Estimates from Different
    Experiments", Biometrics 10(1). The variance of means comes from differences of neighbors.
    """
    import numpy as np

    counts = np.array([len(values) for values in runs], dtype=float)
    usual = float(np.median(counts))
    degrees = float((counts - 1).sum())
    total = float(np.median(np.abs(np.diff(means)))) / MAD_TO_SD if len(means) > 1 else 0.0
    if (counts == usual).all() or degrees == 0 or total == 0:
        return np.ones(len(means))
    squares = math.fsum(
        math.fsum((value - mean) ** 2 for value in values)
        for values, mean in zip(runs, means.tolist(), strict=True)
    )
    within = min(squares / degrees / usual / (total**2 / 2), 1.0)
    weights: Floats = 1 / (1 + within * (usual / counts - 1))
    return weights


def cut_outliers(found: Sessions) -> Cleaned:
    """Return the sessions with outliers cut, as each counts at each night."""
    import numpy as np

    x, n = found.x, len(found.x)
    centered = np.array(
        [statistics.median(x[max(i - NEIGHBORS, 0) : i + NEIGHBORS + 1].tolist()) for i in range(n)]
    )
    trailing = np.array(
        [statistics.median(x[max(i - 2 * NEIGHBORS, 0) : i + 1].tolist()) for i in range(n)]
    )
    limits, coarse = outlier_limits(
        x - centered, find_ties(x, centered, found.rounding), found.rounding
    )
    known = limits[np.minimum(np.arange(n) + NEIGHBORS, n - 1)]  # with both neighbors
    return Cleaned(
        cut_values(x, centered, known),
        cut_values(x, trailing, limits),
        cut_values(np.concatenate([x[:1], x[:-1]]), trailing, limits),
        coarse,
        tuple(int(i) for i in np.flatnonzero(np.abs(x - centered) > known)),
    )


def cut_values(x: Floats, middle: Floats, limits: Floats) -> Floats:
    """Move each value that is farther than its limit from the middle to CUT sd from it."""
    import numpy as np

    deviation = x - middle
    outside = np.abs(deviation) > limits
    moved = np.sign(deviation) * np.where(outside, limits, 0.0) * (CUT / OUTLIER_LIMIT)
    return np.where(outside, middle + moved, x)


def find_ties(x: Floats, middle: Floats, rounding: float) -> NDArray[np.bool_]:
    """Return whether each session equals its neighbors' median and one of its neighbors.

    Without an equal neighbor a session equals the median because it is the middle one, as in a
    rising series.
    """
    import numpy as np

    ties = np.zeros(len(x), dtype=bool)
    for distance in range(1, NEIGHBORS + 1):
        equal = np.abs(x[distance:] - x[:-distance]) <= rounding
        ties[distance:] |= equal
        ties[:-distance] |= equal
    result: NDArray[np.bool_] = ties & (np.abs(x - middle) <= rounding)
    return result


def outlier_limits(
    deviations: Floats, ties: NDArray[np.bool_], rounding: float
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return how far a session may be from its neighbors at each night, and whether most are ties.

    The limit comes from the median deviation, or from the largest deviation that is not among the
    rarest: if more than RARE of the sessions are far off (some nights use a bad node), such
    deviations belong to the figure.
    """
    import numpy as np
    from scipy.special import ndtri

    past_sizes: list[float] = []
    limits, coarse = np.full(len(deviations), np.inf), np.zeros(len(deviations), dtype=bool)
    sizes, tied = np.abs(deviations).tolist(), np.cumsum(ties).tolist()
    for night in range(NEIGHBORS, len(sizes)):
        insort(past_sizes, sizes[night - NEIGHBORS])  # the newest session with both neighbors
        n = len(past_sizes)
        if n < MIN_FOR_LIMIT:
            continue
        rest = n - 1 - int(RARE * n)  # sessions without the rarest; at least one counts as rare
        tail = float(ndtri(1 - (n - rest + 0.5) / (2 * n)))
        scale = max(past_sizes[n // 2] / MAD_TO_SD, past_sizes[rest - 1] / tail)
        coarse[night] = tied[night - NEIGHBORS] > n // 2
        limits[night] = max(OUTLIER_LIMIT * scale, rounding)
    return limits, coarse
