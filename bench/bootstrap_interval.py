"""The uncertainty of a median, for benchmarks that compare pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def interval_of_the_median(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % percentile bootstrap interval of a median.

    The values are those of pairs, which differ only in what is compared.
    """
    random = np.random.default_rng(1)
    draws = random.choice(np.asarray(values), size=(10_000, len(values)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return float(low), float(high)
