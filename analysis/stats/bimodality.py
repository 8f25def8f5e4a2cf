"""Test for bimodality: values with two modes, as from two kinds of nodes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import check_values

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.05
MIN_VALUES = 20  # with fewer values a mode cannot be distinguished from chance
COARSE = 3  # least distance of the modes in steps of a coarse clock: less may be rounding
LEAST_SHARE = 0.1  # of values in the smaller mode: a few outliers are no mode
RESAMPLES, MOST_RESAMPLES, BATCH = 499, 9999, 50
GRID = 200
STEPS = 30  # halvings: the bandwidth is exact to 1e-9 of the range
SEED = 1981


@dataclass(frozen=True, slots=True)
class Humps:
    """Two groups of values, separated at `border`."""

    border: float
    low_mean: float
    high_mean: float
    low_n: int
    high_n: int
    p: float


def find_two_humps(values: Sequence[float], among: int = 1) -> Humps | None:
    """Return the two modes of the values and the border between them, or None if not shown.

    `among` is the number of series that are tested. The level is divided by it (Bonferroni), as far
    as 9,999 resamples can resolve it.

    Silverman (1981), "Using Kernel Density Estimates to Investigate Multimodality", JRSS B 43(1):
    the least bandwidth that leaves one mode, judged by samples from that smoothed density. The test
    assumes no shape, so a skewed distribution is not bimodal. It needs at least 20 values, two
    modes of the density at the usual bandwidth (Silverman 1986, equation 3.31), a tenth of the
    values in the smaller mode, and a distance of more than three steps of a coarse clock: whole
    seconds would create modes of their own.
    """
    import numpy as np

    numbers = np.sort(np.asarray(check_values(values)))
    if len(numbers) < MIN_VALUES or numbers[0] == numbers[-1]:
        return None
    scaled = (numbers - numbers[0]) / (numbers[-1] - numbers[0])
    usual = usual_bandwidth(scaled)
    if usual <= 0 or count_modes(scaled[None, :], usual)[0] < 2:
        return None
    least = least_bandwidth(scaled)
    border = find_valley(scaled, least)
    low, high = numbers[scaled <= border], numbers[scaled > border]
    if min(len(low), len(high)) < LEAST_SHARE * len(numbers):
        return None
    if high.mean() - low.mean() < COARSE * find_resolution(numbers):
        return None
    level = max(LEVEL / among, 1 / (MOST_RESAMPLES + 1))
    p = silverman_p(scaled, least, level)
    if p > level:
        return None
    threshold = float(numbers[0] + border * (numbers[-1] - numbers[0]))
    return Humps(threshold, float(low.mean()), float(high.mean()), len(low), len(high), p)


def find_resolution(ordered: Floats) -> float:
    """Return the least step between two values: that of the clock, if the clock is coarse."""
    import numpy as np

    steps = np.diff(ordered)
    return float(steps[steps > 0].min())


def usual_bandwidth(values: Floats) -> float:
    """Return the bandwidth 0.9 min(sd, interquartile range / 1.34) n^(-1/5)."""
    import numpy as np

    low, high = np.quantile(values, (0.25, 0.75))
    spread = min(float(values.std(ddof=1)), float(high - low) / 1.34)
    return float(0.9 * spread * len(values) ** -0.2)


def density(samples: Floats, bandwidth: float) -> Floats:
    """Return the unscaled normal kernel density of each row on a grid from -0.5 to 1.5."""
    import numpy as np

    grid = np.linspace(-0.5, 1.5, GRID)
    result: Floats = np.empty((len(samples), GRID))
    for row, sample in enumerate(samples):
        result[row] = np.exp(-0.5 * ((grid[:, None] - sample) / bandwidth) ** 2).sum(axis=1)
    return result


def count_modes(samples: Floats, bandwidth: float) -> Floats:
    """Return the number of local maxima of each row's density."""
    import numpy as np

    rising = np.diff(density(samples, bandwidth), axis=1) > 0
    count: Floats = np.count_nonzero(rising[:, :-1] & ~rising[:, 1:], axis=1)
    return count


def least_bandwidth(values: Floats) -> float:
    """Return the least bandwidth that leaves one mode, by bisection.

    With a normal kernel the number of modes never rises with the bandwidth.
    """
    low, high = 1.0 / GRID, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if count_modes(values[None, :], middle)[0] > 1:
            low = middle
        else:
            high = middle
    return high


def find_valley(values: Floats, least: float) -> float:
    """Return where the density is lowest between the modes, just below the joining bandwidth."""
    import numpy as np

    curve = density(values[None, :], 0.9 * least)[0]
    rising = np.diff(curve) > 0
    peaks = np.flatnonzero(rising[:-1] & ~rising[1:]) + 1
    if len(peaks) < 2:
        return math.inf
    left, right = sorted(sorted(peaks, key=lambda index: curve[index])[-2:])
    lowest = left + int(np.argmin(curve[left : right + 1]))
    return float(np.linspace(-0.5, 1.5, GRID)[lowest])


def silverman_p(values: Floats, least: float, level: float = LEVEL) -> float:
    """Return p: the share of samples from the smoothed density that have more than one mode.

    The samples have the variance of the values, and their number follows from the level. Returns
    1.0 as soon as p must be above the level.
    """
    import numpy as np

    generator = np.random.default_rng((SEED, len(values)))
    # At any level 25 samples may have more modes, as with 499 samples at 5 %.
    resamples = min(max(RESAMPLES, math.ceil((RESAMPLES + 1) * LEVEL / level) - 1), MOST_RESAMPLES)
    centre, spread = values.mean(), values.var()
    more = 0
    for start in range(0, resamples, BATCH):
        resampled = generator.choice(values, (min(BATCH, resamples - start), len(values)))
        noise = generator.standard_normal(resampled.shape) * least
        rescaled = centre + (resampled - centre + noise) / math.sqrt(1 + least**2 / spread)
        more += int(np.count_nonzero(count_modes(rescaled, least) > 1))
        if 1 + more > level * (resamples + 1):
            return 1.0  # it can no longer be below the level
    return (1 + more) / (resamples + 1)
