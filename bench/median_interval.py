"""How well a median is known: for benches that compare in pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def interval_of_the_median(values: Sequence[float]) -> tuple[float, float]:
    """95 % percentile bootstrap; values of pairs, for these are alike but for what is compared."""
    random = np.random.default_rng(1)
    draws = random.choice(np.asarray(values), size=(10_000, len(values)))
    low, high = np.quantile(np.median(draws, axis=1), [0.025, 0.975])
    return float(low), float(high)
