"""The preview of a study before submission, for `submit --dry-run` and `check`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.summary import earlier_runs
from steelyard.analysis.summary.earlier_runs import EarlierRuns
from steelyard.jobscripts.registry import Benchmark
from steelyard.wrappers.base.errors import MissingError, SteelyardError
from steelyard.wrappers.launchers import launcher_checks
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers.available_nodes import AvailableNodes
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study import sessions
from steelyard.wrappers.study.benchmarks import list_uncompared, variants_without_factor
from steelyard.wrappers.study.factors import PLACED, has_mpi
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.job_settings import ALLOCATION
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit import (
    cost_estimate,
    node_kernel_checks,
    program_checks,
    scheduler_checks,
    stop_rule,
)
from steelyard.wrappers.submit.batch_submission import chain_batches, find_last_active
from steelyard.wrappers.submit.batches import load_plan, make_batch, make_batches, select_runs
from steelyard.wrappers.submit.cost_estimate import Cost
from steelyard.wrappers.submit.run_state import RunState
from steelyard.wrappers.submit.scheduler_checks import Problem

States = Mapping[str, RunState]


@dataclass(frozen=True)
class StudyPreview:
    """All runs of a study, those to submit, and the problems found."""

    study: Study
    folder: StudyDir
    scheduler: Scheduler
    runs: Sequence[Run]
    states: States
    missing: Sequence[Run]
    batches: Sequence[Batch]
    problems: Sequence[Problem]
    kernels: Mapping[str, Sequence[str]]  # nodes by release, with the factor kernel_release

    def render_scripts(self) -> list[tuple[str, str]]:
        """Return the scripts as they would be submitted; JOBID is printed for a job id that is not
        known yet."""
        after, found = find_last_active(self.folder, self.scheduler), []
        for batch in self.batches:
            text = self.scheduler.render_script(batch, chain_batches(batch, after))
            found.append((batch.submission_id, text))
            after = "JOBID"
        return found

    def estimate_cost(self, earlier: EarlierRuns, node_watts: float | None = None) -> Cost:
        """Return the cost of all runs that are new, waiting or running."""
        return estimate_study_cost(
            self.study, self.runs, self.states, self.missing, self.scheduler, self.folder,
            earlier, node_watts,
        )  # fmt: skip


def make_preview(
    study: Study, folder: StudyDir, scheduler: Scheduler, retry_failed: bool = False
) -> StudyPreview:
    """Return the preview; writes nothing and submits nothing."""
    study = stop_rule.read_grown_study(study, folder)
    runs, states = load_plan(study, folder, "check")
    runs, missing = select_runs(study, runs, dict(states), retry_failed)
    batches = make_batches(study, folder, missing, scheduler)
    problems = [
        *find_local_problems(study, missing, scheduler),
        *scheduler_checks.find_problems(study, missing, batches, scheduler),
    ]
    doubt = (
        None
        if scheduler.runs_here
        else node_kernel_checks.check_network_support(batches, scheduler)
    )
    problems += [] if doubt is None else [Problem(doubt, sure=False)]
    problems += find_limit_problem(study, runs, states, missing, scheduler, folder)
    return StudyPreview(study, folder, scheduler, runs, states, missing, batches, problems,
        node_kernel_checks.group_by_release(study, batches, scheduler),
    )  # fmt: skip


def list_notes(study: Study) -> Iterator[str]:
    """Yield notes on comparisons that the study seems to make but will not."""
    for what in list_uncompared(study.variants):
        yield (
            f"{what} has several values in [[benchmark]]: they are variants, which the report does "
            "not compare; as a list in [factors] they are levels, which it does"
        )
    alone = [one.name for one in study.benchmarks().values() if not uses_other_nodes(one)]
    if alone and "nodes" in study.factors:
        yield (
            f"the factor nodes: {', '.join(alone)} runs on the first node of its job, so that its "
            "levels differ in cost only: the factor clients starts one on each node"
        )
    for name, labels in variants_without_factor(study.factors, study.variants).items():
        yield (
            f"the factor {name} says nothing of {node_kernel_checks.format_names(labels)}: measured once for all "
            "of its levels"
        )


def uses_other_nodes(benchmark: Benchmark) -> bool:
    """Return whether the benchmark may start programs on all nodes of its job; a user's command
    may."""
    has_command = any(one.type == "command" for one in benchmark.parameters.values())
    return benchmark.span == "job" or has_mpi(benchmark) or has_command


def find_local_problems(
    study: Study, runs: Sequence[Run], scheduler: Scheduler
) -> Iterator[Problem]:
    """Yield what this machine misses; other nodes may have it."""
    sure = scheduler.runs_here
    where = "" if sure else ", and maybe not on the nodes"
    for what in program_checks.find_missing_programs(study, runs):
        yield Problem(f"not on this machine{where}: {what}", sure)
    yield from program_checks.check_commands(study, runs, sure)
    for folder in find_missing_folders(runs):
        yield Problem(f"the folder {folder} (directory) is not on this machine{where}", sure)
    launchers = list(dict.fromkeys(run.launcher for run in runs))
    try:
        launcher_checks.check_user(launchers)
    except SteelyardError as error:
        yield Problem(str(error), sure=True)
    for why in launcher_checks.list_missing(launchers):
        yield Problem(f"{'here' if sure else 'here, and maybe on the nodes too'}: {why}", sure)
    for why in program_checks.find_missing_in_images(study.benchmarks(), runs):
        yield Problem(why, sure=False)
    if sure:
        for conditions in dict.fromkeys(netem.make_conditions(run.condition) for run in runs):
            try:
                netem.check_on_this_machine(conditions)
            except SteelyardError as error:
                yield Problem(str(error), sure=True)


def find_missing_folders(runs: Sequence[Run]) -> list[str]:
    """Return the benchmarks' working folders that do not exist here."""
    named = dict.fromkeys(str(run.parameters.get("directory") or "") for run in runs)
    return [name for name in named if name.startswith("/") and not Path(name).is_dir()]


def make_node_lookup(
    study: Study, folder: StudyDir, scheduler: Scheduler
) -> Callable[[Run], AvailableNodes]:
    """Return a function for the nodes of a run; it queries the scheduler once per kind of
    condition."""
    known: dict[str, AvailableNodes] = {}

    def nodes_of(run: Run) -> AvailableNodes:
        key = " ".join(str(run.condition.get(name)) for name in ("clients", *ALLOCATION, *PLACED))
        if key not in known:
            try:
                known[key] = scheduler.available_nodes(
                    make_batch(study, folder, [run], 0, scheduler)
                )
            except MissingError:
                known[key] = AvailableNodes("the cluster", ())
        return known[key]

    return nodes_of


def estimate_study_cost(
    study: Study,
    runs: Sequence[Run],
    states: States,
    missing: Sequence[Run],
    scheduler: Scheduler,
    folder: StudyDir,
    earlier: EarlierRuns,
    node_watts: float | None = None,
) -> Cost:
    """Return the cost of all runs that have not ended or are to run again; ended runs are what
    was used.

    A job's time is that of the accounting; without one, that expected from its run's elapsed
    time."""
    spent = earlier_runs.job_seconds(folder.path)
    over: dict[str, tuple[Run, float]] = {}
    for run_id, entry in states.items():
        known = spent.get(run_id)
        if known is None and entry.elapsed_s is not None:
            known = cost_estimate.estimate_job_s(study, entry.elapsed_s)
        if known is not None and entry.state in stop_rule.OVER:
            over[run_id] = entry.run, known
    again = {run.run_id for run in missing}
    return cost_estimate.estimate_cost(
        study,
        [run for run in runs if run.run_id in again or run.run_id not in over],
        list(over.values()),
        earlier,
        make_node_lookup(study, folder, scheduler),
        node_watts,
        scheduler.runs_here,
    )


def read_earlier_runs(folder: StudyDir) -> EarlierRuns:
    """Return the runs that the study has collected; for a session also those of earlier
    sessions."""
    try:
        return earlier_runs.read_earlier_runs(sessions.list_history_folders(folder.path))
    except MissingError:
        return earlier_runs.NONE


def check_core_hours(
    study: Study,
    runs: Sequence[Run],
    states: States,
    missing: Sequence[Run],
    scheduler: Scheduler,
    folder: StudyDir,
) -> None:
    """Raise UsageError for more core-hours than the study allows, if any run is to be submitted."""
    if study.max_core_hours is not None and missing:
        found = estimate_study_cost(
            study, runs, states, missing, scheduler, folder, read_earlier_runs(folder)
        )
        cost_estimate.check_core_hours(study, found)


def find_limit_problem(
    study: Study,
    runs: Sequence[Run],
    states: States,
    missing: Sequence[Run],
    scheduler: Scheduler,
    folder: StudyDir,
) -> list[Problem]:
    """Return what check_core_hours raises as a problem."""
    try:
        check_core_hours(study, runs, states, missing, scheduler, folder)
    except SteelyardError as error:
        return [Problem(str(error), sure=True)]
    return []
