"""The nodes on which a batch could run, as the scheduler reports them before submission."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Node:
    """A node as its scheduler describes it. None marks a value that the scheduler does not
    report."""

    name: str
    features: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    up: bool = True  # neither down nor drained
    idle: bool | None = None
    cores: int | None = None
    watts: float | None = None  # as measured by the scheduler now
    kernel: str | None = None  # as printed by uname -r on the node


@dataclass(frozen=True)
class AvailableNodes:
    """The nodes that a batch may use, and the limits of its jobs there."""

    name: str  # `partition main`, `this machine`
    nodes: tuple[Node, ...]
    known_features: frozenset[str] = frozenset()  # of all nodes there, requested or not
    missing_feature: str | None = None  # a requested feature that no node there has
    max_nodes: int | None = None  # of one job
    max_time_s: int | None = None
    up: bool = True
    is_all: bool = True  # no job can have more than these nodes
    any_cores: int | None = None  # cores of any node there, even one that does not fit

    @property
    def up_nodes(self) -> int:
        """Return the number of nodes that can run a job now or later."""
        return sum(node.up for node in self.nodes)

    @property
    def idle_nodes(self) -> int | None:
        """Return the number of idle nodes, or None if the scheduler does not report it."""
        known = [node.idle for node in self.nodes]
        return None if None in known else sum(bool(idle) for idle in known)

    @property
    def cores(self) -> int | None:
        """Return the number of cores of a node; the largest number where nodes differ."""
        return max_known(node.cores for node in self.nodes) if self.nodes else self.any_cores

    @property
    def watts(self) -> float | None:
        """Return the mean power (W) of a node now, over the nodes that report it."""
        known = [node.watts for node in self.nodes if node.watts]
        return sum(known) / len(known) if known else None


def max_known(values: Iterable[int | None]) -> int | None:
    """Return the largest known value, or None if no value is known."""
    return max((value for value in values if value is not None), default=None)


def select_nodes(
    nodes: Iterable[Node], wanted: Iterable[str]
) -> tuple[tuple[Node, ...], str | None]:
    """Return the nodes that have all wanted features, and the first wanted feature that no node
    has."""
    every = tuple(nodes)
    requested = tuple(wanted) if every else ()
    lacking = next(
        (one for one in requested if not any(one in node.features for node in every)), None
    )
    return tuple(node for node in every if node.features.issuperset(requested)), lacking
