"""Warm-up: where the first values of a series end that are unlike the rest."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import CONFIDENCE, Interval, checked, mean_interval, ranks

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEVEL = 0.01  # of each look; a series is looked at again behind each warm-up that is found
MIN_VALUES = 10
PERMUTATIONS = 4999
SEED = 19791


@dataclass(frozen=True, slots=True)
class WarmUp:
    """The first `length` values; intervals with and without them."""

    length: int
    p: float  # of the first cut
    with_it: Interval
    without: Interval


def warm_up(values: Sequence[float], confidence: float = CONFIDENCE) -> WarmUp | None:
    """The warm-up of a series in the order in which it was measured; None: none was found.

    Maximally selected rank statistic: of all cuts in the first half the one whose two sides differ
    most by the standardized Mann-Whitney statistic, judged by permutation, and again behind the cut
    (binary segmentation) as long as the whole stays in the first half: Pettitt (1979), "A
    Non-Parametric Approach to the Change-Point Problem", Applied Statistics 28(2); Hothorn & Zeileis
    (2008), "Generalized Maximally Selected Statistics", Biometrics 64(4). Ranks, so that an outlier
    is no change. Fewer than 10 values are not looked at.
    """
    numbers = checked(values)
    length, first_p = 0, 1.0
    while len(numbers) - length >= MIN_VALUES and length < len(numbers) // 2:
        cut, p = best_cut(numbers[length:], len(numbers) // 2 - length)
        if p > LEVEL:
            break
        first_p = first_p if length else p
        length += cut
    if not length:
        return None
    with_it, without = (mean_interval(part, confidence) for part in (numbers, numbers[length:]))
    return WarmUp(length, first_p, with_it, without)


def best_cut(numbers: Sequence[float], most: int) -> tuple[int, float]:
    """(number of values before the cut that divides best, its p), at most `most` before it."""
    import numpy as np

    places = np.asarray(ranks(numbers))
    places -= places.mean()
    if not places.any():
        return 0, 1.0
    found = contrasts(places[None, :], most)[0]
    highest = permuted_highest(tuple(np.sort(places)), most)
    as_high = int(np.count_nonzero(highest >= found.max() - 1e-9))
    # With its own standard error on top: all series of one length share their permutations.
    p = min((1 + as_high + math.sqrt(as_high)) / (PERMUTATIONS + 1), 1.0)
    if not as_high:
        p = min(p, highest_p(float(found.max() / places.std(ddof=1)), most))
    return int(found.argmax()) + 1, p


def highest_p(z: float, most: int) -> float:
    """p of the highest of so many standardized contrasts where no permutation comes near it.

    Normal tails, added up: Hothorn & Lausen (2003), "On the Exact Distribution of Maximally Selected
    Rank Statistics", Computational Statistics & Data Analysis 43(2), the first of their bounds. Far
    out it is too large rather than too small: sums of ranks have an end.
    """
    from scipy.special import ndtr

    return min(most * 2 * float(ndtr(-z)), 1.0)


def contrasts(places: Floats, most: int) -> Floats:
    """|standardized sum of the first k centred ranks|, k = 1 … most, row by row.

    Up to a factor that is the same for every cut of one series.
    """
    import numpy as np

    n = places.shape[1]
    k = np.arange(1, most + 1)
    result: Floats = np.abs(np.cumsum(places[:, :most], axis=1)) / np.sqrt(k * (n - k) / n)
    return result


@functools.lru_cache(maxsize=64)
def permuted_highest(places: tuple[float, ...], most: int) -> Floats:
    """The highest contrast of each permutation; series without ties share it."""
    import numpy as np

    generator = np.random.default_rng((SEED, len(places), most))
    rows = generator.permuted(np.tile(np.asarray(places), (PERMUTATIONS, 1)), axis=1)
    highest: Floats = contrasts(rows, most).max(axis=1)
    return highest
