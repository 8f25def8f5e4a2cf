"""Nodes against their median: how often all intervals hold at once, and what is found."""

from __future__ import annotations

import numpy as np
import pytest

from steelyard.analysis.stats.node_contrasts import Contrast, compute_contrasts

STUDIES = 80


def study(
    chance: np.random.Generator, means: np.ndarray, n: int, spread: float | np.ndarray, block: float
) -> list[Contrast]:
    """n blocks of every node; `spread` and `block` are shares of the mean."""
    noise = chance.standard_normal((len(means), n)) * np.broadcast_to(spread, len(means))[:, None]
    values = means[:, None] * (1 + noise) * (1 + block * chance.standard_normal(n))
    found = compute_contrasts([dict(enumerate(row)) for row in values.tolist()], by_block=block > 0)
    assert not isinstance(found, str)
    return found


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("means", "n", "spread", "block"),
    [
        (np.full(12, 10.0), 10, 0.02, 0.1),
        (np.full(12, 10.0), 5, 0.02, 0.0),
        (np.full(30, 10.0), 5, 0.02, 0.0),
        (np.r_[np.full(11, 10.0), 10.82], 10, 0.01, 0.1),
        (np.r_[np.full(6, 10.0), np.full(6, 12.0)], 10, 0.02, 0.0),  # two generations
        (np.linspace(9, 11, 13), 10, 0.01, 0.1),
        (np.full(12, 10.0), 10, np.linspace(0.01, 0.03, 12), 0.0),  # noisy and quiet nodes
    ],
)
def test_all_intervals_hold_at_once(
    means: np.ndarray, n: int, spread: float | np.ndarray, block: float
) -> None:
    chance = np.random.default_rng(1)
    truth = means / np.median(means) - 1
    held = false = 0
    for _ in range(STUDIES):
        found = study(chance, means, n, spread, block)
        held += all(c.low <= t <= c.high for c, t in zip(found, truth, strict=True))
        false += any(c.differs for c, t in zip(found, truth, strict=True) if t == 0)
    assert 0.95 <= held / STUDIES <= 1
    assert false / STUDIES <= 0.05


def test_the_intervals_are_not_wider_than_bonferronis_of_nodes_that_are_independent() -> None:
    """Half a width of t(1 − 0.05 / 2K) · √2 · σ / √n would be a comparison with one other node."""
    from scipy.stats import t

    chance, k, n = np.random.default_rng(2), 12, 10
    halves = [
        np.median([c.high - c.low for c in study(chance, np.full(k, 10.0), n, 0.02, 0.0)]) / 2
        for _ in range(30)
    ]
    alone = t.ppf(1 - 0.05 / 2 / k, k * (n - 1)) * 0.02 / np.sqrt(n)
    assert 0.9 * alone < np.mean(halves) < 1.25 * alone


@pytest.mark.parametrize("block", [0.0, 0.1])
def test_a_slow_node_is_found_and_makes_no_other_fast(block: float) -> None:
    chance, alone = np.random.default_rng(3), 0
    for _ in range(50):
        found = study(chance, np.r_[np.full(11, 10.0), 10.82], 10, 0.01, block if block else 0.0)
        alone += [c.differs for c in found] == [False] * 11 + [True]
        assert found[-1].low > 0.05 and found[-1].value == pytest.approx(0.082, abs=0.02)
    assert alone >= 47


def test_the_same_data_have_the_same_intervals() -> None:
    one, two = (study(np.random.default_rng(4), np.full(5, 10.0), 4, 0.02, 0.0) for _ in range(2))
    assert one == two


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ([{1: 1.0, 2: 1.1, 3: 1.2}] * 2, "fewer than 3 nodes have 3 runs"),
        ([{1: 1.0, 2: 1.0, 3: 1.0}] * 3, "no node has a spread, and without one there is no test"),
        ([{1: 0.0, 2: 0.0, 3: 0.0}] * 3, "the nodes' median is not above 0"),
    ],
)
def test_what_cannot_be_compared(nodes: list[dict[int, float]], words: str) -> None:
    assert compute_contrasts(nodes) == words  # type: ignore[arg-type]


def test_a_missing_block_of_a_node_leaves_the_others() -> None:
    nodes = [
        {b: 10.0 * (1 + b / 10) + i / 100 + (b * i % 3) / 100 for b in range(5)} for i in range(4)
    ]
    del nodes[0][3]
    found = compute_contrasts(nodes, by_block=True)  # type: ignore[arg-type]
    assert not isinstance(found, str) and [c.n for c in found] == [4, 5, 5, 5]
    assert all(c.high - c.low < 0.02 for c in found)  # the blocks differ by 40 %
