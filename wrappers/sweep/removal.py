"""What a sweep removes: by age, by quota, and leftovers.

Removed bytes are counted as `record_files.used_bytes` counts them, so that the two agree
exactly."""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from steelyard.analysis.sources import record_folders, record_packs
from steelyard.wrappers.sweep import record_files
from steelyard.wrappers.sweep.record_files import Jobs
from steelyard.wrappers.sweep.sweep_report import SweepReport, SweepRequest


def day_name(day: Path) -> str:
    """Return, for example, `2026-11/23`."""
    return "/".join(day.parts[-2:])


def remove_temporary(
    request: SweepRequest, day: Path, jobs: Jobs, now_unix_s: float, done: SweepReport
) -> None:
    """Remove temporary files of killed writers and killed sweeps."""
    for job in jobs.list_folders(day):
        for path in record_files.temporary_files(job, now_unix_s):
            remove_temporary_file(request, path, done)
    for path in record_files.list_incomplete_packs(day):
        remove_temporary_file(request, path, done)


def remove_temporary_file(request: SweepRequest, path: Path, done: SweepReport) -> None:
    """Remove and count one temporary file."""
    done.temporary_files += 1
    if request.dry_run:
        return
    if path.is_dir() and not path.is_symlink():  # a killed sweep's spill folder
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_empty_job(
    request: SweepRequest, job: Path, now_unix_s: float, done: SweepReport
) -> None:
    """Remove an empty job folder that has not changed for a week: the job left no record."""
    with contextlib.suppress(OSError):
        if job.stat().st_mtime < now_unix_s - record_files.TEMPORARY_S:
            if not request.dry_run:
                job.rmdir()
            done.empty_folders += 1


def remove_old_days(
    request: SweepRequest, jobs: Jobs, before_unix_s: float, now_unix_s: float, done: SweepReport
) -> None:
    """Remove whole days before the limit, the oldest first."""
    last = record_folders.format_day(before_unix_s)
    for day in jobs.list_days():
        if day_name(day) >= last:
            continue
        remove_packs(request, day, done)
        for job in jobs.list_folders(day):
            if request.unpacked:
                remove_job(request, job, before_unix_s, done)
            else:
                remove_unpackable(request, job, before_unix_s, now_unix_s, done)
            done.left_jobs += not request.dry_run and job.is_dir()
        if not request.dry_run:
            done.removed_bytes += remove_empty_day(day)


def remove_job(request: SweepRequest, job: Path, before_unix_s: float, done: SweepReport) -> None:
    """Remove all files of a job, packed or not, if none was changed since."""
    newest = max((f.status.st_mtime for f in record_files.list_files(job)), default=0.0)
    if newest < before_unix_s:
        done.removed_jobs += 1
        done.removed_bytes += record_files.used_bytes(job) + record_files.disk_bytes(job)
        if not request.dry_run:
            shutil.rmtree(job)


def remove_unpackable(
    request: SweepRequest, job: Path, before_unix_s: float, now_unix_s: float, done: SweepReport
) -> None:
    """Remove a job's files that are never packed. Files that are not ours are not removed."""
    stay = record_files.sort_files(job, before_unix_s, now_unix_s).stay
    for file in (file for why in stay if why != record_files.OTHER for file in stay[why]):
        done.removed_files += 1
        remove_file(request, file.path, done)
    if not request.dry_run:
        done.removed_bytes += remove_folder(job)


def remove_packs(request: SweepRequest, day: Path, done: SweepReport) -> None:
    """Remove a day's packs."""
    found = record_packs.list_packs(day)
    if found:
        done.removed_days.append(day_name(day))
    for one in found:
        for path in record_packs.pack_files(one):
            remove_file(request, path, done)
    if not request.dry_run:
        done.removed_bytes += remove_empty_day(day)


def remove_file(request: SweepRequest, path: Path, done: SweepReport) -> None:
    """Remove and count a file, if it exists."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        used = record_files.disk_bytes(path)
        if not request.dry_run:
            path.unlink()
        done.removed_bytes += used


def remove_folder(path: Path) -> int:
    """Remove a folder if it is empty; return its bytes on disk."""
    with contextlib.suppress(OSError):
        used = record_files.disk_bytes(path)
        path.rmdir()
        return used
    return 0


def remove_empty_day(day: Path) -> int:
    """Remove the empty folders of a day and of its month; return their bytes on disk."""
    if day_name(day) >= record_folders.format_day(time.time() - 2 * record_folders.DAY_S):
        return 0  # jobs may start in it
    return sum(remove_folder(path) for path in (record_packs.pack_folder(day), day, day.parent))


def remove_over_quota(
    request: SweepRequest, jobs: Jobs, now_unix_s: float, done: SweepReport
) -> None:
    """Remove the oldest days' packs and the files that are never packed, until the folder is within
    the quota."""
    assert request.quota_bytes is not None
    before_unix_s = now_unix_s - request.pack_after_s
    for day in jobs.list_days():
        if done.used_bytes <= request.quota_bytes:
            return
        before = done.removed_bytes
        remove_packs(request, day, done)
        if day_name(day) < record_folders.format_day(before_unix_s):
            for job in jobs.list_folders(day):
                remove_unpackable(request, job, before_unix_s, now_unix_s, done)
        if not request.dry_run:
            done.removed_bytes += remove_empty_day(day)
        done.used_bytes -= done.removed_bytes - before
    if done.used_bytes > request.quota_bytes:
        done.failed.append(
            f"{done.used_bytes} bytes are used, the quota is {request.quota_bytes}: what is left is "
            "not packed yet (--pack-after)"
        )
