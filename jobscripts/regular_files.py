"""Reads files of jobs and users: only regular files, and never more than a limit.

A FIFO would block for ever, /dev/zero has no end, and `truncate -s 1T` makes a huge file at no
cost.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

RECORD_BYTES = 8 << 20  # records of Steelyard have some 40 KB
NOTE_BYTES = 16 << 20  # tags, environment, result.json
PLAN_BYTES = 1 << 30  # a study of 100,000 runs has 60 MB
BULK_BYTES = 32 << 30  # a month of samples at 100 Hz
ANY_BYTES = 1 << 62  # where only part of a file is read
PIECE_BYTES = 1 << 16  # read at once after the size that stat reported
# Smaller files may have a hole, which a node's crash can cause: it is read as zeros.
HOLE_BYTES = 1 << 30

WRITABLE = 0o222  # bits of a mode: the sampler sets 0440

WITHOUT_WAITING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class OddFileError(OSError):
    """A file is not regular, or is too large; `strerror` states which."""

    def __init__(self, path: Path | str, what: str) -> None:
        super().__init__(errno.EINVAL, what, str(path))


def open_regular(path: Path, most_bytes: int = BULK_BYTES) -> BinaryIO:
    """Open a regular file for reading without blocking; raise OddFileError for others."""
    fd = os.open(path, WITHOUT_WAITING)
    try:
        check(path, fd, most_bytes)
    except BaseException:
        os.close(fd)
        raise
    return os.fdopen(fd, "rb")


def check(path: Path | str, fd: int, most_bytes: int) -> int:
    """Return the size in bytes of an open file; raise OddFileError if it must not be read."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OddFileError(path, "it is no regular file")
    if status.st_size > most_bytes:
        raise OddFileError(path, f"{status.st_size} bytes are more than the {most_bytes} looked at")
    if status.st_size > HOLE_BYTES and (hole := first_hole(fd, status.st_size)) < status.st_size:
        raise OddFileError(path, f"{status.st_size} bytes with a hole at byte {hole}")
    return status.st_size


def first_hole(fd: int, size_bytes: int) -> int:
    """Return the offset of the first hole; the size if there is none, or it is unknown."""
    try:
        return os.lseek(fd, 0, os.SEEK_HOLE)
    except OSError:
        return size_bytes
    finally:
        os.lseek(fd, 0, os.SEEK_SET)


def read_regular(path: Path | str, most_bytes: int) -> bytes:
    """Return the content of a regular file; raise OddFileError if it is another or too large.

    The buffer has the file's size, not that of the limit, which took a quarter of the time for
    10,000 small files.
    """
    fd = os.open(path, WITHOUT_WAITING)
    try:
        pieces = [os.read(fd, check(path, fd, most_bytes) + 1)]
        size = len(pieces[0])
        while pieces[-1] and size <= most_bytes:  # until the end of the file, which may have grown
            pieces.append(os.read(fd, PIECE_BYTES))
            size += len(pieces[-1])
    finally:
        os.close(fd)
    if size > most_bytes:
        raise OddFileError(path, f"more than {most_bytes} bytes")
    return b"".join(pieces)


def read_tail(path: Path, most_bytes: int) -> bytes:
    """Return the end of a regular file of any size."""
    with open_regular(path, ANY_BYTES) as file:
        file.seek(max(os.fstat(file.fileno()).st_size - most_bytes, 0))
        return file.read(most_bytes)


def create_beside(path: Path) -> BinaryIO:
    """Create a file in a user's folder; a file or link with its name is removed, never followed."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    return os.fdopen(fd, "wb")
