"""Turns a study into jobs; run again, it adds only what is missing."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steelyard.jobscripts import registry, runscript
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.launchers import launcher as launchers
from steelyard.wrappers.launchers import needs as launcher_checks
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers import known, ledger
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.benchmarks import uncompared
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.job import tag_value
from steelyard.wrappers.study.plan import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit import nodes as submit_nodes
from steelyard.wrappers.submit import programs as submit_programs
from steelyard.wrappers.submit import status
from steelyard.wrappers.submit import stop as submit_stop
from steelyard.wrappers.submit.hand_in import chained, hand_in, last_active, recover, say

AGAIN = ("planned",)
AGAIN_IF_FAILED = ("planned", *status.FAILED)


@dataclass(frozen=True)
class Outcome:
    """What a call of submit did, or in a dry run would do."""

    study: str
    study_dir: str
    scheduler: str
    runs: int
    submitted: int
    submissions: list[str]
    recovered: list[str]
    failed: int  # of local runs: they are over
    seconds: float


def submit(
    study: Study,
    study_dir: Path,
    scheduler_name: str,
    retry_failed: bool = False,
    scripts: list[tuple[str, str]] | None = None,
) -> Outcome:
    """Submit what is missing. A dry run adds (submission id, script) to `scripts`, writes nothing."""
    begin = time.monotonic()
    folder = StudyDir(study_dir.absolute())
    scheduler = known.by_name(scheduler_name, folder.path)
    known.check_options(study, type(scheduler))
    check_folder(folder.path, scheduler)
    scheduler = reachable(scheduler, dry=scripts is not None)
    advise(study)
    if scripts is not None:
        study = submit_stop.so_far(study, folder)
        runs, states = planned(study, folder)
        batches = make_batches(study, folder, wanted(runs, states, retry_failed), scheduler)
        warn(batches, scheduler)
        scripts += dry_run(batches, scheduler, last_active(folder, scheduler))
        return outcome(study, folder, scheduler, runs, batches, [], begin)
    with ledger.locked(folder):
        recovered = recover(folder, study, scheduler)
        study = submit_stop.grown(study, folder, say)
        runs, states = planned(study, folder)
        missing = wanted(runs, states, retry_failed)
        check_programs(study, missing, scheduler)
        check_conditions(missing, scheduler)
        batches = make_batches(study, folder, missing, scheduler)
        for batch in batches:  # what cannot be asked for is said before anything is written
            scheduler.script(batch, None)
        warn(batches, scheduler)
        write_study(study, folder, runs, missing)
        with netem.ending_on_sigterm():  # as `cancel` ends a local one, Ctrl-C ignored or not
            hand_in(folder, batches, scheduler)
    failed = status.snapshot(folder.path).failed if scheduler.runs_here else 0
    return outcome(study, folder, scheduler, runs, batches, recovered, begin, failed)


def advise(study: Study) -> None:
    """Says what the study will not compare though it looks as if it should."""
    for what in uncompared(study.variants):
        say(
            f"note: {what} has several values in [[benchmark]]: they are variants, which the "
            "report does not compare; as a list in [factors] they are levels, which it does"
        )


def check_folder(path: Path, scheduler: Scheduler) -> None:
    """UsageError for a name under which jobs could only fail, each by itself and late."""
    bad = {"\n", "\r", *scheduler.not_in_paths} & set(str(path))
    if bad:
        raise UsageError(
            f"the study's folder {str(path)!r} has {', '.join(sorted(map(repr, bad)))} in its "
            "name, which cannot be handed to jobs: choose another one, with --dir"
        )


def warn(batches: Sequence[Batch], scheduler: Scheduler) -> None:
    """Says what the nodes may not have."""
    doubt = None if scheduler.runs_here else submit_nodes.doubt(batches, scheduler)
    if doubt is not None:
        say(f"warning: {doubt}")


def reachable(scheduler: Scheduler, dry: bool) -> Scheduler:
    """The scheduler; says now when no cluster answers. A dry run can do without one."""
    try:
        scheduler.cluster()
    except MissingError as error:
        stand_in = scheduler.stand_in() if dry else None
        if stand_in is None:
            raise
        say(f"{error}. These scripts are for {stand_in[1]}")
        return stand_in[0]
    return scheduler


def sentence(done: Outcome) -> str:
    """The outcome in words."""
    if not done.submitted:
        return (
            f"nothing to add: all {done.runs} runs are done, waiting, running or failed "
            "(--retry-failed submits failed ones again)"
        )
    jobs = f"{len(done.submissions)} submission{'s' if len(done.submissions) != 1 else ''}"
    runs_here = known.kind(done.scheduler).runs_here
    how = f"{done.failed} failed" if runs_here else jobs
    verb = "executed here" if runs_here else "submitted"
    return (
        f"{done.submitted} of {done.runs} runs {verb} ({how}, {done.seconds:.1f} s): "
        f"{done.study_dir}"
    )


def dry_run(
    batches: Sequence[Batch], scheduler: Scheduler, after: str | None
) -> list[tuple[str, str]]:
    """The scripts as they would be submitted; a job id that is not there yet stands as JOBID."""
    scripts = []
    for batch in batches:
        scripts.append((batch.submission_id, scheduler.script(batch, chained(batch, after))))
        after = "JOBID"
    return scripts


def outcome(
    study: Study,
    folder: StudyDir,
    scheduler: Scheduler,
    runs: Sequence[Run],
    batches: Sequence[Batch],
    recovered: list[str],
    begin: float,
    failed: int = 0,
) -> Outcome:
    """The figures of a call."""
    return Outcome(
        study=study.name,
        study_dir=str(folder.path),
        scheduler=scheduler.name,
        runs=len(runs),
        submitted=sum(len(batch.run_ids) for batch in batches),
        submissions=[batch.submission_id for batch in batches],
        recovered=recovered,
        failed=failed,
        seconds=time.monotonic() - begin,
    )


def planned(study: Study, folder: StudyDir) -> tuple[list[Run], dict[str, status.RunState]]:
    """The plan, grown from the one that is there, and the state of each run that was in it."""
    runs = plan.make_plan(study)
    if not folder.plan.is_file():
        return runs, {}
    states = {entry.run.run_id: entry for entry in status.run_states(folder, patient=True)}
    submitted = {run_id for entry in ledger.read(folder) for run_id in entry.run_ids}
    submitted |= {run_id for run_id, entry in states.items() if entry.attempt is not None}
    old = [entry.run for entry in states.values()]
    grown = plan.grow(old, runs, submitted, study.seed)
    added = {condition_of(run) for run in grown} - {condition_of(run) for run in old}
    if submitted and added:
        say(
            f"{len(added)} conditions are new: they run in blocks of their own, "
            "not interleaved with what was submitted before"
        )
    return grown, states


def condition_of(run: Run) -> str:
    """A run's id without its repeat."""
    return run.run_id.rpartition("-")[0]


def wanted(
    runs: Sequence[Run], states: dict[str, status.RunState], retry_failed: bool
) -> list[Run]:
    """The runs to submit: never executed and not in a queue; failed ones if asked for."""
    again = AGAIN_IF_FAILED if retry_failed else AGAIN
    return [run for run in runs if run.run_id not in states or needs(states[run.run_id], again)]


def needs(entry: status.RunState, again: Sequence[str]) -> bool:
    """Also a run that left no attempt behind, whatever became of its job."""
    never_began = entry.attempt is None and entry.state in ("cancelled", "lost", "node_fail")
    return entry.state in again or never_began


def check_programs(study: Study, runs: Sequence[Run], scheduler: Scheduler) -> None:
    """MissingError for local runs that could only fail; a warning where nodes may differ."""
    missing = submit_programs.missing(study, runs)
    if missing and scheduler.runs_here:
        raise MissingError(f"programs are missing on this machine: {'; '.join(missing)}")
    if missing:
        say(f"warning: not on this machine, and maybe not on the nodes: {'; '.join(missing)}")


def check_conditions(runs: Sequence[Run], scheduler: Scheduler) -> None:
    """ConditionError or MissingError for what cannot be had, before anything runs.

    Of other nodes only what holds everywhere is known: the rest is a warning.
    """
    wanted = list(dict.fromkeys(run.launcher for run in runs))
    launcher_checks.check_user(wanted)
    lacking = launcher_checks.lacking_here(wanted)
    if not scheduler.runs_here:
        for why in lacking:
            say(f"warning: here, and maybe on the nodes too: {why}")
        return
    if lacking:
        raise MissingError(lacking[0])
    for conditions in dict.fromkeys(netem.of_levels(run.condition) for run in runs):
        netem.check_here(conditions)


def write_study(study: Study, folder: StudyDir, runs: Sequence[Run], missing: list[Run]) -> None:
    """The study's files, before anything is handed in."""
    (folder.path / "submissions").mkdir(parents=True, exist_ok=True)
    ledger.write_whole(folder.toml, study.toml)
    if not folder.library.exists():
        ledger.write_whole(folder.library, registry.library())
    benchmarks = study.benchmarks()
    variables = submit_programs.environment(study)
    for run in missing:
        path = folder.run(run.run_id)
        path.mkdir(parents=True, exist_ok=True)
        text = runscript.render(
            benchmarks[run.benchmark],
            run.parameters,
            study_dir=folder.path,
            run_id=run.run_id,
            clients=run.clients * run.launcher.containers,
            environment=variables | launchers.variables(run.launcher) | mode_of(run),
        )
        (path / "run.sh").write_text(text, encoding="utf-8")
    ledger.write_whole(folder.plan, plan.document(study, runs))


def mode_of(run: Run) -> dict[str, str]:
    """What run.sh is told of the factor `mode`, unless that is the benchmark's own parameter."""
    mode = run.condition.get("mode")
    return {} if mode is None or mode == run.parameters.get("mode") else {"SY_MODE": str(mode)}


def make_batches(
    study: Study, folder: StudyDir, runs: Sequence[Run], scheduler: Scheduler
) -> list[Batch]:
    """One batch per block and set of scheduler options, cut where the scheduler's arrays end."""
    most = scheduler.most_runs() or len(runs) or 1
    begun = len(ledger.read(folder))
    batches: list[Batch] = []
    for group in groups(study, runs, scheduler):
        for start in range(0, len(group), most):
            part = group[start : start + most]
            batches.append(make_batch(study, folder, part, begun + len(batches), scheduler))
    return batches


def groups(study: Study, runs: Sequence[Run], scheduler: Scheduler) -> list[list[Run]]:
    """Runs by block and by what they ask of the scheduler; by block only where they run here."""
    found: dict[tuple[object, ...], list[Run]] = {}
    for run in runs:
        asked = (nodes_of(study, run), options_of(study, run, scheduler))
        found.setdefault((run.block, *(() if scheduler.runs_here else asked)), []).append(run)
    by_block = itertools.groupby(found.values(), key=lambda group: group[0].block)
    # The set that is submitted first gets its nodes first: it is another one in each block.
    return [g for block, sets in by_block for g in rotated(list(sets), block)]


def rotated(sets: list[list[Run]], block: int) -> list[list[Run]]:
    """The same sets, beginning with another one in each block."""
    first = block % len(sets)
    return sets[first:] + sets[:first]


def nodes_of(study: Study, run: Run) -> int:
    """Nodes of the job: one per client, or those of [job]."""
    return max(study.job.nodes, run.clients)


def options_of(study: Study, run: Run, scheduler: Scheduler) -> tuple[str, ...]:
    """What the run's condition asks of the scheduler."""
    options = scheduler.condition_options(run.condition)
    if "node_type" in run.condition:
        level = str(run.condition["node_type"])
        given = study.place[level].get(scheduler.name)
        options = [*scheduler.place_options(level, given, nodes_of(study, run)), *options]
    return tuple(options)


def make_batch(
    study: Study, folder: StudyDir, runs: Sequence[Run], number: int, scheduler: Scheduler
) -> Batch:
    """A batch of runs that ask for the same; its id tells block and content."""
    run_ids = tuple(run.run_id for run in runs)
    content = "\n".join([str(folder.path), str(number), *run_ids])
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    first = runs[0]
    return Batch(
        submission_id=f"b{first.block:03}-{digest}",
        study=study.name,
        study_dir=folder.path,
        block=first.block,
        nodes=nodes_of(study, first),
        options=options_of(study, first, scheduler),
        tags=common_tags(study, runs),
        run_ids=run_ids,
        job=study.job,
        conditions={run.run_id: netem.of_levels(run.condition) for run in runs},
    )


def common_tags(study: Study, runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Study, block, and the factor levels that all these runs have."""
    tags = [("study", study.name), ("block", str(runs[0].block))]
    for name, level in runs[0].condition.items():
        if all(run.condition[name] == level for run in runs):
            text = runs[0].launcher.text if name == "launcher" else str(level)
            tags.append((name, tag_value(text)))
    return tuple(tags)
