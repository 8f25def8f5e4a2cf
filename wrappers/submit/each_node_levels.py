"""The levels of `node = "each"`: the nodes that the scheduler has up at the study's first
submission."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from steelyard.analysis.base.level_names import NODE
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
from steelyard.wrappers.schedulers.base import Scheduler
from steelyard.wrappers.study import plan
from steelyard.wrappers.study import study as study_study
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.levels import EACH
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit.batch_submission import print_message
from steelyard.wrappers.submit.batches import make_batch
from steelyard.wrappers.submit.node_kernel_checks import format_names


def draw_nodes(
    study: Study, folder: StudyDir, scheduler: Scheduler, command: str = "submit"
) -> Study:
    """Return the study with its nodes as levels. Nodes of its plan stay, and new ones are printed.
    Raises MissingError if no node is up."""
    recorded = study.drawn.get(NODE)
    if recorded is None:
        return study
    if recorded["levels"]:
        print_new_nodes(study, recorded["levels"], folder, scheduler, command)
        return study
    available = find_available_nodes(study, folder, scheduler)
    up = [node.name for node in available.nodes if node.up]
    down = [node.name for node in available.nodes if not node.up]
    if not up:
        raise MissingError(f'{study.file}: factors.node = "{EACH}": {explain_no_nodes(available)}')
    down_note = f"; not up and left out: {format_names(down)}" if down else ""
    count = counted(len(up), "node")
    print_message(
        f'factors.node = "{EACH}": {count} of {available.name}: {format_names(up)}{down_note}',
        command,
    )
    entry = {"nodes": EACH, "of": len(available.nodes), "levels": up}
    found = study_study.parse_study(study.toml, study.file, {**study.drawn, NODE: entry})
    return replace(found, session=study.session)


def find_available_nodes(study: Study, folder: StudyDir, scheduler: Scheduler) -> AvailableNodes:
    """Return the nodes that the study's runs may use; the factor `node` itself does not restrict
    them."""
    first = plan.make_plan(replace(study, repeat=1))[:1]
    return scheduler.available_nodes(make_batch(study, folder, first, 0, scheduler))


def explain_no_nodes(available: AvailableNodes) -> str:
    """Explain why there is no node, and what to do."""
    if available.missing_feature is not None:
        return f"no node of {available.name} has the feature '{available.missing_feature}'"
    remedy = 'name the nodes, such as node = ["n1", "n2"], or submit when one is up'
    if not available.nodes:
        return f"no nodes of {available.name} that fit are known here: {remedy}"
    return (
        f"none of the {counted(len(available.nodes), 'node')} of {available.name} is up: {remedy}"
    )


def print_new_nodes(
    study: Study, levels: Sequence[str], folder: StudyDir, scheduler: Scheduler, command: str
) -> None:
    """Print the available nodes that are not in the study."""
    try:
        available = find_available_nodes(study, folder, scheduler)
    except MissingError:  # scheduler_checks reports it
        return
    new = [node.name for node in available.nodes if node.up and node.name not in levels]
    if new:
        has = f"keeps the {counted(len(levels), 'node')} of its first submit"
        print_message(
            f'note: factors.node = "{EACH}" {has}; {available.name} also has {format_names(new)}: to add '
            "nodes, list all of them",
            command,
        )
