"""One sweep of a folder of records: packs, removes by age, by quota and leftovers, and reports.

Steps that free space come before steps that need some. At every moment each file is loose, or in a
complete pack on disk, or both; in the last case readers use the loose file. So a killed sweep loses
nothing, and the next one continues. Removed bytes are counted as `record_files.used_bytes` counts
them, so that the two agree exactly."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.analysis.base import locks
from steelyard.analysis.sources import record_folders, record_packs
from steelyard.jobscripts.plurals import counted
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.sweep import packing, record_files
from steelyard.wrappers.sweep.record_files import File, Jobs

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True)
class SweepRequest:
    """What to do to a folder of records."""

    record_dir: Path
    pack_after_s: float
    older_than_s: float | None = None
    quota_bytes: int | None = None
    unpacked: bool = False  # remove what is not packed yet, too
    dry_run: bool = False
    every_s: int | None = None  # packed samples have a line every so many seconds; None: all lines


@dataclass(slots=True)
class SweepReport:
    """What was done, or in a dry run would be done."""

    packed_jobs: int = 0
    packed_files: int = 0
    packs: int = 0
    thinned_files: int = 0  # of samples, in these packs
    removed_days: list[str] = field(default_factory=list)  # whose packs were removed
    removed_files: int = 0  # files that are never packed
    removed_jobs: int = 0  # that were not packed yet
    removed_bytes: int = 0  # on disk, by age and quota; a dry run counts no folders
    temporary_files: int = 0
    empty_folders: int = 0
    left_jobs: int = 0  # older than the limit, but not packed yet
    waiting_jobs: int = 0  # of packed days: without an end, or changed recently
    stay_files: dict[str, int] = field(default_factory=dict)  # never packed, by reason
    stay_bytes: int = 0  # on disk, of these files
    used_bytes: int = 0  # on disk, of all files
    no_room: list[str] = field(default_factory=list)  # days whose packs did not fit on the disk
    failed: list[str] = field(default_factory=list)

    def fail(self, day: str, error: OSError) -> None:
        """Record a day that could not be packed. Days that met a full disk are reported in one
        line."""
        if error.errno in NO_ROOM:
            self.no_room.append(day)
        else:
            self.failed.append(f"{day}: {error.strerror or error}")


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
            lambda folder: remove_empty_job(request, folder, now_unix_s, done),
        )
        for day in jobs.list_days():
            remove_temporary(request, day, jobs, now_unix_s, done)
        if request.older_than_s is not None:
            remove_old_days(request, jobs, now_unix_s - request.older_than_s, now_unix_s, done)
        for day in jobs.list_days():
            pack_day(request, day, jobs, now_unix_s, done)
        done.used_bytes = record_files.used_bytes(request.record_dir)
        if request.quota_bytes is not None:
            remove_over_quota(request, jobs, now_unix_s, done)
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
    if day_name(day) >= record_folders.format_day(before):
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
        done.fail(day_name(day), error)
    if not request.dry_run:
        done.empty_folders += sum(packing.remove_empty(job) for job in jobs.list_folders(day))
        remove_empty_day(day)


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
    days = (day for day in jobs.list_days() if day_name(day) < last)
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
