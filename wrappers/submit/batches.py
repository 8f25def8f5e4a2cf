"""Selects the runs of a study's plan that are to be submitted, and groups them in batches."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

from steelyard.analysis.base.level_names import NODE
from steelyard.analysis.sources import study_files
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study import plan, sessions
from steelyard.wrappers.study.factors import PLACED
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.job_settings import ALLOCATION, encode_tag_value
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit import run_state
from steelyard.wrappers.submit.batch_submission import print_message
from steelyard.wrappers.submit.run_state import RunState

AGAIN = ("planned",)
AGAIN_IF_FAILED = ("planned", *run_state.FAILED, *run_state.CANCELLED)


def load_plan(
    study: Study, folder: StudyDir, command: str = "submit"
) -> tuple[list[Run], dict[str, RunState]]:
    """Return the plan, grown from the existing one, and the state of each run of the existing plan.
    Raises UsageError if submitted runs are missing from the study."""
    runs = plan.make_plan(study)
    if not folder.plan.is_file():
        if study.session is not None and (
            change := sessions.describe_changes(folder.path, study.name, runs)
        ):
            print_message(change, command)
        return runs, {}
    states = {entry.run.run_id: entry for entry in run_state.read_run_states(folder, patient=True)}
    submitted = {run_id for entry in ledger.read_submissions(folder) for run_id in entry.run_ids}
    submitted |= {run_id for run_id, entry in states.items() if entry.attempt is not None}
    old = [entry.run for entry in states.values()]
    try:
        grown = plan.grow_plan(old, runs, submitted, plan.order_seed(study))
    except UsageError as error:
        before = study_files.read_plan_as(folder.path, Run)[0].get("file")
        if before in (None, str(study.file.absolute())) or study.file == folder.toml:
            raise
        raise UsageError(
            f"{folder.path} is the study of {before}: {error}", part=str(study.file)
        ) from error
    added = {run.condition_id for run in grown} - {run.condition_id for run in old}
    if submitted and added:
        print_message(
            f"{counted(len(added), 'condition')} {inflect(len(added), 'is', 'are')} new: to be run in "
            "blocks of their own, not interleaved with what was submitted before",
            command,
        )
    return grown, states


def select_runs(
    study: Study, runs: Sequence[Run], states: dict[str, RunState], retry_failed: bool
) -> tuple[list[Run], list[Run]]:
    """Return (the plan, its runs to submit): those never executed and not queued, with
    `retry_failed` failed ones.

    Runs that are submitted again have moved to new blocks."""
    again = AGAIN_IF_FAILED if retry_failed else AGAIN
    missing = {
        run.run_id
        for run in runs
        if run.run_id not in states or needs_run(states[run.run_id], again)
    }
    repeated = {i for i in missing if i in states and states[i].state != "planned"}
    moved = plan.separate_repeated(runs, repeated, missing, plan.order_seed(study))
    last = max((run.block for run in runs), default=0)
    if late := sum(run.block > last for run in moved):
        print_message(
            f"{counted(late, 'run')} {inflect(late, 'is', 'are')} submitted again, in blocks of their own, not interleaved "
            "with what was submitted before"
        )
    return moved, [run for run in moved if run.run_id in missing]


def needs_run(entry: RunState, again: Sequence[str]) -> bool:
    """Return whether a run is to be submitted. A run without an attempt is, if its job was
    cancelled or lost or its node failed."""
    never_began = entry.attempt is None and entry.state in ("cancelled", "lost", "node_fail")
    return entry.state in again or never_began


def make_batches(
    study: Study, folder: StudyDir, runs: Sequence[Run], scheduler: Scheduler
) -> list[Batch]:
    """Return a batch per block and set of scheduler options, split at the scheduler's limit of
    runs."""
    most = scheduler.max_runs() or len(runs) or 1
    begun = len(ledger.read_submissions(folder))
    batches: list[Batch] = []
    for group in group_runs(study, runs, scheduler):
        for start in range(0, len(group), most):
            chunk = group[start : start + most]
            batches.append(make_batch(study, folder, chunk, begun + len(batches), scheduler))
    return batches


def group_runs(study: Study, runs: Sequence[Run], scheduler: Scheduler) -> list[list[Run]]:
    """Group runs by block and by their scheduler options; local runs by block only."""
    found: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        job = run.resolve_job(study.job)
        options = (
            *(getattr(job, key) for key in ALLOCATION),
            condition_options(study, run, scheduler),
        )
        found.setdefault((run.block, *(() if scheduler.runs_here else options)), []).append(run)
    by_block = itertools.groupby(found.values(), key=lambda group: group[0].block)
    # The set that is submitted first gets its nodes first, so each block starts with another set.
    return [g for block, sets in by_block for g in rotate_sets(list(sets), block)]


def rotate_sets(sets: list[list[Run]], block: int) -> list[list[Run]]:
    """Return the sets, rotated so that each block starts with another one."""
    first = block % len(sets)
    return sets[first:] + sets[:first]


def condition_options(study: Study, run: Run, scheduler: Scheduler) -> tuple[str, ...]:
    """Return the scheduler options of the run's condition."""
    placing: list[str] = []
    for level in (str(run.condition[name]) for name in PLACED if name in run.condition):
        given = study.place[level].get(scheduler.name)
        placing += scheduler.place_options(level, given, run.resolve_job(study.job).nodes)
    if NODE in run.condition:
        placing += scheduler.node_options(str(run.condition[NODE]))
    return (*placing, *scheduler.condition_options(run.condition))


def make_batch(
    study: Study, folder: StudyDir, runs: Sequence[Run], number: int, scheduler: Scheduler
) -> Batch:
    """Return a batch of runs with equal requests; its id identifies block and content."""
    run_ids = tuple(run.run_id for run in runs)
    content = "\n".join([str(folder.path), str(number), *run_ids])
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    first = runs[0]
    job = first.resolve_job(study.job)
    return Batch(
        submission_id=f"b{first.block:03}-{digest}",
        study=study.name,
        study_dir=folder.path,
        block=first.block,
        nodes=job.nodes,
        options=condition_options(study, first, scheduler),
        tags=common_tags(study, runs),
        run_ids=run_ids,
        job=job,
        conditions={run.run_id: netem.make_conditions(run.condition) for run in runs},
    )


def common_tags(study: Study, runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Return study, block, and the factor levels that all these runs share."""
    tags = [("study", study.name), ("block", str(runs[0].block))]
    for name, level in runs[0].condition.items():
        if all(run.condition.get(name) == level for run in runs):
            text = runs[0].launcher.text if name == "launcher" else str(level)
            tags.append((name, encode_tag_value(text)))
    return tuple(tags)
