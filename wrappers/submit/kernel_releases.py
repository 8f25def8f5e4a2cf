"""The factor kernel_release, before anything is handed in: which nodes run which kernel, and whether
the nodes of a level run what it says. Afterwards each run is checked by its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from steelyard.analysis.collect.level_checks import KERNEL_RELEASE, is_release_of
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes, Node
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit.node_checks import list_names

NOT_TOLD = "not told"


def group_by_release(
    study: Study, batches: Sequence[Batch], scheduler: Scheduler
) -> dict[str, list[str]]:
    """The nodes that the study may have, by what they run; nothing without the factor."""
    if KERNEL_RELEASE not in study.factors:
        return {}
    nodes: dict[str, Node] = {}
    for batch in batches:
        try:
            nodes |= {node.name: node for node in scheduler.place(batch).nodes}
        except MissingError:
            return {}
    found: dict[str, list[str]] = {}
    for name in sorted(nodes):
        found.setdefault(nodes[name].kernel or NOT_TOLD, []).append(name)
    return found


def check_level(study: Study, run: Run, place: AvailableNodes) -> Iterator[tuple[str, bool]]:
    """What is wrong with the nodes of the run's level, in words, and whether it is sure."""
    level = run.condition.get(KERNEL_RELEASE)
    told = [node for node in place.nodes if node.kernel is not None]
    others = [node for node in told if not is_release_of(level, node.kernel)]
    if level is None or not others:
        return
    key = f"{study.file}: factors.{KERNEL_RELEASE}: {shown(level)}"
    listed = list_names([f"{node.name} {node.kernel}" for node in others])
    if len(others) == len(place.nodes):
        remedy = f'[place."{level}"] says where such nodes are'
        yield f"{key}: no node that its runs may have runs it ({listed}): {remedy}", place.is_all
    else:
        text = (
            f"{key}: its runs may come to nodes with another kernel ({listed}), and would be "
            f'invalid: name a feature that these nodes do not have in [place."{level}"]'
        )
        yield text, False


def check_local_levels(
    study: Study, runs: Iterable[Run], place: AvailableNodes
) -> Iterator[tuple[str, bool]]:
    """On a machine that is all there is: each level once."""
    levels = {str(run.condition.get(KERNEL_RELEASE)): run for run in runs}
    for run in levels.values():
        yield from check_level(study, run, place)
