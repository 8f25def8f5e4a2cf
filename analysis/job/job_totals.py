"""Totals of a job: sums over its nodes, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.analysis.sources.records import Record
from steelyard.facts.quantities import METRICS

SHARED = "of the whole node, which the job shared"
NOT_SAID = "of the whole node; not known whether the job was alone"


def is_exclusive(record: Record) -> bool | None:
    """Whether the node's usage is the job's own; None: unknown.

    This is always so for a command that no scheduler started.
    """
    if record.get("job.scheduler") == "none":
        return True
    return None if (found := record.get("job.exclusive")) is None else bool(found)


def is_idle(record: Record) -> bool:
    """Whether no step of the job ran on the node.

    It then adds nothing to the usage of processes.
    """
    return record.get("processes.named") is False


def compute_job_total(
    nodes: Sequence[tuple[Record, Mapping[str, Any]]], column: str
) -> tuple[float | None, str | None]:
    """Return the sum over all nodes of a job (the largest value for memory), or None and the
    reason.
    """
    if METRICS[column].is_of_node:
        if reason := find_shared_node_reason([record for record, _ in nodes]):
            return None, reason
        counted = nodes
    else:
        counted = [(record, values) for record, values in nodes if not is_idle(record)]
    found = [values[column] for _, values in counted]
    if not found:
        return None, "no step of the job was on any node"
    if None in found:
        return None, f"not known on {found.count(None)} of {len(nodes)} nodes"
    return float(max(found) if METRICS[column].over_nodes == "LARGEST" else sum(found)), None


def find_shared_node_reason(records: Sequence[Record]) -> str | None:
    """Return why the nodes' energy and network traffic are not the job's; None: they are."""
    alone = [is_exclusive(record) for record in records]
    if False in alone:
        return SHARED
    return NOT_SAID if None in alone else None
