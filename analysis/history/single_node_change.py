"""Decides whether a change of a figure is that of a single node."""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.hypothesis_tests import LEVEL
from steelyard.analysis.stats.overhead import Overhead, compute_overhead

SMALL_SHARE = 0.1  # of the node's own change: a smaller one of the others counts as none


@dataclass(frozen=True, slots=True)
class NodeShare:
    """A node and the change on it; `others` is the change of the runs without it."""

    node: str
    own: Overhead
    others: Overhead


@dataclass(frozen=True, slots=True)
class SessionSums:
    """Sum and number of a session's values, and of those of each node."""

    total: float
    number: int
    of_nodes: dict[str, tuple[float, int]]


Sessions = Sequence[Sequence[tuple[float, Sequence[str]]]]  # in each (value, its nodes)


def find_single_node(before: Sessions, after: Sessions) -> NodeShare | None:
    """Return the one node whose runs changed while the runs without it did not, or None.

    A session's mean is one value, since runs of a session share the effects of that day. Fieller's
    intervals, as for overheads, corrected for the number of nodes (Bonferroni), decide: the
    intervals of the node and of the others do not overlap, and that of the others contains 0, or
    their change is below a tenth of the node's. The result has uncorrected intervals.
    """
    sums = [[sum_session(one) for one in side] for side in (after, before)]
    names = sorted({name for side in sums for one in side for name in one.of_nodes})
    confidence = 1 - LEVEL / max(len(names), 1)
    farthest = heapq.nlargest(2, names, key=lambda name: estimate_change(name, sums))
    alone = [
        name
        for name in farthest
        if (one := compute_share(name, sums, confidence)) and is_single_node_change(one)
    ]
    return compute_share(alone[0], sums, CONFIDENCE) if len(alone) == 1 else None


def estimate_change(node: str, sums: Sequence[Sequence[SessionSums]]) -> float:
    """Return how far the node's mean moved; 0 if a side is missing.

    A single node's change is the largest.
    """
    after, before = (compute_node_means(node, side) for side in sums)
    if not after or not before:
        return 0.0
    return abs(statistics.fmean(after) - statistics.fmean(before))


def sum_session(values: Sequence[tuple[float, Sequence[str]]]) -> SessionSums:
    """Sum the values of one session; a run on several nodes counts for each."""
    of_nodes: dict[str, tuple[float, int]] = {}
    for value, nodes in values:
        for node in set(nodes):
            total, number = of_nodes.get(node, (0.0, 0))
            of_nodes[node] = total + value, number + 1
    return SessionSums(math.fsum(value for value, _ in values), len(values), of_nodes)


def compute_share(
    node: str, sums: Sequence[Sequence[SessionSums]], confidence: float
) -> NodeShare | None:
    """Compare the sessions after and before for one node; None if one of the four groups is
    empty.
    """
    own = [compute_node_means(node, side) for side in sums]
    others = [compute_other_means(node, side) for side in sums]
    if not all((*own, *others)):
        return None
    return NodeShare(
        node, *(compute_overhead(one, base, confidence) for one, base in (own, others))
    )


def compute_node_means(node: str, side: Sequence[SessionSums]) -> list[float]:
    """Return the mean of each session that has runs with the node."""
    found = [one.of_nodes[node] for one in side if node in one.of_nodes]
    return [total / number for total, number in found]


def compute_other_means(node: str, side: Sequence[SessionSums]) -> list[float]:
    """Return the mean of each session that has runs without the node."""
    means = []
    for one in side:
        total, number = one.of_nodes.get(node, (0.0, 0))
        if one.number > number:
            means.append((one.total - total) / (one.number - number))
    return means


def is_single_node_change(share: NodeShare) -> bool:
    """Return whether the change is that of this node alone."""
    own, others = share.own, share.others
    if own.value is None or own.low is None or own.high is None:
        return False
    if others.value is None or others.low is None or others.high is None:
        return False
    if own.low <= others.high and others.low <= own.high:
        return False
    holds_0 = others.low <= 0 <= others.high
    return holds_0 or abs(others.value) < SMALL_SHARE * abs(own.value)
