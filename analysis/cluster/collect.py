"""Imports all jobs of a cluster, from the accounting and the nodes' records, into its database.

A pass may be run at any time. It queries the time since the last pass and the day before it, stores
new and changed jobs, and adds nothing twice.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from duckdb import DuckDBPyConnection

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.cluster import database, day_files, job_row
from steelyard.analysis.cluster.database import (
    StoredJobs,
    open_database,
    open_spools,
    replace_jobs,
    transaction,
)
from steelyard.analysis.cluster.job_records import RecordIndex
from steelyard.analysis.cluster.job_row import Job, Key
from steelyard.analysis.sources.cluster_sacct import JobStart, Unreadable
from steelyard.analysis.store.row_files import Spool
from steelyard.analysis.store.sample_store import make_scratch_folder

DAY_S = 86400.0
FIRST_S = 30 * DAY_S  # seconds before the first collect, by default
OVERLAP_S = DAY_S  # queried again: slurmdbd and nodes may deliver jobs and records late
CLOCK_GRAIN_S = 1.0  # of the accounting's times
AT_ONCE = 2000  # jobs whose records are in memory at once
FORGOTTEN = "the accounting, asked again, no longer knows the job: purged, or another cluster"

Progress = Callable[[str, int, int], None]


class ClusterAccounting(Protocol):
    """What collect needs of a cluster's accounting."""

    def read_window(
        self, since_unix_s: float, until_unix_s: float
    ) -> Iterator[JobStart | Unreadable]:
        """Yield all starts of jobs that ran or ended in that time."""

    def read_jobs(self, job_ids: Sequence[str]) -> Iterator[JobStart | Unreadable]:
        """Yield all starts of these jobs."""


@dataclass(slots=True)
class Collected:
    """The results of a pass."""

    folder: Path
    since_unix_s: float
    until_unix_s: float
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    records: int = 0  # read in this pass
    lost: int = 0
    days: int = 0  # days whose Parquet files were written
    jobs: int = 0  # in the database
    running: int = 0
    users: set[str] = field(default_factory=set)
    # Job, node, kind, reason.
    gaps: list[tuple[str, str | None, str, str]] = field(default_factory=list)
    elapsed_s: float = 0.0


@dataclass(slots=True)
class Pass:
    """The state of one collect."""

    connection: DuckDBPyConnection
    scratch: Path
    record_dirs: Sequence[Path]
    look_again: bool  # read records of settled jobs, too
    done: Collected
    repeatable: set[Key] = field(default_factory=set)  # keys that a later answer may contain, too


def collect(
    folder: Path,
    accounting: ClusterAccounting,
    record_dirs: Sequence[Path],
    *,
    since_unix_s: float | None = None,
    progress: Progress = lambda phase, done, total: None,
    now: Callable[[], float] = time.time,
) -> Collected:
    """Import all jobs that ran or ended since `since_unix_s` into the database in a folder.

    The default is the last collect less a day, or 30 days before the first one. If the given time
    is after the last collect, the time between is queried, too, so that no gap remains.
    """
    begun, until = time.monotonic(), float(int(now()))
    with open_database(folder) as connection, make_scratch_folder(folder) as scratch:
        since = find_first_moment(connection, since_unix_s, until)
        done = Collected(folder, since, until)
        work = Pass(connection, scratch, record_dirs, since_unix_s is not None, done)
        spans = list(split_into_days(since, until))
        for index, (first, last) in enumerate(spans):
            progress("days", index, len(spans))
            import_jobs(work, accounting.read_window(first, last), requested_until=last)
        requery_open_jobs(work, accounting)
        write_end(work)
        progress("days", len(spans), len(spans))
        done.days = day_files.export_days(connection, folder / "parquet")
    done.elapsed_s = time.monotonic() - begun
    return done


def find_first_moment(
    connection: DuckDBPyConnection, since_unix_s: float | None, until_unix_s: float
) -> float:
    """Return the time since which the accounting is queried, in seconds since 1970."""
    ((last,),) = connection.execute("SELECT queried_until_unix_s FROM meta").fetchall()
    if last is None:
        return until_unix_s - FIRST_S if since_unix_s is None else since_unix_s
    known = last - OVERLAP_S
    return float(known if since_unix_s is None else min(since_unix_s, known))


def split_into_days(since: float, until: float) -> Iterator[tuple[float, float]]:
    """Yield spans of at most a day. Each is one answer of sacct and one transaction."""
    first = since
    while first < until:
        last = min(first + DAY_S, until)
        yield first, last
        first = last


def import_jobs(
    work: Pass, answer: Iterable[JobStart | Unreadable], requested_until: float | None = None
) -> None:
    """Import one answer of the accounting in one transaction."""
    found: dict[Key, JobStart] = {}
    for one in answer:
        if isinstance(one, Unreadable):
            work.done.gaps.append(
                ("?", None, "accounting", f"a line of sacct names no job: {one.text!r}")
            )
        elif one.row.start_unix_s is not None or job_row.is_over(one.row):
            found[job_row.job_key(one.row)] = one
    check_cluster(work, found)
    with transaction(work.connection):
        some = measure_changed_jobs(work, found)
        while batch := list(itertools.islice(some, AT_ONCE)):
            store_jobs(work, batch)
        if requested_until is not None and found:
            work.connection.execute(
                "UPDATE meta SET queried_until_unix_s = greatest(coalesce(queried_until_unix_s, 0), ?)",
                [requested_until],
            )
    work.repeatable |= {
        key for key, one in found.items() if find_repeatable_key(one, requested_until)
    }
    work.done.users |= {one.row.user for one in found.values() if one.row.user}


def find_repeatable_key(one: JobStart, requested_until: float | None) -> bool:
    """Whether a later answer may contain this start again.

    A job that ended before its span's end is in no later answer. Keeping such keys of a million
    jobs would take 250 MB. `requested_until` None: the job was queried by its id.
    """
    if requested_until is None or not job_row.is_over(one.row):
        return True
    return (one.row.end_unix_s or 0.0) >= requested_until - CLOCK_GRAIN_S


def check_cluster(work: Pass, found: Iterable[Key]) -> None:
    """Raise UsageError if the folder is of another cluster: its last query time would be wrong."""
    names = {key[0] for key in found}
    ((mine,),) = work.connection.execute("SELECT cluster FROM meta").fetchall()
    if mine is None and len(names) == 1:
        work.connection.execute("UPDATE meta SET cluster = ?", list(names))
    elif names - {mine}:
        others = ", ".join(sorted(names - {mine}))
        raise UsageError(
            f"{work.done.folder} is of the cluster {mine or 'that is one'}, the accounting answers "
            f"as {others}: give each cluster its own folder",
            str(work.done.folder),
        )


def measure_changed_jobs(work: Pass, found: Mapping[Key, JobStart]) -> Iterator[Job]:
    """Yield the jobs that are new or changed, with their records read."""
    have = database.read_jobs(work.connection, found)
    starts = database.read_starts(work.connection, found)
    unmeasured = [key for key in found if work.look_again or not is_done(have.get(key), found[key])]
    read = database.read_records(work.connection, [key for key in unmeasured if key in have])
    work.done.unchanged += sum(key not in work.repeatable for key in found.keys() - set(unmeasured))
    record_index = RecordIndex(work.record_dirs)
    for offset, key in enumerate(unmeasured):
        if offset % AT_ONCE == 0:
            some = (found[one].row for one in unmeasured[offset : offset + AT_ONCE])
            record_index.load(row for row in some if job_row.can_have_records(row))
        begun, before = found[key], read.get(key, {})
        others = [at for other, at in starts.get(begun.row.job_id, ()) if other != key]
        job = job_row.measure(begun, others, record_index, before)
        is_same = key in have and have[key].facts == job_row.digest_accounting(begun)
        count_job(work, key, job, key in have, is_same)
        now = {(node, checked.sha256) for node, checked in job.found.by_node.items()}
        if not is_same or now != {(node, checked.sha256) for node, checked in before.items()}:
            yield job
        elif any(kind == "changed" for _, kind, _ in job.found.gaps):
            yield job  # a record was changed: store the marks


def is_done(have: StoredJobs | None, begun: JobStart) -> bool:
    """Whether nothing of the job is missing and its accounting is unchanged."""
    return have is not None and have.is_settled and have.facts == job_row.digest_accounting(begun)


def count_job(work: Pass, key: Key, job: Job, is_known: bool, is_same: bool) -> None:
    """Count one job that was read."""
    if key not in work.repeatable:
        work.done.new += not is_known
        work.done.changed += is_known and not is_same
        work.done.unchanged += is_same
    work.done.records += len(job.found.by_node)
    task = job.begun.row.task_id or job.begun.row.job_id
    work.done.gaps += [(task, node, kind, reason) for node, kind, reason in job.found.gaps]


def store_jobs(work: Pass, found: Sequence[Job]) -> None:
    """Store rows of jobs, of their records and of their gaps."""
    if not found:
        return
    with open_spools(work.connection, work.scratch) as spool:
        for job in found:
            row = job_row.build_columns(job)
            spool["jobs"].write([row[name] for name in spool["jobs"].columns])
            write_records(spool["records"], job)
            for node, kind, reason in job.found.gaps:
                spool["gaps"].write((*job_row.job_key(job.begun.row), node, kind, reason))
    replace_jobs(work.connection, spool["jobs"], spool["records"], spool["gaps"])


def write_records(spool: Spool, job: Job) -> None:
    """Write a row for each record that was read."""
    for checked in job.found.by_node.values():
        found = checked.record.columns()
        head = (
            *job_row.job_key(job.begun.row),
            checked.record.node,
            str(checked.record.path),
            checked.sha256,
        )
        extra = [checked.record.get(path) for path in database.BESIDES.values()]
        spool.write((*head, list(checked.marks), *extra, *found.values()))


def requery_open_jobs(work: Pass, accounting: ClusterAccounting) -> None:
    """Query stored open jobs that no answer contained, by id. Unknown ones become `lost`."""
    unanswered = [
        key for key in database.read_open_jobs(work.connection) if key not in work.repeatable
    ]
    if not unanswered:
        return
    import_jobs(work, accounting.read_jobs(sorted({key[1] for key in unanswered})))
    lost = [key for key in unanswered if key not in work.repeatable]
    with transaction(work.connection):
        for key in lost:
            work.connection.execute(
                "UPDATE jobs SET state = 'lost', reason = ? WHERE cluster = ? AND job_id = ? "
                "AND submit_unix_s = ?",
                [FORGOTTEN, *key],
            )
    work.done.lost = len(lost)


def write_end(work: Pass) -> None:
    """Store the time of collect, and count the jobs in the database."""
    with transaction(work.connection):
        work.connection.execute("UPDATE meta SET collected_unix_s = ?", [work.done.until_unix_s])
    ((work.done.jobs, work.done.running),) = work.connection.execute(
        "SELECT count(*), count(*) FILTER (NOT is_over AND state = 'running') FROM jobs"
    ).fetchall()
