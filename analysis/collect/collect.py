"""Merges all files of a study into its database.

`collect` may be repeated at any time. It imports only new accounting rows and samples, rewrites all
other tables, and becomes visible completely or not at all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.collect import (
    run_output_import,
    sample_import,
    tables,
    unchanged_attempts,
)
from steelyard.analysis.collect.accounting_import import (
    Jobs,
    Progress,
    find_job_gaps,
    find_unreadable_gaps,
    import_accounting,
)
from steelyard.analysis.collect.attempt_building import Attempt, KnownJobs, build_attempts
from steelyard.analysis.collect.checks import write_checks
from steelyard.analysis.collect.condition_refusals import find_refusal
from steelyard.analysis.collect.job_index import JobIndex
from steelyard.analysis.collect.record_import import (
    Gap,
    copy_records,
    find_default_record_dirs,
    find_record_gaps,
)
from steelyard.analysis.collect.run_output_import import Output, read_output
from steelyard.analysis.collect.sample_import import (
    ImportedFiles,
    find_sample_files,
    find_sample_gaps,
)
from steelyard.analysis.sources import accounting_readers, sample_csv
from steelyard.analysis.sources.accounting import FINAL_STATES, WAITING_STATES, Accounting
from steelyard.analysis.sources.study_files import (
    Plan,
    PlannedRun,
    RunFolder,
    find_running_submission,
    read_plan,
    read_run_folders,
    read_submissions,
)
from steelyard.analysis.store import export, sample_store
from steelyard.analysis.store.database import (
    FILE_NAME,
    WRITE_ERRORS,
    InUseError,
    check_keys,
    close,
    connect,
    describe_write_error,
    limit_memory,
    open_for_writing,
)


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collect did, for its summary."""

    study_dir: Path
    database: Path
    states: Mapping[str, int]  # runs by state
    attempts: int
    records: int
    sample_files: int  # read in this collect
    notes: int  # lines of noise in the outputs
    gaps: tuple[Gap, ...]
    elapsed_s: float


# tables with rows of attempts
OF_ATTEMPTS = (
    *("results", "records", "tags", "environment", "spans", "notes", "network"),
    "command_usage",
    *("sources", "sample_parts"),
)
# A run that wrote its result less than this long ago has a job that is about to end.
ENDING_S = 60.0
ASK_AGAIN_S = 0.5


@dataclass(slots=True)
class Merge:
    """The state of one collect."""

    connection: DuckDBPyConnection
    study_dir: Path
    scratch: Path
    plan: Plan
    now_unix_s: float
    progress: Progress
    attempts: list[Attempt] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    parts: sample_store.Parts = field(init=False)
    sample_files: int = 0
    outputs: dict[tuple[str, str], Output] = field(default_factory=dict)
    runs: dict[str, PlannedRun] = field(init=False)
    remaining: Sequence[Attempt] = ()  # those of `attempts` whose rows are rewritten
    # Of `left`, before they are read.
    stamps: dict[unchanged_attempts.Key, str | None] = field(default_factory=dict)
    accounting_is_new: bool = False
    is_touched: bool = True  # rows of attempts are added or removed
    runs_stay: bool = False  # every run's row is unchanged

    def __post_init__(self) -> None:
        self.runs = {run.run_id: run for run in self.plan.runs}
        sample_store.remove_uncounted_files(self.connection, self.study_dir)
        self.parts = sample_store.Parts(self.connection, self.study_dir, self.scratch)


def ignore_progress(phase: str, done: int, total: int) -> None:
    """Do nothing."""


def collect(
    study_dir: Path,
    *,
    record_dirs: Sequence[Path] | None = None,
    accounting: Mapping[str, Accounting] | None = None,
    progress: Progress = ignore_progress,
    now: Callable[[], float] = time.time,
    patience_s: float = 15.0,
) -> Collected:
    """Merge accounting, records, samples and outputs of a study into its database.

    `accounting` maps schedulers' names to their readers (default: all of them). `progress` is
    called with a phase, how much of it is done, and the total. For up to `patience_s` seconds,
    collect waits for jobs whose run has just ended and which the accounting still reports as
    running.
    """
    begun = time.monotonic()
    plan = read_plan(study_dir)
    dirs = find_default_record_dirs() if record_dirs is None else list(record_dirs)
    by_scheduler: Mapping[str, Accounting] = accounting or accounting_readers.all_readers()
    with (
        open_for_writing(study_dir) as connection,
        sample_store.make_scratch_folder(study_dir) as scratch,
    ):
        before = export.compute_mark(connection)
        work = Merge(connection, study_dir, scratch, plan, now(), progress)
        find_ended_attempts(work, by_scheduler, patience_s)
        look = separate_settled_attempts(work, dirs)
        find_records(work, dirs, look)
        states = write_tables(work)
        records, notes = connection.execute(
            "SELECT (SELECT count(*) FROM records), (SELECT count(*) FROM notes)"
        ).fetchall()[0]
        is_export_complete = export.is_complete(study_dir / "parquet", before)
        export.remove_mark(study_dir / "parquet")
        work.parts.publish()
    export_tables(work, list_unchanged_tables(work) if is_export_complete else ())
    return Collected(
        study_dir=study_dir,
        database=study_dir / FILE_NAME,
        states=states,
        attempts=len(work.attempts),
        records=records,
        sample_files=work.sample_files,
        notes=notes,
        gaps=tuple(work.gaps),
        elapsed_s=time.monotonic() - begun,
    )


def find_ended_attempts(
    work: Merge, accounting: Mapping[str, Accounting], patience_s: float
) -> None:
    """Find the attempts, and repeat that while jobs are about to end."""
    deadline = time.monotonic() + patience_s
    find_attempts(work, accounting)
    first = count_ending_runs(work)
    while (ending := count_ending_runs(work)) and time.monotonic() < deadline:
        work.progress("ending jobs", first - ending, first)
        time.sleep(ASK_AGAIN_S)
        find_attempts(work, accounting)


def count_ending_runs(work: Merge) -> int:
    """Return the number of runs with a recent result whose jobs are running in the accounting."""
    return sum(
        abs(work.now_unix_s - (attempt.end_unix_s or 0.0)) < ENDING_S
        for attempt in work.attempts
        if attempt.state == "running"
        and attempt.folder is not None
        and attempt.folder.text("state") in FINAL_STATES
    )


def find_attempts(work: Merge, accounting: Mapping[str, Accounting]) -> None:
    """Set the attempts from submissions, accounting and run folders, and the gaps of these."""
    planned = {run.run_id for run in work.plan.runs}
    submissions = read_submissions(work.study_dir)
    jobs = Jobs()
    work.gaps = []
    for scheduler, reader in accounting.items():
        mine = [s for s in submissions if s.scheduler == scheduler]
        if mine:
            found = import_accounting(work.connection, reader, mine, work.scratch, work.progress)
            jobs.numbered += found.numbered
            jobs.waiting += found.waiting
            jobs.answered |= found.answered
            work.accounting_is_new |= found.are_new
            work.gaps += [*found.gaps, *find_job_gaps(mine, found, work.now_unix_s)]
    work.gaps += find_unreadable_gaps(work.connection)
    work.attempts = [
        a
        for a in build_attempts(
            KnownJobs(
                submissions=submissions,
                index=JobIndex(submissions),
                numbered=jobs.numbered,
                waiting=jobs.waiting,
                folders=read_all_folders(work),
                answered=frozenset(jobs.answered),
                now_unix_s=work.now_unix_s,
                at_work=find_running_submission(work.study_dir, submissions),
            )
        )
        if a.run_id in planned
    ]
    work.gaps += find_result_gaps(work.attempts)


def read_all_folders(work: Merge) -> dict[tuple[str, str], RunFolder]:
    """Return the attempts' folders by run and attempt."""
    folders = {}
    for done, run in enumerate(work.plan.runs, 1):
        for folder in read_run_folders(work.study_dir, run.run_id):
            folders[run.run_id, folder.attempt] = folder
        if done % 100 == 0 or done == len(work.plan.runs):
            work.progress("run folders", done, len(work.plan.runs))
    return folders


def find_result_gaps(attempts: Sequence[Attempt]) -> Iterator[Gap]:
    """Yield attempts that started and left no usable result.json."""
    for attempt in attempts:
        if attempt.state in WAITING_STATES:
            continue  # the result may still appear
        problem = attempt.folder.problem if attempt.folder is not None else None
        if attempt.folder is None and attempt.is_over:
            problem = f"job {attempt.job_id} left no folder for this attempt"
        if problem:
            yield Gap(attempt.run_id, attempt.attempt, None, "result", problem)


def separate_settled_attempts(
    work: Merge, record_dirs: Sequence[Path]
) -> unchanged_attempts.Stamps:
    """Separate attempts whose rows stay from those that must be read."""
    look = unchanged_attempts.Stamps(work.connection, work.study_dir, record_dirs, work.runs)
    stay = look.find_settled(work.attempts)
    if work.parts.broken:  # it is unknown whose samples are lost: read everything
        stay = set()
    unchanged_attempts.store_settled(work.connection, stay)
    work.remaining = [a for a in work.attempts if unchanged_attempts.attempt_key(a) not in stay]
    ((attempts,),) = work.connection.execute("SELECT count(*) FROM attempts").fetchall()
    work.is_touched = bool(work.remaining) or work.parts.broken or attempts != len(stay)
    ((runs,),) = work.connection.execute("SELECT count(*) FROM runs").fetchall()
    # A settled attempt is the one that counts, and its run's row matches the plan.
    work.runs_stay = (
        bool(stay) and not work.is_touched and {run for run, _ in stay} == work.runs.keys()
    )
    work.runs_stay &= runs == len(stay) == len(work.runs)
    return look


def find_records(work: Merge, record_dirs: Sequence[Path], look: unchanged_attempts.Stamps) -> None:
    """Copy records into the study folder, attach them to attempts, and import their new samples.

    DuckDB reads samples while other records are copied and outputs are read.
    """
    if not work.is_touched:  # no attempt is read
        work.gaps += find_sample_gaps(work.connection)
        return
    known = ImportedFiles(work.connection, work.parts)
    found = []

    def before_reading(attempts: Sequence[Attempt]) -> None:
        work.stamps.update(
            (unchanged_attempts.attempt_key(a), look.compute_full_stamp(a)) for a in attempts
        )

    with sample_import.Loader(work.connection, work.parts, work.scratch) as loader:
        for attempts, gaps in copy_records(
            work.study_dir, record_dirs, work.remaining, work.progress, before_reading
        ):
            found += gaps
            for file in find_sample_files(work.study_dir, attempts, work.gaps):
                if not known.has_samples(file):
                    loader.add(file, known.find_replaced_files(file))
                    work.progress("samples", loader.loaded, loader.count)
            read_outputs(work, attempts)
        loader.finish()
        work.progress("samples", loader.loaded, loader.count)
    sample_import.record_lost_samples(work.connection, known.broken)
    known_gaps = {(g.run_id or "", g.attempt or "", g.node or "") for g in found}
    work.gaps += [*found, *find_record_gaps(work.remaining, record_dirs, known_gaps)]
    work.sample_files = loader.count
    work.gaps += find_sample_gaps(work.connection)


def write_tables(work: Merge) -> dict[str, int]:
    """Write all tables that change; return the number of runs in each state."""
    read_outputs(work, work.remaining)
    work.progress("outputs", len(work.remaining), len(work.remaining))
    for attempt in work.attempts:  # a condition that could not be applied has ended the job
        attempt.reason = find_refusal(work.study_dir, attempt) or attempt.reason
    # Thinned samples never get more: this gap is no reason to read the attempt again.
    may_end = (gap for gap in work.gaps if sample_csv.THINNED not in gap.reason)
    with_gaps = {(gap.run_id or "", gap.attempt or "") for gap in may_end}
    unchanged_attempts.store_stamps(work.attempts, work.stamps, with_gaps)
    tables.write_meta(work.connection, work.study_dir, work.plan, work.scratch, work.now_unix_s)
    states = {"completed": len(work.runs)}  # settled runs are completed
    if not work.runs_stay:
        tables.write_attempts(work.connection, work.attempts, work.scratch)
        states = tables.write_runs(work.connection, work.plan, work.attempts, work.scratch)
    tables.write_gaps(work.connection, work.gaps, work.scratch)
    if work.is_touched:
        tables.write_results(work.connection, work.outputs, work.scratch)
        tables.write_output_notes(work.connection, work.outputs, work.scratch)
        tables.write_records(work.connection, work.remaining, work.scratch)
        tables.write_notes(work.connection, work.remaining, work.scratch)
        run_output_import.write_usage(work.connection, work.remaining, work.scratch)
        tables.write_network(work.connection, work.remaining, work.scratch)
    if work.is_touched or work.accounting_is_new:
        write_checks(work.connection)
    if not work.runs_stay:
        check_keys(work.connection)
    return states


def list_unchanged_tables(work: Merge) -> set[str]:
    """Return the tables that this collect does not change."""
    unchanged = set() if work.accounting_is_new else {"accounting"}
    if not work.is_touched:
        unchanged |= {*OF_ATTEMPTS} if work.accounting_is_new else {*OF_ATTEMPTS, "checks"}
    return unchanged | {"runs", "attempts"} if work.runs_stay else unchanged


def read_outputs(work: Merge, attempts: Sequence[Attempt]) -> None:
    """Read the figures of completed attempts.

    An attempt whose output cannot be used becomes failed.
    """
    for attempt in attempts:
        key = attempt.run_id, attempt.attempt
        if attempt.state != "completed" or key in work.outputs:
            continue
        output = work.outputs[key] = read_output(work.runs[attempt.run_id], attempt)
        if output.reason is not None:
            attempt.state, attempt.reason = "failed", output.reason
        if output.is_gap:
            work.gaps.append(Gap(*key, None, "output", output.reason or "no output"))
        work.gaps += [Gap(*key, None, "figure", why) for why in output.missing.values()]


def export_tables(work: Merge, but: Collection[str]) -> None:
    """Export all Parquet files except those of the tables `but`, from the committed database."""
    folder = work.study_dir / "parquet"
    try:
        connection = connect(work.study_dir / FILE_NAME, read_only=True)
    except InUseError:  # the next collect runs: it will write them
        return
    try:
        limit_memory(connection, work.study_dir)
        sample_store.remove_uncounted_files(connection, work.study_dir)
        export.export(connection, folder, repr(work.now_unix_s), work.progress, but)
    except WRITE_ERRORS as error:
        what = f"{work.study_dir / FILE_NAME} is whole, but {folder} could not be written"
        raise describe_write_error(what, error, work.study_dir) from error
    finally:
        close(connection, work.study_dir)
