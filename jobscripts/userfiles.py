"""Files that a job or its user left: only regular ones are read, and never more than a limit.

A FIFO would wait for ever, /dev/zero has no end, and `truncate -s 1T` costs its maker nothing.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

RECORD_BYTES = 8 << 20  # ours have some 40 KB
NOTE_BYTES = 16 << 20  # tags, environment, result.json
PLAN_BYTES = 1 << 30  # of a study of 100,000 runs: 60 MB
BULK_BYTES = 32 << 30  # samples at 100 Hz of a month
ANY_BYTES = 1 << 62  # where only a part is read
PIECE_BYTES = 1 << 16  # read at once beyond what a file's size promised
# Smaller ones may have a hole, which a crash of a node leaves: it is read as what it is, zeros.
HOLE_BYTES = 1 << 30

WRITABLE = 0o222  # bits of a mode: the sampler leaves 0440

WITHOUT_WAITING = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class OddFileError(OSError):
    """No regular file, or one too large; `strerror` says which."""

    def __init__(self, path: Path | str, what: str) -> None:
        super().__init__(errno.EINVAL, what, str(path))


def open_regular(path: Path, most_bytes: int = BULK_BYTES) -> BinaryIO:
    """Open for reading without waiting for anybody; OddFileError when it is not to be read."""
    fd = os.open(path, WITHOUT_WAITING)
    try:
        check(path, fd, most_bytes)
    except BaseException:
        os.close(fd)
        raise
    return os.fdopen(fd, "rb")


def check(path: Path | str, fd: int, most_bytes: int) -> int:
    """The size in bytes of an open file; OddFileError when it is not to be read."""
    status = os.fstat(fd)
    if not stat.S_ISREG(status.st_mode):
        raise OddFileError(path, "it is no regular file")
    if status.st_size > most_bytes:
        raise OddFileError(path, f"{status.st_size} bytes are more than the {most_bytes} looked at")
    if status.st_size > HOLE_BYTES and (hole := first_hole(fd, status.st_size)) < status.st_size:
        raise OddFileError(path, f"{status.st_size} bytes with a hole at byte {hole}")
    return status.st_size


def first_hole(fd: int, size_bytes: int) -> int:
    """Where nothing was written; the size when there is no such place, or none can be told."""
    try:
        return os.lseek(fd, 0, os.SEEK_HOLE)
    except OSError:
        return size_bytes
    finally:
        os.lseek(fd, 0, os.SEEK_SET)


def read_regular(path: Path | str, most_bytes: int) -> bytes:
    """All of a regular file; OddFileError when it is none, or larger.

    Room is taken for what is there, not for what is allowed: of 10,000 small files that was a
    quarter of the time.
    """
    fd = os.open(path, WITHOUT_WAITING)
    try:
        pieces = [os.read(fd, check(path, fd, most_bytes) + 1)]
        size = len(pieces[0])
        while pieces[-1] and size <= most_bytes:  # until a read finds no more: it may have grown
            pieces.append(os.read(fd, PIECE_BYTES))
            size += len(pieces[-1])
    finally:
        os.close(fd)
    if size > most_bytes:
        raise OddFileError(path, f"more than {most_bytes} bytes")
    return b"".join(pieces)


def read_tail(path: Path, most_bytes: int) -> bytes:
    """The end of a regular file of any size."""
    with open_regular(path, ANY_BYTES) as file:
        file.seek(max(os.fstat(file.fileno()).st_size - most_bytes, 0))
        return file.read(most_bytes)


def create_beside(path: Path) -> BinaryIO:
    """A file of ours in a folder of the user's, anew: what lies there under its name is no way in."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    return os.fdopen(fd, "wb")
