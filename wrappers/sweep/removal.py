"""What a sweep removes: by age, by quota, and what was left behind.

What is removed is counted as `folders.used_bytes` counts it, so that the two agree to the byte.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from pathlib import Path

from steelyard.analysis.sources import record_folders, record_packs
from steelyard.wrappers.sweep import record_files
from steelyard.wrappers.sweep.record_files import Jobs
from steelyard.wrappers.sweep.sweep_report import SweepReport, SweepRequest


def name_of(day: Path) -> str:
    """`2026-11/23`."""
    return "/".join(day.parts[-2:])


def temporary(
    asked: SweepRequest, day: Path, jobs: Jobs, now_unix_s: float, done: SweepReport
) -> None:
    """What killed writers and killed sweeps have left."""
    for job in jobs.of(day):
        for path in record_files.temporary_files(job, now_unix_s):
            away(asked, path, done)
    for path in record_files.half_made(day):
        away(asked, path, done)


def away(asked: SweepRequest, path: Path, done: SweepReport) -> None:
    """Remove and count what was left."""
    done.temporary_files += 1
    if asked.dry_run:
        return
    if path.is_dir() and not path.is_symlink():  # where a killed sweep had no room in memory
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def empty(asked: SweepRequest, job: Path, now_unix_s: float, done: SweepReport) -> None:
    """A folder that nothing has come into for a week: of a job that left no record."""
    with contextlib.suppress(OSError):
        if job.stat().st_mtime < now_unix_s - record_files.TEMPORARY_S:
            if not asked.dry_run:
                job.rmdir()
            done.empty_folders += 1


def old(
    asked: SweepRequest, jobs: Jobs, before_unix_s: float, now_unix_s: float, done: SweepReport
) -> None:
    """Of whole days that lie before, the first ones first."""
    last = record_folders.format_day(before_unix_s)
    for day in jobs.days():
        if name_of(day) >= last:
            continue
        packs(asked, day, done)
        for job in jobs.of(day):
            if asked.unpacked:
                whole_job(asked, job, before_unix_s, done)
            else:
                never_packed(asked, job, before_unix_s, now_unix_s, done)
            done.left_jobs += not asked.dry_run and job.is_dir()
        if not asked.dry_run:
            done.removed_bytes += empty_day(day)


def whole_job(asked: SweepRequest, job: Path, before_unix_s: float, done: SweepReport) -> None:
    """All of a job, packed or not, that nobody has touched since."""
    newest = max((f.status.st_mtime for f in record_files.files_in(job)), default=0.0)
    if newest < before_unix_s:
        done.removed_jobs += 1
        done.removed_bytes += record_files.used_bytes(job) + record_files.own_bytes(job)
        if not asked.dry_run:
            shutil.rmtree(job)


def never_packed(
    asked: SweepRequest, job: Path, before_unix_s: float, now_unix_s: float, done: SweepReport
) -> None:
    """A job's files that no pack will ever have; what is not ours is nobody's to remove unasked."""
    stay = record_files.sort_out(job, before_unix_s, now_unix_s).stay
    for file in (file for why in stay if why != record_files.OTHER for file in stay[why]):
        done.removed_files += 1
        file_away(asked, file.path, done)
    if not asked.dry_run:
        done.removed_bytes += folder_away(job)


def packs(asked: SweepRequest, day: Path, done: SweepReport) -> None:
    """A day's packs."""
    found = record_packs.list_packs(day)
    if found:
        done.removed_days.append(name_of(day))
    for one in found:
        for path in record_packs.pack_files(one):
            file_away(asked, path, done)
    if not asked.dry_run:
        done.removed_bytes += empty_day(day)


def file_away(asked: SweepRequest, path: Path, done: SweepReport) -> None:
    """Remove and count a file, if it is there."""
    with contextlib.suppress(FileNotFoundError, IsADirectoryError):
        used = record_files.own_bytes(path)
        if not asked.dry_run:
            path.unlink()
        done.removed_bytes += used


def folder_away(path: Path) -> int:
    """Remove a folder that has nothing in it; the bytes it had of the disk."""
    with contextlib.suppress(OSError):
        used = record_files.own_bytes(path)
        path.rmdir()
        return used
    return 0


def empty_day(day: Path) -> int:
    """Folders of a day and of its month that have nothing in them any more; bytes of the disk."""
    if name_of(day) >= record_folders.format_day(time.time() - 2 * record_folders.DAY_S):
        return 0  # where jobs may start
    return sum(folder_away(path) for path in (record_packs.pack_folder(day), day, day.parent))


def over(asked: SweepRequest, jobs: Jobs, now_unix_s: float, done: SweepReport) -> None:
    """The oldest days' packs, and what is never packed, until the folder is no larger than it may
    be."""
    assert asked.quota_bytes is not None
    before_unix_s = now_unix_s - asked.pack_after_s
    for day in jobs.days():
        if done.used_bytes <= asked.quota_bytes:
            return
        before = done.removed_bytes
        packs(asked, day, done)
        if name_of(day) < record_folders.format_day(before_unix_s):
            for job in jobs.of(day):
                never_packed(asked, job, before_unix_s, now_unix_s, done)
        if not asked.dry_run:
            done.removed_bytes += empty_day(day)
        done.used_bytes -= done.removed_bytes - before
    if done.used_bytes > asked.quota_bytes:
        done.failed.append(
            f"{done.used_bytes} bytes are used, the quota is {asked.quota_bytes}: what is left is "
            "not packed yet (--pack-after)"
        )
