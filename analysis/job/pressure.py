"""How long a job's processes waited for a CPU, for I/O or memory (PSI, docs/sampler.md), and how much
of its node's CPU time the host of a virtual machine gave to others.

The record's `pressure.*_some_s` is the time in which at least one task waited: of the job's own cgroup
where `pressure.scope` is `job`, else of everybody on the node.
"""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.analysis.collect.job_view import JobView, NodeView

MUCH = (
    0.1  # of its time: more means that another number of CPUs, or another hour, gives other times
)
RESOURCES = {"cpu": "a CPU", "io": "I/O", "memory": "memory"}
STEAL = "steal"


@dataclass(frozen=True, slots=True)
class Pressure:
    """`share` of its time in which a task waited, on the node where that was longest."""

    resource: str
    share: float
    node: str
    is_of_job: bool

    @property
    def text(self) -> str:
        """One sentence."""
        if self.resource == STEAL:
            return f"its node's host gave {100 * self.share:.0f} % of the node's CPU time to others"
        whose = "its processes" if self.is_of_job else "processes on its node, its own or others',"
        return (
            f"{whose} waited for {RESOURCES[self.resource]} in {100 * self.share:.0f} % of its time"
        )


def find_pressures(view: JobView) -> list[Pressure]:
    """A resource each that some node's record tells of."""
    found = []
    for resource in RESOURCES:
        of_nodes = [
            one for node in view.nodes if (one := find_node_pressure(node, resource)) is not None
        ]
        found += [max(of_nodes, key=lambda one: one.share)] if of_nodes else []
    stolen = [one for node in view.nodes if (one := find_steal(node)) is not None]
    return found + ([max(stolen, key=lambda one: one.share)] if stolen else [])


def find_steal(node: NodeView) -> Pressure | None:
    """Of all its CPUs' time what its host gave to others; None: not told."""
    stolen_s, elapsed_s = node.record.get("cpu.node_steal_s"), node.values["elapsed_s"]
    cpus = node.record.get("probe.cpu.cpus_online")
    if (
        not isinstance(stolen_s, int | float)
        or not elapsed_s
        or not isinstance(cpus, int)
        or not cpus
    ):
        return None
    return Pressure(STEAL, min(stolen_s / elapsed_s / cpus, 1.0), node.node, is_of_job=False)


def find_node_pressure(node: NodeView, resource: str) -> Pressure | None:
    """None: the kernel tells none, or the record has no time."""
    waited_s, elapsed_s = node.record.get(f"pressure.{resource}_some_s"), node.values["elapsed_s"]
    if not isinstance(waited_s, int | float) or not elapsed_s:
        return None
    share = min(waited_s / elapsed_s, 1.0)
    return Pressure(resource, share, node.node, node.record.get("pressure.scope") == "job")


def find_cpu_pressure(view: JobView) -> Pressure | None:
    """Of the CPU, where it was much: others on the node, or on its host, had it."""
    return next(
        (
            one
            for one in find_pressures(view)
            if one.resource in ("cpu", STEAL) and one.share > MUCH
        ),
        None,
    )
