"""Finds jobs by the ids that users write, at the scheduler that issues such ids, and collects the
details of a job once for the screen and for programs."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from steelyard.analysis.job import advice, usage
from steelyard.analysis.job.job_totals import is_exclusive
from steelyard.analysis.job.job_view import JobView
from steelyard.wrappers.base import errors

if TYPE_CHECKING:
    from steelyard.analysis.cluster.stored_job_lookup import ClusterDatabase
    from steelyard.analysis.job.time_series import JobTimeSeries
    from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower

ANSWER_LIMIT_S = 10.0  # a busy NFS server answers within seconds


def find_jobs(
    job_ids: Sequence[str], given: Sequence[Path] | None, database: Path
) -> tuple[list[JobView], list[str]]:
    """Return the jobs, from the scheduler that issues such ids or from a cluster's database."""
    from steelyard.analysis.job.job_lookup import look_up_jobs
    from steelyard.analysis.sources import accounting_readers

    readers = [reader for text in job_ids for reader in accounting_readers.readers_of_job_id(text)]
    ids, reader = list(dict.fromkeys(job_ids)), readers[0].without_retries()
    return look_up_jobs(ids, choose_record_dirs(given), reader, open_cluster_database(database))


def open_cluster_database(database: Path | None) -> ClusterDatabase | None:
    """Return a cluster's database, or None if it does not exist; then its modules are not
    imported."""
    if database is None or not os.path.lexists(database):
        return None
    from steelyard.analysis.cluster.stored_job_lookup import ClusterDatabase

    return ClusterDatabase(database)


def choose_record_dirs(given: Sequence[Path] | None) -> Sequence[Path]:
    """Return --record-dir, else the default folders. A folder whose file system does not answer is
    omitted, with a line on stderr: the accounting alone can still be shown."""
    from steelyard.analysis.collect.record_import import find_default_record_dirs

    found = []
    for folder in given or find_default_record_dirs():
        if answers(folder):
            found.append(folder)
        else:
            print(
                f"steelyard show: the record folder {folder} has not answered within "
                f"{ANSWER_LIMIT_S:.0f} s: nothing of its records is shown; try again when its file "
                "system is back",
                file=sys.stderr,
            )
    return found


def answers(folder: Path) -> bool:
    """Return whether the folder's file system answers within ANSWER_LIMIT_S. Only a thread waits
    longer; the kernel ends it with this process."""
    done = threading.Event()

    def look() -> None:
        # The kernel may have the folder's attributes in its cache, so an entry is read.
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            next(entries, None)
        done.set()

    threading.Thread(target=look, daemon=True).start()
    return done.wait(ANSWER_LIMIT_S)


def find_job(job_id: str, given: Sequence[Path] | None, database: Path | None = None) -> JobView:
    """Return the job from the first scheduler on this machine that issues such ids and knows it.
    Data that it and records do not have comes from a cluster's database, if one is named. Raises
    MissingError if no scheduler knows the job."""
    from steelyard.analysis.job.job_lookup import look_up
    from steelyard.analysis.sources import accounting_readers

    unknown: list[errors.MissingError] = []
    alone: JobView | None = None
    record_dirs = choose_record_dirs(given)
    for reader in accounting_readers.readers_of_job_id(job_id):
        try:
            view = look_up(
                job_id, record_dirs, reader.without_retries(), open_cluster_database(database)
            )
        except errors.MissingError as error:
            unknown.append(error)
            continue
        if view.row is not None:
            return view
        alone = alone or view
    if alone is None:
        raise unknown[0] if len(unknown) == 1 else errors.MissingError("; ".join(map(str, unknown)))
    return alone


NO_SAMPLES = "no samples of it can be read here"
TOO_FEW = "it has too few samples"


@dataclass(frozen=True)
class JobDetails:
    """A job; `no_course` and `no_advice` are the reasons if these are missing."""

    view: JobView
    used: usage.Efficiency
    course: JobTimeSeries | None = None
    no_course: str | None = None
    advice: list[advice.Advice] = field(default_factory=list)
    no_advice: str | None = None
    shares: Mapping[str, EnergyShare] = field(default_factory=dict)


def read_details(view: JobView, idle: IdlePower | None = None) -> JobDetails:
    """Return all details, with samples; `idle`: the power of idle nodes."""
    return read_several([view], idle)[0]


def read_several(views: Sequence[JobView], idle: IdlePower | None = None) -> list[JobDetails]:
    """Return the details of each job."""
    details = []
    for view, (found, why) in zip(views, read_time_series(views), strict=True):
        used = usage.compute_efficiency(view)
        details.append(
            JobDetails(
                view,
                used,
                found,
                why,
                advice.advise(view, used, found),
                advice.find_no_advice_reason(view),
                {} if idle is None else read_energy_shares(view, idle),
            )
        )
    return details


def read_time_series(views: Sequence[JobView]) -> list[tuple[JobTimeSeries | None, str | None]]:
    """Return each job's time series, or the reason why it has none."""
    jobs = [
        {
            node.node: node.record
            for node in view.nodes
            if (path := node.record.samples_path) is not None and path.is_file()
        }
        for view in views
    ]
    if not any(jobs):
        return [(None, NO_SAMPLES)] * len(jobs)
    # Imported here because duckdb would make `--help` slow.
    from steelyard.analysis.job import time_series

    return [
        (found, TOO_FEW if found is None else None) if records else (None, NO_SAMPLES)
        for records, found in zip(jobs, time_series.read_all_time_series(jobs), strict=True)
    ]


def read_energy_shares(view: JobView, idle: IdlePower) -> dict[str, EnergyShare]:
    """Return the energy shares by node, for nodes whose joules may be partly of other jobs."""
    shared = {
        node.node: node.record
        for node in view.nodes
        if node.values["energy_j"] is not None and not is_exclusive(node.record)
    }
    if not shared:
        return {}
    from steelyard.analysis.job.job_samples import compute_job_shares

    return compute_job_shares(shared, idle)
