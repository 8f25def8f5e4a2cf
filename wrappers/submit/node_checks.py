"""Checks before submission: can the nodes of a study's runs apply its network conditions?"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.wrappers.netem import kernel as netem_kernel
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.netem import sites
from steelyard.wrappers.schedulers.base import Batch, Scheduler

VIRTUAL = "virtual"


def check_network_support(batches: Sequence[Batch], scheduler: Scheduler) -> str | None:
    """Network conditions that this kernel cannot have, and runs that may go to any node: that says
    little of the nodes, but on a mixed cluster some of them are like this machine."""
    anywhere = [batch for batch in batches if not scheduler.is_placed(batch)]
    wanted = {one.network for batch in anywhere for one in batch.conditions.values() if one.shapes}
    lacking = next(filter(None, map(check_local_network, sorted(wanted))), None)
    if lacking is None:
        return None
    nodes = scheduler.features()
    virtual = sorted(name for name, features in nodes.items() if VIRTUAL in features)
    others = sorted(nodes.keys() - set(virtual))
    if virtual and not others:
        return None
    words = f"network conditions: here, and maybe on some of the nodes, {lacking}"
    if virtual:
        words += (
            f". The runs may come onto {list_names(others)} as well as onto the virtual {list_names(virtual)}: "
            f'[job] constraint = "{VIRTUAL}" keeps them on the latter'
        )
    return words


def check_sites(batches: Sequence[Batch]) -> str | None:
    """A file of sites that this machine lacks; whether the nodes have it, who knows."""
    wanted = {one.network for batch in batches for one in batch.conditions.values() if one.shapes}
    for name in sorted(filter(None, map(netem.sites_of, wanted))):
        file = sites.FOLDER / f"{name}.sites"
        if not file.exists():
            return (
                f"network conditions: here, and maybe on the nodes, there is no {file}: each node needs "
                f"it for sites={name} (as root: steelyard netem sites {name}.toml --write)"
            )
    return None


def check_local_network(network: str) -> str | None:
    """What this machine's kernel lacks for a specification, in a sentence; None: nothing is known."""
    for module in netem_kernel.needed(netem.parse(network).spec):
        found = netem_kernel.can(module)
        if found.there is False:
            return found.says
    return None


def list_names(names: Sequence[str]) -> str:
    """The first names."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
