"""Locks on a study's files: taken and asked for without getting into anybody's way."""

from __future__ import annotations

import errno
import fcntl
import os
import struct

# What a file system without locks answers: NFS without a lock daemon, Lustre without -o flock.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
NO_LOCKS_ADVICE = (
    "its file system has no locks (NFS without lockd, Lustre without -o flock). Put the study's "
    "folder on a disk that has them, or ask your admin to mount this one with locks"
)
# struct flock of fcntl(2): type, whence, start, length, process; the last pads it to its size.
FLOCK = "hhqqi0q"


def lock_file(fd: int, wait: bool = False) -> None:
    """Lock a file for this open file; BlockingIOError when another has it, unless it waits."""
    command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
    fcntl.fcntl(fd, command, make_whole_file_lock(fcntl.F_WRLCK))


def is_locked(fd: int) -> bool:
    """Whether another has it; only asked, never held: nobody is refused for it."""
    try:
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, make_whole_file_lock(fcntl.F_WRLCK))
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return bool(struct.unpack(FLOCK, answer)[0] != fcntl.F_UNLCK)


def make_whole_file_lock(kind: int) -> bytes:
    """The argument of fcntl() for a lock on all of a file."""
    return struct.pack(FLOCK, kind, os.SEEK_SET, 0, 0, 0)


def is_missing_lock_error(message: str) -> bool:
    """Whether a program's own words (DuckDB's) tell of a file system without locks."""
    return "lock" in message and any(os.strerror(code) in message for code in NO_LOCKS)
