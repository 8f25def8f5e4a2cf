"""Locks on a study's files, which can be queried without blocking other processes."""

from __future__ import annotations

import errno
import fcntl
import os
import struct

# Errors of a file system without locks: NFS without a lock daemon, Lustre without -o flock.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
NO_LOCKS_ADVICE = (
    "its file system has no locks (NFS without lockd, Lustre without -o flock). Put the study's "
    "folder on a disk that has them, or ask your admin to mount this one with locks"
)
# struct flock of fcntl(2): type, whence, start, length, process; the last field pads it to its
# size.
FLOCK = "hhqqi0q"


def lock_file(fd: int, wait: bool = False) -> None:
    """Lock an open file. Without `wait`, raise BlockingIOError if another one has the lock."""
    command = fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK
    fcntl.fcntl(fd, command, make_whole_file_lock(fcntl.F_WRLCK))


def is_locked(fd: int) -> bool:
    """Whether another open file has the lock. This only queries it and never takes it."""
    try:
        answer = fcntl.fcntl(fd, fcntl.F_OFD_GETLK, make_whole_file_lock(fcntl.F_WRLCK))
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return bool(struct.unpack(FLOCK, answer)[0] != fcntl.F_UNLCK)


def make_whole_file_lock(kind: int) -> bytes:
    """Return the argument of fcntl() for a lock on a complete file."""
    return struct.pack(FLOCK, kind, os.SEEK_SET, 0, 0, 0)


def is_missing_lock_error(message: str) -> bool:
    """Whether a program's message (DuckDB's) reports a file system without locks."""
    return "lock" in message and any(os.strerror(code) in message for code in NO_LOCKS)
