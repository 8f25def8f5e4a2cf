"""Checks before submission whether the scheduler would accept the jobs of a study.

`submit` rejects what is certain to fail; `submit --dry-run` and `check` report every problem."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.base.level_names import NODE
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.jobscripts.toml_table import shown
from steelyard.wrappers.base.errors import ConditionError, MissingError
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study.factors import PLACED
from steelyard.wrappers.study.job_settings import ALLOCATION
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit import node_kernel_checks

MOST_ASKED = 40  # most kinds of jobs tested with sbatch, some 20 ms each
NODE_TYPE = PLACED[0]
CONDITIONS = ("--netem", "--cache")  # options that do not select nodes


@dataclass(frozen=True)
class Problem:
    """A problem of a study here; one that is not `sure` may resolve itself."""

    text: str
    sure: bool


def find_problems(
    study: Study, runs: Sequence[Run], batches: Sequence[Batch], scheduler: Scheduler
) -> list[Problem]:
    """Return everything that prevents these batches from running, each problem once."""
    if scheduler.runs_here:
        return [
            *check_local_node_types(runs),
            *check_local_nodes(study, runs),
            *(
                Problem(text, sure)
                for batch in batches[:1]
                for text, sure in node_kernel_checks.check_local_levels(
                    study, runs, scheduler.available_nodes(batch)
                )
            ),
        ]
    by_id = {run.run_id: run for run in runs}
    found: dict[str, Problem] = {}
    every = distinct_batches(batches)
    for batch in every[:MOST_ASKED]:
        for problem in check_batch(study, by_id[batch.run_ids[0]], batch, scheduler):
            found.setdefault(problem.text, problem)
    for problem in find_unknown_nodes(study, runs, every[0], scheduler) if every else ():
        found.setdefault(problem.text, problem)
    return [*found.values(), *describe_unchecked(len(every), scheduler)]


def check_local_node_types(runs: Sequence[Run]) -> Iterator[Problem]:
    """Yield a problem if one machine has several levels of node_type, which then differ in name
    only."""
    levels = sorted({str(run.condition[NODE_TYPE]) for run in runs if NODE_TYPE in run.condition})
    if len(levels) > 1:
        yield Problem(
            f"{NODE_TYPE} = {', '.join(levels)}: without a scheduler all runs are on this machine, so "
            "its levels differ in name only",
            sure=False,
        )


def list_node_levels(runs: Sequence[Run]) -> list[str]:
    """Return the levels of the factor `node`."""
    return list(dict.fromkeys(str(run.condition[NODE]) for run in runs if NODE in run.condition))


def check_local_nodes(study: Study, runs: Sequence[Run]) -> Iterator[Problem]:
    """Yield a problem for levels of the factor `node` other than this machine, the only local
    one."""
    node = os.uname().nodename
    others = [name for name in list_node_levels(runs) if name not in (node, node.partition(".")[0])]
    if others:
        yield Problem(
            f"{study.file}: factors.node: {shown(others[0])}: without a scheduler all runs are on this "
            f"machine, {node}: leave the factor out, or submit to the cluster of that node",
            sure=True,
        )


def find_unknown_nodes(
    study: Study, runs: Sequence[Run], batch: Batch, scheduler: Scheduler
) -> Iterator[Problem]:
    """Yield a problem for each level of the factor node that the scheduler does not have or that is
    down."""
    wanted = list_node_levels(runs)
    try:
        available = (
            scheduler.available_nodes(batch) if wanted else AvailableNodes("the cluster", ())
        )
    except MissingError:  # check_batch reports it
        return
    known = {node.name: node for node in available.nodes}
    for name in wanted if known else ():
        if name not in known:
            yield Problem(
                f"{study.file}: factors.node: {shown(name)}: {available.name} has no such node that fits "
                f"(it has {node_kernel_checks.format_names(sorted(known))})",
                sure=available.is_all or short_name(name) not in map(short_name, known),
            )  # fmt: skip
        elif not known[name].up:
            yield Problem(
                f"{study.file}: factors.node: {shown(name)} is down now: its runs will wait",
                sure=False,
            )


def short_name(node: str) -> str:
    """Return a host's name without its domain, in lower case: PBS accepts all these forms."""
    return node.partition(".")[0].lower()


def describe_unchecked(count: int, scheduler: Scheduler) -> Iterator[Problem]:
    """Yield a problem with the number of kinds of jobs that were not tested with the scheduler."""
    if count > MOST_ASKED:
        yield Problem(
            f"{scheduler.name} was asked about {MOST_ASKED} of the study's {count} kinds of jobs "
            "(options and numbers of nodes), those for different nodes first: nothing is known of "
            f"the other {count - MOST_ASKED}", sure=False,
        )  # fmt: skip


def report_problems(problems: Sequence[Problem], report: Callable[[str], None]) -> None:
    """Pass uncertain problems to `say`. Raises MissingError for the first certain one."""
    for problem in problems:
        if not problem.sure:
            report(f"warning: {problem.text}")
    sure = [problem.text for problem in problems if problem.sure]
    if sure:
        more = f" (and {len(sure) - 1} more: see `steelyard check`)" if len(sure) > 1 else ""
        raise MissingError(f"{sure[0]}{more}")


def distinct_batches(batches: Sequence[Batch]) -> list[Batch]:
    """Return one batch for each set of options; batches for different nodes come first."""
    by_placement: dict[tuple[object, ...], Batch] = {}
    every: dict[tuple[object, ...], Batch] = {}
    for batch in batches:
        placing = tuple(o for o in batch.options if not o.startswith(CONDITIONS))
        size = (batch.nodes, batch.job.cpus_per_node)
        by_placement.setdefault((size, placing), batch)
        every.setdefault((size, batch.options), batch)
    first = list(by_placement.values())
    return first + [batch for batch in every.values() if batch not in first]


def check_batch(study: Study, run: Run, batch: Batch, scheduler: Scheduler) -> Iterator[Problem]:
    """Yield the problems of one kind of jobs: from the known nodes, else from the scheduler's own
    check."""
    try:
        available = scheduler.available_nodes(batch)
    except MissingError as error:
        yield Problem(f"{scheduler.name} does not list its nodes: {error}", sure=False)
        return
    known = list(check_nodes(study, run, batch, available))
    if known:
        yield from known
        return
    rejection = query_rejection(batch, scheduler)
    if rejection is not None:
        waits = available.nodes and available.up_nodes < batch.nodes
        yield Problem(
            f"{list_levels(study, run)}: refused by {scheduler.name}: {rejection}", not waits
        )


def check_nodes(
    study: Study, run: Run, batch: Batch, available: AvailableNodes
) -> Iterator[Problem]:
    """Check the properties of the nodes themselves."""
    if not available.nodes and not available.missing_feature:
        return  # nothing is known of them
    if available.missing_feature is not None:
        yield Problem(explain_missing_feature(study, run, available), sure=True)
        return
    yield from (
        Problem(text, sure) for text, sure in node_kernel_checks.check_level(study, run, available)
    )
    size = size_key(study, run, batch)
    if len(available.nodes) < batch.nodes:
        yield Problem(
            f"{size}: {counted(batch.nodes, 'node')} {inflect(batch.nodes, 'is', 'are')} asked for, and {available.name} has {len(available.nodes)} "
            "that fit", sure=available.is_all,
        )  # fmt: skip
    elif available.max_nodes is not None and available.max_nodes < batch.nodes:
        yield Problem(
            f"{size}: {counted(batch.nodes, 'node')} {inflect(batch.nodes, 'is', 'are')} asked for, and {available.name} allows a job "
            f"{available.max_nodes}", sure=True,
        )  # fmt: skip
    elif available.up_nodes < batch.nodes:
        yield Problem(
            f"{size}: {counted(batch.nodes, 'node')} {inflect(batch.nodes, 'is', 'are')} asked for, and of the {len(available.nodes)} of "
            f"{available.name} {available.up_nodes} are up now: jobs will wait", sure=False,
        )  # fmt: skip
    limit_s = batch.job.time_limit_s
    if limit_s is not None and available.max_time_s is not None and available.max_time_s < limit_s:
        yield Problem(
            f"{study.file}: job.time_limit = {shown(batch.job.time_limit)}: {available.name} allows "
            f"{counted(available.max_time_s // 60, 'minute')}", sure=True,
        )  # fmt: skip
    if not available.up:
        yield Problem(f"{available.name} is not up: jobs will wait", sure=False)


def explain_missing_feature(study: Study, run: Run, available: AvailableNodes) -> str:
    """Return a message that names the level or key whose requested feature no node has."""
    there = ", ".join(sorted(available.known_features)) or "none"
    problem = f"no node of {available.name} has the feature '{available.missing_feature}' (there: {there})"
    placed = [name for name in PLACED if name in run.condition]
    if not placed:
        return f"{study.file}: job.constraint: {problem}"
    keys = ", ".join(f"factors.{name}: {shown(run.condition[name])}" for name in placed)
    tables = " or ".join(f"[place.{format_key(run.condition[name])}]" for name in placed)
    return f'{study.file}: {keys}: {problem}; {tables} slurm = "…" says what this cluster calls it'


def format_key(level: object) -> str:
    """Format a TOML key: `physical`, `"6.1"`."""
    return f'"{level}"' if "." in str(level) else str(level)


def size_key(study: Study, run: Run, batch: Batch) -> str:
    """Return the key that determines a run's number of nodes, for messages."""
    placed = [f"{name} {shown(run.condition[name])}" for name in PLACED if name in run.condition]
    kind = f" with {' and '.join(placed)}" if placed else ""
    if run.clients > 1:
        return f"{study.file}: factors.clients: {run.condition['clients']}{kind}"
    if "nodes" in run.condition:
        return f"{study.file}: factors.nodes: {batch.nodes}{kind}"
    return f"{study.file}: job.nodes = {batch.nodes}{kind}"


def list_levels(study: Study, run: Run) -> str:
    """Return text with the run's levels that become options of the scheduler."""
    names = ("clients", *ALLOCATION, NODE, *PLACED, "network", "cache")
    found = [f"{name} {shown(run.condition[name])}" for name in names if name in run.condition]
    return f"{study.file}: runs with {', '.join(found)}" if found else f"{study.file}: its jobs"


def query_rejection(batch: Batch, scheduler: Scheduler) -> str | None:
    """Return the scheduler's own reason to reject this kind of jobs, or None."""
    try:
        text = scheduler.render_script(batch, None)
    except ConditionError as error:
        return str(error)
    with tempfile.TemporaryDirectory(prefix="steelyard-check-") as folder:
        script = Path(folder) / "job.sh"
        script.write_text(text, encoding="utf-8")
        try:
            return scheduler.rejection_reason(script, batch)
        except MissingError:  # the scheduler is lost: submit reports it
            return None
