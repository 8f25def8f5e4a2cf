"""One sweep of a folder of records.

Steps that free space come before steps that need some. At every moment each file is loose, or in a
complete pack on disk, or both; in the last case readers use the loose file. So a killed sweep loses
nothing, and the next one continues."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from steelyard.analysis.base import locks
from steelyard.analysis.sources import record_folders, record_packs
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.sweep import packing, record_files, removal
from steelyard.wrappers.sweep.record_files import File, Jobs
from steelyard.wrappers.sweep.sweep_report import SweepReport, SweepRequest

# Its modification time is the end of the last complete sweep, which steelyard-node doctor checks.
LOCK = ".steelyard-sweep.lock"


def sweep(request: SweepRequest) -> SweepReport:
    """Sweep a folder of records. Raises MissingError if the folder does not exist, has another
    owner, or is being swept."""
    done = SweepReport()
    with lock_sweep(request.record_dir) as lock:
        now_unix_s = time.time()
        jobs = record_files.Jobs(
            request.record_dir,
            lambda folder: removal.remove_empty_job(request, folder, now_unix_s, done),
        )
        for day in jobs.list_days():
            removal.remove_temporary(request, day, jobs, now_unix_s, done)
        if request.older_than_s is not None:
            removal.remove_old_days(
                request, jobs, now_unix_s - request.older_than_s, now_unix_s, done
            )
        for day in jobs.list_days():
            pack_day(request, day, jobs, now_unix_s, done)
        done.used_bytes = record_files.used_bytes(request.record_dir)
        if request.quota_bytes is not None:
            removal.remove_over_quota(request, jobs, now_unix_s, done)
        report_unpacked(request, jobs, now_unix_s, done)
        if not request.dry_run and not done.failed:
            os.utime(lock)
    return done


@contextlib.contextmanager
def lock_sweep(record_dir: Path) -> Iterator[int]:
    """Hold the lock of sweeps and yield its descriptor. Raises MissingError unless the folder is
    ours alone: files that others may have put there are neither removed nor packed."""
    try:
        status = record_dir.stat()
        if status.st_uid != os.geteuid() or status.st_mode & 0o022:
            raise MissingError(
                f"{record_dir} belongs to uid {status.st_uid}, mode {status.st_mode & 0o7777:04o}: "
                "sweep as its owner, and let nobody else write to it (chmod go-w)"
            )
        fd = open_lock(record_dir / LOCK)
    except OSError as error:
        raise MissingError(f"{record_dir} cannot be swept: {error.strerror}") from None
    try:
        locks.lock_file(fd)
    except BlockingIOError:
        os.close(fd)
        raise MissingError(f"another sweep of {record_dir} is at work: this one left it") from None
    except OSError as error:
        os.close(fd)
        raise MissingError(f"{record_dir}: {error.strerror}: {locks.NO_LOCKS_ADVICE}") from None
    try:
        yield fd
    finally:
        os.close(fd)


def open_lock(path: Path) -> int:
    """Open the lock. A new one gets the modification time 0: no sweep is complete yet."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return os.open(path, flags)
    os.utime(fd, (0, 0))
    return fd


def pack_day(
    request: SweepRequest, day: Path, jobs: Jobs, now_unix_s: float, done: SweepReport
) -> None:
    """Remove loose files that packs contain, then pack the day's other files."""
    before = now_unix_s - request.pack_after_s
    if removal.day_name(day) >= record_folders.format_day(before):
        return
    try:
        if request.dry_run:
            for job in jobs.list_folders(day):
                files = len(record_files.sort_files(job, before, now_unix_s).packed)
                count_removed((files > 0, files), done)
            return
        remove_packed(day, jobs, done)
        ready = packing.group_by_access(
            jobs.record_dir, list_packable(day, jobs, before, now_unix_s)
        )
        for access in sorted(ready):
            mine = packing.list_accessible(jobs.record_dir, ready.pop(access), access)
            for new in packing.pack_day(day, access, mine, request.every_s):
                done.packs += bool(new.seals)
                done.thinned_files += new.thinned
                count_removed(packing.remove_sealed(new, jobs, day), done)
    except OSError as error:
        done.fail(removal.day_name(day), error)
    if not request.dry_run:
        done.empty_folders += sum(packing.remove_empty(job) for job in jobs.list_folders(day))
        removal.remove_empty_day(day)


def list_packable(day: Path, jobs: Jobs, before: float, now_unix_s: float) -> Iterator[File]:
    """Yield a day's files that can be packed, job by job."""
    for job in jobs.list_folders(day):
        yield from record_files.sort_files(job, before, now_unix_s).packed


def remove_packed(day: Path, jobs: Jobs, done: SweepReport) -> None:
    """Remove loose files that are in packs already, which a killed sweep leaves."""
    packs = record_packs.list_packs(day)
    loose = {job.name for job in jobs.list_folders(day)} if packs else set()
    for one in packs:
        mine = [job_id for job_id in record_packs.list_job_ids(one) if job_id in loose]
        if mine:
            count_removed(packing.remove_packed(one, jobs, day, mine), done)


def count_removed(removed: tuple[int, int], done: SweepReport) -> None:
    """Count the job folders and files that are now only in packs."""
    done.packed_jobs += removed[0]
    done.packed_files += removed[1]


def report_unpacked(
    request: SweepRequest, jobs: Jobs, now_unix_s: float, done: SweepReport
) -> None:
    """Report the loose files of packed days with the reasons, and days for whose packs the disk was
    full."""
    before = now_unix_s - request.pack_after_s
    last = record_folders.format_day(before)
    days = (day for day in jobs.list_days() if removal.day_name(day) < last)
    for job in (job for day in days for job in jobs.list_folders(day)):
        found = record_files.sort_files(job, before, now_unix_s)
        done.waiting_jobs += found.waits
        for why, files in found.stay.items():
            done.stay_files[why] = done.stay_files.get(why, 0) + len(files)
            done.stay_bytes += sum(file.status.st_blocks * 512 for file in files)
    if done.no_room:
        done.failed.append(report_no_space(request.record_dir, done.no_room))


def report_no_space(record_dir: Path, days: Sequence[str]) -> str:
    """Return one line for all days whose packs did not fit."""
    disk = os.statvfs(record_dir)
    return (
        f"no room on the disk for packs of {counted(len(days), 'day')}, the first {days[0]}: "
        f"{disk.f_bavail * disk.f_frsize} bytes and {disk.f_favail} inodes are free. Nothing is "
        "lost; make room, or have more removed: --older-than, --quota"
    )
