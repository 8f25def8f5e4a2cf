"""What tells a file that was changed from one that was not."""

from __future__ import annotations

import os

from steelyard.jobscripts.userfiles import WITHOUT_WAITING

RACE_NS = 2_000_000_000  # two changes this near to each other may leave the same times

# Inode, size in bytes, time of the content, time of the inode's own last change, in ns. The last one
# nobody can set, as `touch` does the other.
Identity = list[int]


def identity(path: str, folder_fd: int) -> Identity:
    """Of a file or folder below an open one, which must be readable; OSError as open() has it.

    It is opened, not only asked for: then NFS asks its server.
    """
    fd = os.open(path, WITHOUT_WAITING, dir_fd=folder_fd)
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def latest_ns(one: Identity) -> int:
    """The later of its times."""
    return max(one[2:])
