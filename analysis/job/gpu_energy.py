"""Reads the GPUs of a job on a node and their energy from its record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.analysis.sources.records import Record


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
