"""Two humps: values that gather around two places, as of two kinds of nodes."""

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
MIN_VALUES = 20  # of fewer values a mode cannot be told from chance
COARSE = 3  # steps of a coarse clock between the humps: fewer may be rounding
LEAST_SHARE = 0.1  # of the smaller hump: a few outliers are no hump
RESAMPLES, MOST_RESAMPLES, BATCH = 499, 9999, 50
GRID = 200
STEPS = 30  # halvings: the bandwidth is exact to 1e-9 of the range
SEED = 1981


@dataclass(frozen=True, slots=True)
class Humps:
    """Two groups of values, apart at `border`."""

    border: float
    low_mean: float
    high_mean: float
    low_n: int
    high_n: int
    p: float


def find_two_humps(values: Sequence[float], among: int = 1) -> Humps | None:
    """Whether the values have more than one mode, and where they part; None: not shown.

    `among`: how many series are looked at, by which the level is divided (Bonferroni), as far as
    9,999 resamples can tell.

    Silverman (1981), "Using Kernel Density Estimates to Investigate Multimodality", JRSS B 43(1):
    the least bandwidth that leaves one mode, judged by samples from that smoothed density. No
    shape is assumed, so that a skewed distribution is no second hump. Only looked for where the
    density at the usual bandwidth (Silverman 1986, equation 3.31) has two modes, and when the
    smaller hump has a tenth of the values, in all at least 20, and they are more than three steps of
    a coarse clock apart: whole seconds would make humps of their own.
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
    place = float(numbers[0] + border * (numbers[-1] - numbers[0]))
    return Humps(place, float(low.mean()), float(high.mean()), len(low), len(high), p)


def find_resolution(ordered: Floats) -> float:
    """The least step between two values: that of the clock, where it is coarse."""
    import numpy as np

    steps = np.diff(ordered)
    return float(steps[steps > 0].min())


def usual_bandwidth(values: Floats) -> float:
    """0.9 min(sd, interquartile range / 1.34) n^(-1/5)."""
    import numpy as np

    low, high = np.quantile(values, (0.25, 0.75))
    spread = min(float(values.std(ddof=1)), float(high - low) / 1.34)
    return float(0.9 * spread * len(values) ** -0.2)


def density(samples: Floats, bandwidth: float) -> Floats:
    """Unscaled normal kernel density of each row on a grid over 0 … 1, a half more on each side."""
    import numpy as np

    grid = np.linspace(-0.5, 1.5, GRID)
    result: Floats = np.empty((len(samples), GRID))
    for row, sample in enumerate(samples):
        result[row] = np.exp(-0.5 * ((grid[:, None] - sample) / bandwidth) ** 2).sum(axis=1)
    return result


def count_modes(samples: Floats, bandwidth: float) -> Floats:
    """Local maxima of each row's density."""
    import numpy as np

    rising = np.diff(density(samples, bandwidth), axis=1) > 0
    count: Floats = np.count_nonzero(rising[:, :-1] & ~rising[:, 1:], axis=1)
    return count


def least_bandwidth(values: Floats) -> float:
    """The least that leaves one mode: with a normal kernel their number only falls with it."""
    low, high = 1.0 / GRID, 1.0
    for _ in range(STEPS):
        middle = (low + high) / 2
        if count_modes(values[None, :], middle)[0] > 1:
            low = middle
        else:
            high = middle
    return high


def find_valley(values: Floats, least: float) -> float:
    """The lowest place between the modes, just below the bandwidth that joins them."""
    import numpy as np

    curve = density(values[None, :], 0.9 * least)[0]
    rising = np.diff(curve) > 0
    peaks = np.flatnonzero(rising[:-1] & ~rising[1:]) + 1
    if len(peaks) < 2:
        return math.inf
    left, right = sorted(sorted(peaks, key=lambda place: curve[place])[-2:])
    lowest = left + int(np.argmin(curve[left : right + 1]))
    return float(np.linspace(-0.5, 1.5, GRID)[lowest])


def silverman_p(values: Floats, least: float, level: float = LEVEL) -> float:
    """Share of samples from the smoothed density, of the values' variance, that have more modes.

    1.0 as soon as it is above the level; of as many samples as the level takes.
    """
    import numpy as np

    generator = np.random.default_rng((SEED, len(values)))
    # 25 samples may have more modes at any level, as of 499 at 5 %.
    resamples = min(max(RESAMPLES, math.ceil((RESAMPLES + 1) * LEVEL / level) - 1), MOST_RESAMPLES)
    centre, spread = values.mean(), values.var()
    more = 0
    for start in range(0, resamples, BATCH):
        drawn = generator.choice(values, (min(BATCH, resamples - start), len(values)))
        noise = generator.standard_normal(drawn.shape) * least
        rescaled = centre + (drawn - centre + noise) / math.sqrt(1 + least**2 / spread)
        more += int(np.count_nonzero(count_modes(rescaled, least) > 1))
        if 1 + more > level * (resamples + 1):
            return 1.0  # it can no longer be below the level
    return (1 + more) / (resamples + 1)
