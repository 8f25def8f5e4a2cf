"""Turns a study into jobs; repeated, it adds only what is missing."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from steelyard.jobscripts import registry, runscript
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base import signals
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.launchers import launcher_checks, launcher_grammar
from steelyard.wrappers.netem import program as netem
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.schedulers import registry as schedulers_registry
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study import plan, sessions
from steelyard.wrappers.study.folder import StudyDir, lock_study
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import Study
from steelyard.wrappers.submit import (
    node_kernel_checks,
    program_checks,
    scheduler_checks,
    status,
    stop_rule,
    study_preview,
)
from steelyard.wrappers.submit.batch_submission import (
    print_message,
    recover_submissions,
    submit_batches,
)
from steelyard.wrappers.submit.batches import load_plan, make_batches, select_runs
from steelyard.wrappers.submit.each_node_levels import draw_nodes


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
    failed: int  # of local runs, which have ended
    failed_before: int  # part of `failed`: by an earlier submit
    seconds: float


def submit(
    study: Study,
    study_dir: Path,
    scheduler_name: str,
    retry_failed: bool = False,
    scripts: list[tuple[str, str]] | None = None,
) -> Outcome:
    """Submit what is missing. A dry run adds (submission id, script) to `scripts`, and writes
    nothing."""
    begin = time.monotonic()
    folder = StudyDir(study_dir.absolute())
    scheduler = prepare_scheduler(study, folder, scheduler_name, dry=scripts is not None)
    study = draw_nodes(study, folder, scheduler)
    for note in study_preview.list_notes(study):
        print_message(f"note: {note}")
    if scripts is not None:
        preview = study_preview.make_preview(study, folder, scheduler, retry_failed)
        for problem in preview.problems:
            print_message(f"{'would be refused' if problem.sure else 'warning'}: {problem.text}")
        scripts += preview.render_scripts()
        return make_outcome(study, folder, scheduler, preview.runs, preview.batches, [], begin)
    with lock_study(folder):
        recovered = recover_submissions(folder, study.name, scheduler)
        study = stop_rule.grow_study(study, folder, print_message)
        runs, states = load_plan(study, folder)
        runs, missing = select_runs(study, runs, states, retry_failed)
        check_programs(study, missing, scheduler)
        check_conditions(missing, scheduler)
        batches = make_batches(study, folder, missing, scheduler)
        for batch in batches:  # report impossible requests before anything is written
            scheduler.render_script(batch, None)
        scheduler_checks.report_problems(
            scheduler_checks.find_problems(study, missing, batches, scheduler), print_message
        )
        study_preview.check_core_hours(study, runs, states, missing, scheduler, folder)
        warn_about_nodes(batches, scheduler)
        write_study(study, folder, runs, missing)
        with signals.ending_on_sigterm():  # `cancel` sends SIGTERM to a local submit
            submit_batches(folder, batches, scheduler)
    done = make_outcome(study, folder, scheduler, runs, batches, recovered, begin)
    return add_failures(done, folder, missing) if scheduler.runs_here else done


def prepare_scheduler(study: Study, folder: StudyDir, name: str, dry: bool) -> Scheduler:
    """Return the scheduler of that name. Raises an error if it does not answer or support this
    study."""
    scheduler = schedulers_registry.make_scheduler(name, folder.path)
    schedulers_registry.check_options(study, type(scheduler))
    check_nodes(study, scheduler)
    check_folder(folder.path, scheduler)
    return check_reachable(scheduler, dry)


def check_nodes(study: Study, scheduler: Scheduler) -> None:
    """Raise UsageError for several nodes with a local scheduler: the levels would differ in name
    only."""
    more = [level for level in study.factors.get("nodes", ()) if level != 1]
    if scheduler.runs_here and more:
        raise UsageError(
            f"{study.file}: factors.nodes: {more[0]}: without a scheduler each run has this one "
            "machine: submit to Slurm or PBS, or make tasks_per_node or cpus_per_task the factor",
            part="factors.nodes",
        )


def check_folder(path: Path, scheduler: Scheduler) -> None:
    """Raise UsageError for a folder's name with which every job would fail."""
    bad = {"\n", "\r", *scheduler.not_in_paths} & set(str(path))
    if bad:
        raise UsageError(
            f"the study's folder {str(path)!r} has {', '.join(sorted(map(repr, bad)))} in its "
            "name, which cannot be handed to jobs: choose another one, with --dir"
        )


def warn_about_nodes(batches: Sequence[Batch], scheduler: Scheduler) -> None:
    """Warn about what the nodes may miss."""
    if scheduler.runs_here:  # an error elsewhere
        return
    for doubt in (
        node_kernel_checks.check_network_support(batches, scheduler),
        node_kernel_checks.check_sites(batches),
    ):
        if doubt is not None:
            print_message(f"warning: {doubt}")


def check_reachable(scheduler: Scheduler, dry: bool) -> Scheduler:
    """Return the scheduler. Raises MissingError if no cluster answers; a dry run gets a stand-in
    instead."""
    try:
        scheduler.cluster_name()
    except MissingError as error:
        stand_in = scheduler.make_stand_in() if dry else None
        if stand_in is None:
            raise
        print_message(f"{error}. These scripts are for {stand_in[1]}")
        return stand_in[0]
    return scheduler


def format_outcome(done: Outcome) -> str:
    """Return a sentence on the outcome."""
    if not done.submitted:
        every = "the only run is" if done.runs == 1 else f"all {done.runs} runs are"
        return (
            f"nothing to add: {every} done, waiting, running or failed "
            "(--retry-failed submits failed ones again)"
        )
    jobs = counted(len(done.submissions), "submission")
    runs_here = schedulers_registry.find_class(done.scheduler).runs_here
    before = f", {done.failed_before} failed before" if done.failed_before else ""
    how = f"{done.failed - done.failed_before} failed{before}" if runs_here else jobs
    verb = "executed here" if runs_here else "submitted"
    return (
        f"{done.submitted} of {counted(done.runs, 'run')} {verb} ({how}, {done.seconds:.1f} s): "
        f"{done.study_dir}"
    )


def make_outcome(
    study: Study,
    folder: StudyDir,
    scheduler: Scheduler,
    runs: Sequence[Run],
    batches: Sequence[Batch],
    recovered: list[str],
    begin: float,
) -> Outcome:
    """Return the figures of a call."""
    return Outcome(
        study=study.name,
        study_dir=str(folder.path),
        scheduler=scheduler.name,
        runs=len(runs),
        submitted=sum(len(batch.run_ids) for batch in batches),
        submissions=[batch.submission_id for batch in batches],
        recovered=recovered,
        failed=0,
        failed_before=0,
        seconds=time.monotonic() - begin,
    )


def add_failures(done: Outcome, folder: StudyDir, executed: Sequence[Run]) -> Outcome:
    """Add the failed runs, and how many had failed before this submit."""
    failures = status.read_progress(folder.path).failed_runs
    now = {run.run_id for run in executed}
    before = sum(failure.run_id not in now for failure in failures)
    return replace(done, failed=len(failures), failed_before=before)


def check_programs(study: Study, runs: Sequence[Run], scheduler: Scheduler) -> None:
    """Raise MissingError for local runs that would fail; print a warning where nodes may differ."""
    missing = program_checks.find_missing_programs(study, runs)
    if missing and scheduler.runs_here:
        raise MissingError(f"programs are missing on this machine: {'; '.join(missing)}")
    if missing:
        print_message(
            f"warning: not on this machine, and maybe not on the nodes: {'; '.join(missing)}"
        )
    scheduler_checks.report_problems(
        list(program_checks.check_commands(study, runs, scheduler.runs_here)), print_message
    )


def check_conditions(runs: Sequence[Run], scheduler: Scheduler) -> None:
    """Raise ConditionError or MissingError for conditions that cannot be applied, before anything
    runs.

    For other nodes only rules that hold everywhere are errors: the rest are warnings."""
    wanted = list(dict.fromkeys(run.launcher for run in runs))
    launcher_checks.check_user(wanted)
    lacking = launcher_checks.list_missing(wanted)
    if not scheduler.runs_here:
        for why in lacking:
            print_message(f"warning: here, and maybe on the nodes too: {why}")
        return
    if lacking:
        raise MissingError(lacking[0])
    for conditions in dict.fromkeys(netem.make_conditions(run.condition) for run in runs):
        netem.check_on_this_machine(conditions)


def write_study(study: Study, folder: StudyDir, runs: Sequence[Run], missing: list[Run]) -> None:
    """Write the study's files, before any submission."""
    (folder.path / "submissions").mkdir(parents=True, exist_ok=True)
    ledger.write_atomically(folder.toml, study.toml)
    text = registry.library()
    library = folder.library(text)
    if not library.exists():
        ledger.write_atomically(library, text)
    benchmarks = study.benchmarks()
    variables = program_checks.make_environment(study)
    for run in missing:
        path = folder.run(run.run_id)
        path.mkdir(parents=True, exist_ok=True)
        text = runscript.render(
            benchmarks[run.benchmark],
            run.parameters,
            study_dir=folder.path,
            run_id=run.run_id,
            library=library.name,
            clients=run.clients * run.launcher.clients_per_node,
            environment=variables
            | run.resolve_job(study.job).thread_count()
            | launcher_grammar.launcher_variables(
                run.launcher, netem.make_conditions(run.condition).network
            )
            | mode_variable(run),
        )
        (path / "run.sh").write_text(text, encoding="utf-8")
    session = None
    if study.session is not None:
        session, doubt = sessions.begin_session(folder.path)
        if doubt is not None:
            print_message(f"warning: {doubt}")
    ledger.write_atomically(folder.plan, plan.plan_json(study, runs, session))


def mode_variable(run: Run) -> dict[str, str]:
    """Return run.sh's variable for the factor `mode`, unless that is the benchmark's own
    parameter."""
    mode = run.condition.get("mode")
    return {} if mode is None or mode == run.parameters.get("mode") else {"SY_MODE": str(mode)}
