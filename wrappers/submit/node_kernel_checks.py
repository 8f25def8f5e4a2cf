"""Checks before submission that the nodes of a study's runs can apply its network conditions, and
run the kernels of its factor kernel_release."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steelyard.analysis.collect.checks import KERNEL_RELEASE, is_release_of
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.netem import kernel_support, sites
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes, Node
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study

VIRTUAL = "virtual"


def check_network_support(batches: Sequence[Batch], scheduler: Scheduler) -> str | None:
    """Return a warning if this kernel misses a network condition and runs may use any node: on a
    mixed cluster some nodes are like this machine. Else None."""
    anywhere = [batch for batch in batches if not scheduler.selects_nodes(batch)]
    wanted = {one.network for batch in anywhere for one in batch.conditions.values() if one.shapes}
    lacking = next(filter(None, map(check_local_network, sorted(wanted))), None)
    if lacking is None:
        return None
    nodes = scheduler.node_features()
    virtual = sorted(name for name, features in nodes.items() if VIRTUAL in features)
    others = sorted(nodes.keys() - set(virtual))
    if virtual and not others:
        return None
    message = f"network conditions: here, and maybe on some of the nodes, {lacking}"
    if virtual:
        message += (
            f". The runs may come onto {format_names(others)} as well as onto the virtual {format_names(virtual)}: "
            f'[job] constraint = "{VIRTUAL}" keeps them on the latter'
        )
    return message


def check_sites(batches: Sequence[Batch]) -> str | None:
    """Return a warning if this machine misses a sites file, which the nodes may have; else None."""
    wanted = {one.network for batch in batches for one in batch.conditions.values() if one.shapes}
    for name in sorted(filter(None, map(netem.sites_name, wanted))):
        file = sites.FOLDER / f"{name}.sites"
        if not file.exists():
            return (
                f"network conditions: here, and maybe on the nodes, there is no {file}: each node needs "
                f"it for sites={name} (as root: steelyard netem sites {name}.toml --write)"
            )
    return None


def check_local_network(network: str) -> str | None:
    """Return a sentence on what this kernel misses for a specification; None if nothing."""
    for module in kernel_support.list_required_modules(netem.parse_specification(network).spec):
        found = kernel_support.try_module(module)
        if found.there is False:
            return found.message
    return None


def format_names(names: Sequence[str]) -> str:
    """Return the first few names as text."""
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


NOT_TOLD = "not told"


def group_by_release(
    study: Study, batches: Sequence[Batch], scheduler: Scheduler
) -> dict[str, list[str]]:
    """Return the nodes that the study may use, by kernel release; empty without the factor."""
    if KERNEL_RELEASE not in study.factors:
        return {}
    nodes: dict[str, Node] = {}
    for batch in batches:
        try:
            nodes |= {node.name: node for node in scheduler.available_nodes(batch).nodes}
        except MissingError:
            return {}
    found: dict[str, list[str]] = {}
    for name in sorted(nodes):
        found.setdefault(nodes[name].kernel or NOT_TOLD, []).append(name)
    return found


def check_level(study: Study, run: Run, available: AvailableNodes) -> Iterator[tuple[str, bool]]:
    """Yield faults of the nodes for the run's level, each with whether it is certain."""
    level = run.condition.get(KERNEL_RELEASE)
    with_kernel = [node for node in available.nodes if node.kernel is not None]
    others = [node for node in with_kernel if not is_release_of(level, node.kernel)]
    if level is None or not others:
        return
    key = f"{study.file}: factors.{KERNEL_RELEASE}: {shown(level)}"
    listed = format_names([f"{node.name} {node.kernel}" for node in others])
    if len(others) == len(available.nodes):
        remedy = f'[place."{level}"] says where such nodes are'
        yield (
            f"{key}: no node that its runs may have runs it ({listed}): {remedy}",
            available.is_all,
        )
    else:
        text = (
            f"{key}: its runs may come to nodes with another kernel ({listed}), and would be "
            f'invalid: name a feature that these nodes do not have in [place."{level}"]'
        )
        yield text, False


def check_local_levels(
    study: Study, runs: Iterable[Run], available: AvailableNodes
) -> Iterator[tuple[str, bool]]:
    """Check each level once on the only machine of a local scheduler."""
    levels = {str(run.condition.get(KERNEL_RELEASE)): run for run in runs}
    for run in levels.values():
        yield from check_level(study, run, available)
