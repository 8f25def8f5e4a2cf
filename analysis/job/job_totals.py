"""Totals of a job: sums over its nodes, or the reason why there is none; the energy of its GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.sources.records import Record
from steelyard.facts.quantities import METRICS

if TYPE_CHECKING:
    from steelyard.analysis.sources.records import Record


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
    """Return a sum over a job's nodes (the largest value for memory), or None and the reason."""
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


@dataclass(frozen=True, slots=True)
class JobGpus:
    """GPUs of a node with meters. `reason`: why the job's GPUs or their energy are unknown."""

    of_node: int
    of_job: int | None
    names: tuple[str, ...]  # of the job's GPUs, as in energy.zones: "gpu-0"
    source: str | None  # how they are known: docs/formats.md, energy.gpus
    energy_j: float | None
    reason: str | None


def read_job_gpus(record: Record) -> JobGpus | None:
    """Return the job's GPUs on a node; None: no accelerator there has a meter."""
    of_node, of_job = record.get("energy.gpus.of_node"), record.get("energy.gpus.of_job")
    if not isinstance(of_node, int) or not of_node:
        return None
    energy_j = record.get("energy.gpu_energy_j")
    return JobGpus(
        of_node,
        of_job if isinstance(of_job, int) else None,
        list_job_gpus(record.get("energy.zones")),
        record.get("energy.gpus.source"),
        energy_j,
        None if energy_j is not None else record.missing_reason("energy.gpu_energy_j"),
    )


def list_job_gpus(zones: object) -> tuple[str, ...]:
    """Return the names of the job's GPUs."""
    found = zones if isinstance(zones, list) else []
    return tuple(
        str(zone.get("name")) for zone in found if isinstance(zone, dict) and zone.get("of_job")
    )


def sum_energy_or_reason(records: Sequence[Record]) -> tuple[float | None, str | None]:
    """Return the energy and why it is unknown; both None if no node has GPUs."""
    found = [gpus for record in records if (gpus := read_job_gpus(record)) is not None]
    lacking = next((gpus for gpus in found if gpus.energy_j is None), None)
    if lacking is not None:
        return None, lacking.reason or "not known"
    return (sum(gpus.energy_j or 0.0 for gpus in found), None) if found else (None, None)
