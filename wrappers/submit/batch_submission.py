"""Submits batches and records accepted job ids, so that a crash loses nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.schedulers import ledger, registry
from steelyard.wrappers.schedulers.base import Batch, Scheduler
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.job_settings import Job


def print_message(message: str, command: str = "submit") -> None:
    """Print a message of the running command."""
    print(f"steelyard {command}: {message}", file=sys.stderr)


def chain_batches(batch: Batch, after: str | None) -> str | None:
    """Return the job that a batch waits for: with at_once, which limits all submissions together,
    the one before."""
    return None if batch.job.at_once is None else after


def submit_batches(folder: StudyDir, batches: Iterable[Batch], scheduler: Scheduler) -> None:
    """Submit each batch and record it; after a crash `recover_submissions` finds what was not
    recorded.

    The disk takes some 4 ms for a record, so a record is written while sbatch works on the next
    batch."""
    after = find_last_active(folder, scheduler)
    with ThreadPoolExecutor(1) as disk:
        begun: Future[None] | None = None
        for batch in batches:
            script = write_batch(folder, batch, scheduler, after)
            begin_unix_s = time.time()
            if scheduler.runs_here:  # its runs start now: record it first
                record_submission(folder, batch, scheduler, None, begin_unix_s)
                scheduler.submit(batch, script)
                continue
            after = scheduler.submit(batch, script)
            if begun is not None:
                begun.result()
            begun = disk.submit(record_submission, folder, batch, scheduler, after, begin_unix_s)
        if begun is not None:
            begun.result()


def write_batch(folder: StudyDir, batch: Batch, scheduler: Scheduler, after: str | None) -> Path:
    """Write the batch script, which is returned, and the batch's run list."""
    script = folder.script(batch.submission_id)
    text = scheduler.render_script(batch, chain_batches(batch, after))
    # Not synced, at 4 ms each: sbatch keeps the script, and submissions.jsonl the run ids.
    ledger.write_atomically(script, text, durable=False)
    lines = "".join(f"{run_id}\n" for run_id in batch.run_ids)
    ledger.write_atomically(folder.run_list(batch.submission_id), lines, durable=False)
    return script


def find_last_active(folder: StudyDir, scheduler: Scheduler) -> str | None:
    """Return the job id of the last submission that has not ended."""
    submissions = [e for e in ledger.read_submissions(folder) if e.scheduler == scheduler.name]
    active = set() if scheduler.runs_here else scheduler.active_runs(submissions).keys()
    jobs = [e.job_id for e in submissions if not active.isdisjoint(e.run_ids)]
    return jobs[-1] if jobs else None


def record_submission(
    folder: StudyDir, batch: Batch, scheduler: Scheduler, job_id: str | None, begin_unix_s: float
) -> None:
    """Append the accepted submission to submissions.jsonl."""
    ledger.append_submission(folder, make_submission(batch, scheduler, job_id, begin_unix_s))


def make_submission(
    batch: Batch, scheduler: Scheduler, job_id: str | None, begin_unix_s: float
) -> Submission:
    """Return the submission to record.

    `begin_unix_s` is before the submission: none of its jobs can be older. The record may be
    written minutes after the job was accepted, or hours later if the submit was interrupted."""
    return Submission(
        submission_id=batch.submission_id,
        scheduler=scheduler.name,
        cluster=scheduler.cluster_name(),
        job_id=job_id,
        submitted_unix_s=begin_unix_s,
        block=batch.block,
        options=batch.options,
        run_ids=batch.run_ids,
    )


def recover_submissions(folder: StudyDir, study_name: str, scheduler: Scheduler) -> list[str]:
    """Record submissions that were accepted just before a crash, remove those that were not; return
    the ids of recorded ones."""
    recovered = []
    for path, found in find_unrecorded(folder, study_name, scheduler):
        if found is None:
            path.unlink()
            folder.script(path.stem).unlink(missing_ok=True)
            continue
        print_message(
            f"{path.stem} had been accepted as job {found.job_id} before the last submit broke off"
        )
        ledger.append_submission(folder, found)
        recovered.append(path.stem)
    return recovered


def find_unrecorded(
    folder: StudyDir, study_name: str, scheduler: Scheduler
) -> Iterator[tuple[Path, Submission | None]]:
    """Yield the run list of each submission that began but is not recorded, with the submission if
    the scheduler accepted it."""
    for path in ledger.find_orphans(folder, ledger.read_submissions(folder)):
        run_ids = tuple(path.read_text(encoding="utf-8").split())
        block = int(path.stem[1:].partition("-")[0])
        batch = Batch(path.stem, study_name, folder.path, block, 0, (), (), run_ids, Job())
        written_unix_s = path.stat().st_mtime  # just before the submission
        job_id = scheduler.find_submission(batch, written_unix_s)
        found = job_id and make_submission(batch, scheduler, job_id, written_unix_s)
        yield path, found or None


def list_unrecorded(folder: StudyDir, patient: bool = True) -> list[Submission]:
    """Return the accepted submissions that are not recorded, without a change of any file."""
    found: list[Submission] = []
    for scheduler in find_schedulers_of_orphans(folder, patient):
        orphans = find_unrecorded(folder, read_study_name(folder), scheduler)
        found += [submission for _, submission in orphans if submission is not None]
    return found


def find_schedulers_of_orphans(folder: StudyDir, patient: bool = True) -> list[Scheduler]:
    """Return the schedulers that may have accepted a submission that is not recorded."""
    known = ledger.read_submissions(folder)
    if not ledger.find_orphans(folder, known):
        return []
    names = {entry.scheduler for entry in known} or {registry.detect_scheduler()}
    schedulers = [registry.make_scheduler(name, folder.path, patient) for name in sorted(names)]
    return [one for one in schedulers if not one.runs_here]


def read_study_name(folder: StudyDir) -> str:
    """Return the study's name, which begins the names of its jobs."""
    return str(study_files.read_plan(folder.path).study["name"])
