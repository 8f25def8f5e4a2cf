"""Estimates what a study will cost: node time, core-hours, joules, time to the end.

The estimate uses earlier runs of the same benchmarks from a database; without any, the time limit
is the maximum. A value that cannot be estimated is None, with a reason."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.analysis.summary.earlier_runs import EarlierRuns, MeasuredCost
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
from steelyard.wrappers.study.job_settings import ALLOCATION, Job
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study

S_PER_H = 3600.0


@dataclass(frozen=True)
class RunCost:
    """One run's cost: nodes, cores per node, expected and maximum seconds, joules."""

    nodes: int
    cores: int | None
    expected_s: float | None
    most_s: float | None
    joules: float | None


@dataclass(frozen=True)
class ScaleCost:
    """The cost of all remaining runs at one scale."""

    levels: dict[str, Any]  # of the factors that are scales
    nodes: int  # of each run
    runs: int
    core_hours: float | None
    core_hours_at_most: float | None


@dataclass(frozen=True)
class Cost:
    """The cost of all remaining runs; `missing` has a reason for each None."""

    runs: int
    expected_s: float | None  # of all runs in sequence
    core_hours: float | None
    core_hours_at_most: float | None
    core_hours_used: float | None  # by runs that have ended
    energy_j: float | None
    end_s: float | None  # from now, on the nodes that are idle now
    end_all_s: float | None  # if all of its nodes are free
    idle_nodes: int | None
    known_nodes: int | None
    earlier: Mapping[str, int]  # number of runs, by their similarity to the earlier runs
    scales: list[ScaleCost] = field(default_factory=list)  # empty without factors that are scales
    place: str | None = None  # where its first run may execute: `partition main`
    node_cores: int | None = None  # of a node there
    most_nodes: int | None = None  # of a job there
    missing: dict[str, str] = field(default_factory=dict)

    @property
    def bound(self) -> float | None:
        """The core-hours that count against max_core_hours: used, and expected or at most."""
        to_come = self.core_hours if self.core_hours is not None else self.core_hours_at_most
        return None if to_come is None else to_come + (self.core_hours_used or 0.0)


def estimate_cost(
    study: Study,
    runs: Sequence[Run],
    over: Sequence[tuple[Run, float | None]],
    earlier: EarlierRuns,
    nodes_of: Callable[[Run], AvailableNodes],
    node_watts: float | None = None,
    runs_here: bool = False,
) -> Cost:
    """Return the cost of `runs`. `over` are the ended runs, with the seconds of their jobs."""
    by_basis: dict[str, int] = {}
    pieces = [
        estimate_run(study, run, earlier, nodes_of(run), node_watts, by_basis, runs_here)
        for run in runs
    ]
    nodes = nodes_of(runs[0]) if runs else None
    idle, known = (nodes.idle_nodes, len(nodes.nodes)) if nodes else (None, None)
    used = [core_hours(ended_run_cost(study, run, s, nodes_of(run), runs_here)) for run, s in over]
    limit = 1 if runs_here else study.job.at_once
    cost = Cost(
        runs=len(runs),
        expected_s=sum_known(one.expected_s for one in pieces),
        core_hours=sum_known(core_hours(one) for one in pieces),
        core_hours_at_most=sum_known(core_hours(one, most=True) for one in pieces),
        core_hours_used=sum_known(used),
        energy_j=sum_known(one.joules for one in pieces),
        end_s=estimate_end_s(pieces, idle, limit),
        end_all_s=estimate_end_s(pieces, known, limit),
        idle_nodes=idle,
        known_nodes=known,
        earlier=by_basis,
        scales=costs_by_scale(study, runs, pieces),
        place=nodes.name if nodes else None,
        node_cores=nodes.cores if nodes else None,
        most_nodes=nodes.max_nodes if nodes else None,
    )
    return add_reasons(cost, pieces, earlier)


def costs_by_scale(study: Study, runs: Sequence[Run], pieces: Sequence[RunCost]) -> list[ScaleCost]:
    """Return the cost of each combination of the levels that a study scales over, smallest scale
    first."""
    names = scale_factors(study)
    found: dict[tuple[Any, ...], list[RunCost]] = {}
    for run, one in zip(runs, pieces, strict=True):
        levels = tuple(run.condition.get(name) for name in names)
        if names and None not in levels:
            found.setdefault(levels, []).append(one)
    return [
        ScaleCost(
            levels=dict(zip(names, levels, strict=True)),
            nodes=members[0].nodes,
            runs=len(members),
            core_hours=sum_known(core_hours(one) for one in members),
            core_hours_at_most=sum_known(core_hours(one, most=True) for one in members),
        )
        for levels, members in sorted(found.items())
    ]


def scale_factors(study: Study) -> tuple[str, ...]:
    """Return the factors of [study] scaling, else those that change a run's nodes, tasks or
    processors."""
    if study.scaling is not None:
        return study.scaling.over
    return tuple(name for name in ALLOCATION if name in study.factors)


def estimate_run(
    study: Study,
    run: Run,
    earlier: EarlierRuns,
    available: AvailableNodes,
    node_watts: float | None,
    by_basis: dict[str, int],
    runs_here: bool,
) -> RunCost:
    """Estimate a run's cost by similar runs, and count their similarity in `near`."""
    cost, basis = earlier.of(run.benchmark, run.parameters, run.condition)
    by_basis[basis] = by_basis.get(basis, 0) + 1
    expected_s = None if cost is None else estimate_job_s(study, mean(cost.elapsed_s))
    job = run.resolve_job(study.job)
    nodes = 1 if runs_here else job.nodes
    watts = node_watts or available.watts
    return RunCost(
        nodes=nodes,
        cores=count_cores(job, available),
        expected_s=expected_s,
        most_s=study.job.time_limit_s or available.max_time_s,
        joules=estimate_energy_j(cost, expected_s, nodes, watts),
    )


def estimate_job_s(study: Study, run_s: float) -> float:
    """Return the duration (s) of a job whose measured run takes `run_s`."""
    return run_s * (1 + study.job.warm_up) + 2 * study.job.idle_s


def estimate_energy_j(
    cost: MeasuredCost | None, expected_s: float | None, nodes: int, watts: float | None
) -> float | None:
    """Return the mean energy (J) of earlier runs, else the nodes' power times the expected time."""
    if cost is not None and cost.energy_j:
        return mean(cost.energy_j)
    return None if watts is None or expected_s is None else watts * expected_s * nodes


def ended_run_cost(
    study: Study, run: Run, seconds: float | None, available: AvailableNodes, runs_here: bool
) -> RunCost:
    """Return the cost of a run that has ended."""
    job = run.resolve_job(study.job)
    return RunCost(
        1 if runs_here else job.nodes, count_cores(job, available), seconds, seconds, None
    )


def count_cores(job: Job, available: AvailableNodes) -> int | None:
    """Return a job's cores on each node: all if it is exclusive, else as many as its tasks have
    there."""
    return available.cores if job.exclusive else job.cpus_per_node or 1


def core_hours(one: RunCost, most: bool = False) -> float | None:
    """Return the core-hours of a run, expected or at most."""
    seconds = one.most_s if most else one.expected_s
    return (
        None if seconds is None or one.cores is None else one.nodes * one.cores * seconds / S_PER_H
    )


def estimate_end_s(
    pieces: Sequence[RunCost], nodes: int | None, at_once: int | None
) -> float | None:
    """Return when (s) the last run ends if runs start in their order, each when its nodes are
    free."""
    if not pieces:
        return 0.0
    times = [(one.nodes, one.expected_s) for one in pieces]
    if not nodes or any(s is None or wanted > nodes for wanted, s in times):
        return None
    free, now = nodes, 0.0
    busy: list[tuple[float, int]] = []
    for wanted, seconds in times:
        while free < wanted or (at_once is not None and len(busy) >= at_once):
            now, freed = heapq.heappop(busy)
            free += freed
        free -= wanted
        heapq.heappush(busy, (now + (seconds or 0.0), wanted))
    return max((until for until, _ in busy), default=0.0)


def add_reasons(cost: Cost, pieces: Sequence[RunCost], earlier: EarlierRuns) -> Cost:
    """Add reasons for values that are None."""
    unknown = sum(one.expected_s is None for one in pieces)
    no_time = (
        f"of {counted(unknown, 'run')} there is no earlier run of the same benchmark: submit a small study of "
        "it first and `steelyard collect` it, or name one by --earlier"
    )
    no_cores = "the scheduler does not report how many cores a node has"
    reasons = {
        "expected_s": no_time,
        "core_hours": no_time if cost.expected_s is None else no_cores,
        "core_hours_at_most": "no [job] time_limit, and the partition has none"
        if any(one.most_s is None for one in pieces)
        else no_cores,
        "energy_j": no_time
        if cost.expected_s is None and not earlier.studies
        else "no earlier run has joules, and no power is known: give --node-power WATTS",
        "end_s": no_time
        if cost.expected_s is None
        else "the scheduler does not report which nodes are idle"
        if cost.idle_nodes is None
        else f"{counted(cost.idle_nodes, 'node')} {inflect(cost.idle_nodes, 'is', 'are')} idle now, fewer than a run needs",
    }
    for name, why in reasons.items():
        if getattr(cost, name) is None:
            cost.missing[name] = why
    return cost


def check_core_hours(study: Study, cost: Cost) -> None:
    """Raise UsageError if a study needs more core-hours than it allows, or if that is unknown."""
    limit = study.max_core_hours
    if limit is None:
        return
    if cost.bound is None:
        why = cost.missing.get("core_hours_at_most", "")
        raise UsageError(
            f"{study.file}: study.max_core_hours = {limit:g}: what the runs may take cannot be "
            f"estimated: {why}: give [job] time_limit",
            part="study.max_core_hours",
        )
    if cost.bound > limit:
        how = "expected" if cost.core_hours is not None else "possible by [job] time_limit"
        used = f", {cost.core_hours_used:.3g} of them used" if cost.core_hours_used else ""
        raise UsageError(
            f"{study.file}: study.max_core_hours = {limit:g}: {cost.bound:.3g} core-hours are "
            f"{how}{used}: fewer repeats or levels, a shorter time_limit, or a larger limit",
            part="study.max_core_hours",
        )


def sum_known(values: Iterable[float | None]) -> float | None:
    """The sum; None if any value is unknown."""
    known = list(values)
    return None if None in known else sum(value or 0.0 for value in known)


def mean(values: Sequence[float]) -> float:
    """The mean of at least one value."""
    return sum(values) / len(values)
