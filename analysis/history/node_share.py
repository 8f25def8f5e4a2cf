"""Is a change of a figure that of a single node?"""

from __future__ import annotations

import heapq
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import CONFIDENCE
from steelyard.analysis.stats.overhead import Overhead, compute_overhead
from steelyard.analysis.stats.significance_tests import LEVEL

SMALL_SHARE = 0.1  # of the node's own change, up to which the others are unchanged beside it


@dataclass(frozen=True, slots=True)
class NodeShare:
    """The node, and what changed on it; `others`: the runs without it."""

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
    """The one node whose runs changed while the runs without it did not; None: there is no such node.

    A session's mean is one value, since runs of a session share what that day had. Fieller's
    intervals, as of overheads, corrected for the number of nodes (Bonferroni), decide: the node's and
    the others' have nothing in common, and the others' holds 0, or their change is under a tenth of the
    node's. What is returned has plain intervals.
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
    """How far its mean moved: a single node's change is the farthest. 0 where a side is missing."""
    after, before = (compute_node_means(node, side) for side in sums)
    if not after or not before:
        return 0.0
    return abs(statistics.fmean(after) - statistics.fmean(before))


def sum_session(values: Sequence[tuple[float, Sequence[str]]]) -> SessionSums:
    """Of one session; a run of several nodes counts for each."""
    of_nodes: dict[str, tuple[float, int]] = {}
    for value, nodes in values:
        for node in set(nodes):
            total, number = of_nodes.get(node, (0.0, 0))
            of_nodes[node] = total + value, number + 1
    return SessionSums(math.fsum(value for value, _ in values), len(values), of_nodes)


def compute_share(
    node: str, sums: Sequence[Sequence[SessionSums]], confidence: float
) -> NodeShare | None:
    """Of one node, the sessions after and before; None where one of the four groups is empty."""
    own = [compute_node_means(node, side) for side in sums]
    others = [compute_other_means(node, side) for side in sums]
    if not all((*own, *others)):
        return None
    return NodeShare(
        node, *(compute_overhead(one, base, confidence) for one, base in (own, others))
    )


def compute_node_means(node: str, side: Sequence[SessionSums]) -> list[float]:
    """Of each session that has runs with the node."""
    found = [one.of_nodes[node] for one in side if node in one.of_nodes]
    return [total / number for total, number in found]


def compute_other_means(node: str, side: Sequence[SessionSums]) -> list[float]:
    """Of each session that has runs without the node."""
    means = []
    for one in side:
        total, number = one.of_nodes.get(node, (0.0, 0))
        if one.number > number:
            means.append((one.total - total) / (one.number - number))
    return means


def is_single_node_change(share: NodeShare) -> bool:
    """Whether the change is this node's."""
    own, others = share.own, share.others
    if own.value is None or own.low is None or own.high is None:
        return False
    if others.value is None or others.low is None or others.high is None:
        return False
    if own.low <= others.high and others.low <= own.high:
        return False
    holds_0 = others.low <= 0 <= others.high
    return holds_0 or abs(others.value) < SMALL_SHARE * abs(own.value)
