"""Comparison of each of many nodes with their median, with simultaneous intervals.

The contrasts of the Analysis of Means (Nelson (1982), "Exact Critical Points for the Analysis of
Means", Communications in Statistics A 11(6)), with the median of the nodes' means instead of the
grand mean, so that one slow node does not make the others fast. The critical value is that of the
largest contrast, max-t, of Hothorn, Bretz & Westfall (2008), "Simultaneous Inference in General
Parametric Models", Biometrical Journal 50(3). It is computed by simulating the means and their
pooled variance, because a median has no closed form. All intervals hold together in 95 of 100
studies, so a node that does not differ is called different in at most 5.

The variance is pooled over the nodes; a node whose own runs vary more has its own. What a block
does to all nodes (the hour, the file system) is removed by dividing by the block's median.
"""

from __future__ import annotations

import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.overhead import MIN_RUNS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

MIN_NODES = 3  # with two nodes it is a comparison of two conditions
DRAWS = 4000
SEED = 1  # the same data have the same interval
PART = 250_000  # random numbers per batch

Values = Mapping[Hashable, float]  # of one node, by independent unit: its blocks, else its runs


@dataclass(frozen=True, slots=True)
class Contrast:
    """(mean of the node − median of the nodes' means) / that median, with its interval."""

    value: float
    low: float
    high: float
    n: int

    @property
    def differs(self) -> bool:
        """Whether the interval excludes 0."""
        return not self.low <= 0 <= self.high


def compute_contrasts(
    nodes: Sequence[Values], by_block: bool = False, confidence: float = CONFIDENCE
) -> list[Contrast] | str:
    """Return the contrasts in the order of the nodes, or a sentence on why they cannot be computed.

    With `by_block` the keys of a node are blocks.
    """
    import numpy as np

    if len(nodes) < MIN_NODES:
        return f"fewer than {MIN_NODES} nodes have {MIN_RUNS} runs"
    if min(map(len, nodes)) < MIN_RUNS:
        raise ValueError(f"a node has fewer than {MIN_RUNS} values")
    found = divide_by_block_medians(nodes) if by_block else [list(node.values()) for node in nodes]
    means = np.array([statistics.fmean(values) for values in found])
    middle = float(np.median(means))
    if middle <= 0:
        return "the nodes' median is not above 0"
    errors, degrees = standard_errors(found, by_block)
    if not errors.any():
        return "no node has a spread, and without one there is no test"
    spread, quantile = simulate_quantile(means, errors, degrees, confidence)
    return [
        Contrast(float(m / middle - 1), float(m / middle - 1 - half), float(m / middle - 1 + half), len(v))
        for m, half, v in zip(means, quantile * spread, found, strict=True)
    ]  # fmt: skip


def divide_by_block_medians(nodes: Sequence[Values]) -> list[list[float]]:
    """Return each value divided by the median of its block."""
    by_block: dict[Hashable, list[float]] = {}
    for node in nodes:
        for block, value in node.items():
            by_block.setdefault(block, []).append(value)
    middle = {block: statistics.median(values) for block, values in by_block.items()}
    if min(middle.values()) <= 0:
        return [list(node.values()) for node in nodes]
    return [[value / middle[block] for block, value in node.items()] for node in nodes]


def standard_errors(nodes: Sequence[Sequence[float]], by_block: bool) -> tuple[Floats, int]:
    """Return (standard error of each mean, degrees of freedom of the pooled variance)."""
    import numpy as np

    sizes = np.array([len(values) for values in nodes], dtype=float)
    own = np.array([np.var(values, ddof=1) for values in nodes])
    free = sizes - 1
    pooled = float(free @ own / free.sum())
    if by_block:  # a share of each residual has gone into the block's median
        pooled *= len(nodes) / (len(nodes) - 1)
    degrees = max(int(free.sum()) - (int(sizes.max()) - 1 if by_block else 0), 1)
    return np.sqrt(np.maximum(own, pooled) / sizes), degrees


def simulate_quantile(
    means: Floats, errors: Floats, degrees: int, confidence: float
) -> tuple[Floats, float]:
    """Return (standard error of each contrast, quantile of the largest of their t)."""
    import numpy as np

    chance = np.random.default_rng(SEED)
    middle, at_once = float(np.median(means)), max(PART // len(means), 1)
    changes = []
    for start in range(0, DRAWS, at_once):
        count = min(at_once, DRAWS - start)
        simulated = means + errors * chance.standard_normal((count, len(means)))
        changes.append(simulated / np.median(simulated, axis=1)[:, None] - means / middle)
    change = np.concatenate(changes)
    spread = np.sqrt((change**2).mean(axis=0))
    # A node that is the median in every draw has no error against the median.
    largest = np.max(np.abs(change) / np.where(spread > 0, spread, np.inf), axis=1)
    scale = np.sqrt(degrees / chance.chisquare(degrees, DRAWS))  # the variance is an estimate, too
    return spread, float(np.quantile(largest * scale, confidence))
