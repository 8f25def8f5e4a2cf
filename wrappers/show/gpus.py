"""What the job's own GPUs have used, a line a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.job import gpus
from steelyard.wrappers.show import narrow
from steelyard.wrappers.show.words import joules

if TYPE_CHECKING:
    from steelyard.analysis.collect.one_job import JobView


def print_gpus(view: JobView) -> None:
    """Of nodes whose GPUs have meters."""
    for node in view.nodes:
        found = gpus.of_record(node.record)
        if found is not None:
            narrow.say(f"energy of the job's GPUs on {node.node}: {words(found)}")


def words(found: gpus.JobGpus) -> str:
    """`12.3 kJ (1 of 2: gpu-0)`"""
    if found.energy_j is None:
        return f"not known: {found.reason}"
    names = f": {', '.join(found.names)}" if found.names else ""
    return f"{joules(found.energy_j)} ({found.of_job} of {found.of_node}{names})"
