"""How long a job's processes waited for a CPU, I/O or memory (PSI, docs/sampler.md), and steal
time.

The record's `pressure.*_some_s` is the time in which at least one task waited: of the job's own
cgroup if `pressure.scope` is `job`, else of all on the node. Steal time is the share of a node's
CPU time that the host of a virtual machine gave to others.
"""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.analysis.job.job_view import JobView, NodeView

# Of the elapsed time: above it, another number of CPUs or another hour gives other times.
MUCH = 0.1
RESOURCES = {"cpu": "a CPU", "io": "I/O", "memory": "memory"}
STEAL = "steal"


@dataclass(frozen=True, slots=True)
class Pressure:
    """`share` of the elapsed time in which a task waited, on the node where it is largest."""

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
    """Return a pressure for each resource that some node's record has."""
    found = []
    for resource in RESOURCES:
        of_nodes = [
            one for node in view.nodes if (one := find_node_pressure(node, resource)) is not None
        ]
        found += [max(of_nodes, key=lambda one: one.share)] if of_nodes else []
    stolen = [one for node in view.nodes if (one := find_steal(node)) is not None]
    return found + ([max(stolen, key=lambda one: one.share)] if stolen else [])


def find_steal(node: NodeView) -> Pressure | None:
    """Return the share of a node's CPU time that its host gave to others; None: unknown."""
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
    """Return the pressure on a node; None: the kernel or the record does not have it."""
    waited_s, elapsed_s = node.record.get(f"pressure.{resource}_some_s"), node.values["elapsed_s"]
    if not isinstance(waited_s, int | float) or not elapsed_s:
        return None
    share = min(waited_s / elapsed_s, 1.0)
    return Pressure(resource, share, node.node, node.record.get("pressure.scope") == "job")


def find_cpu_pressure(view: JobView) -> Pressure | None:
    """Return the pressure on CPUs, or steal, if it is above MUCH; None otherwise."""
    return next(
        (
            one
            for one in find_pressures(view)
            if one.resource in ("cpu", STEAL) and one.share > MUCH
        ),
        None,
    )
