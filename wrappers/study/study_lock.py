"""The lock of a study: one process at a time submits it or changes its plan."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator

from steelyard.analysis.base import locks
from steelyard.wrappers.base.errors import MissingError, UsageError
from steelyard.wrappers.study.folder import StudyDir


@contextlib.contextmanager
def lock_study(study: StudyDir) -> Iterator[None]:
    """Hold the study's lock. Raises UsageError if another submit holds it, MissingError if the file
    system has no locks."""
    study.path.mkdir(parents=True, exist_ok=True)
    fd = os.open(study.lock, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            locks.lock_file(fd)
        except (BlockingIOError, PermissionError) as error:
            who = os.pread(fd, 200, 0).decode(errors="replace").strip()
            raise UsageError(f"{study.path}: another submit is at work ({who})") from error
        except OSError as error:
            if error.errno not in locks.NO_LOCKS:
                raise
            raise MissingError(
                f"{study.lock} cannot be locked ({error.strerror}): {locks.NO_LOCKS_ADVICE}"
            ) from error
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()} {socket.gethostname()}\n".encode(), 0)
        yield
        os.ftruncate(fd, 0)
    finally:
        os.close(fd)


def read_lock_holder(study: StudyDir) -> tuple[int, str] | None:
    """Return process id and host of the submit that holds the lock, or None."""
    try:
        fd = os.open(study.lock, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if not locks.is_locked(fd):
            return None
        fields = os.pread(fd, 200, 0).decode(errors="replace").split()
    finally:
        os.close(fd)
    return (int(fields[0]), fields[1]) if len(fields) == 2 and fields[0].isdigit() else (0, "?")
