"""Detects whether a file has changed since it was last examined, by size and times.

A file counts as unchanged when its size, its modification time and (where it is reliable) its
inode's change time are unchanged. Content is not read. Two changes within RACE_NS may have the same
times, so that a file with a more recent change counts as changed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from steelyard.jobscripts.regular_files import WITHOUT_WAITING

RACE_NS = 2_000_000_000
MOST_FILES = 2000  # below one folder: to read more files again costs no more than to examine them
PROGRAM = ("analysis", "facts", "jobscripts")  # the folders whose code converts files to rows

# Inode, size in bytes, modification time and change time in ns. Programs such as `touch` cannot set
# the change time.
Identity = list[int]


class UnknownChangeError(Exception):
    """These files cannot be shown to be unchanged."""


def read_identity(path: str, folder_fd: int | None = None) -> Identity:
    """Return the identity of a readable file or folder, below an open one if that is given.

    Raises OSError as open() does. The file is opened, not only examined, since NFS then queries its
    server.
    """
    fd = os.open(path, WITHOUT_WAITING, dir_fd=folder_fd)
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def latest_change_ns(one: Identity) -> int:
    """Return the later of the two times, in ns."""
    return max(one[2:])


def list_files(
    folder: str, has_inode_time: Callable[[str, int], bool] = lambda name, mode: True
) -> list[tuple[str | int, ...]]:
    """Return path, size in bytes, modification time and change time (ns) of all files below a
    folder.

    The result is empty if the folder does not exist. `has_inode_time(name, mode)` states whether
    the change time is reliable; otherwise it is 0. Raises UnknownChangeError for more than
    MOST_FILES files, for a link (which does not show changes of its target), and for a file that
    changed less than RACE_NS ago.
    """
    found: list[tuple[str | int, ...]] = []
    below, latest_ns = [folder], time.time_ns() - RACE_NS
    while below:
        try:
            entries = os.scandir(below.pop())
        except (FileNotFoundError, NotADirectoryError):
            continue
        with entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                modified_ns = status.st_mtime_ns
                changed_ns = status.st_ctime_ns if has_inode_time(entry.name, status.st_mode) else 0
                is_new = modified_ns > latest_ns or changed_ns > latest_ns
                if is_new or entry.is_symlink() or len(found) == MOST_FILES:
                    raise UnknownChangeError
                found.append((entry.path, status.st_size, modified_ns, changed_ns))
                if entry.is_dir(follow_symlinks=False):
                    below.append(entry.path)
    return sorted(found)


def digest(*parts: object) -> str:
    """Return one digest of all values."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


@functools.cache
def digest_program() -> str:
    """Return a digest of Steelyard's own files that make rows, since another version may differ."""
    package = Path(__file__).parents[2]
    files = (row for name in PROGRAM for row in _list_program_files(package / name))
    return digest(*sorted(files))


def _list_program_files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and time of each source file, without Python's compiled files."""
    for path in folder.rglob("*"):
        if path.suffix != ".pyc" and path.is_file():
            status = path.stat()
            yield str(path), status.st_size, status.st_mtime_ns
