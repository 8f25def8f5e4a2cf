"""Has a file changed since an earlier look? The one answer to that, by size and times.

A file counts as unchanged when its size, the time of its content and, where that can be believed, the
time of its inode are what they were. Content is not read. Two changes within RACE_NS may leave the same
times: a file that was changed so short a time ago is taken for changed.
"""

from __future__ import annotations

import functools
import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from steelyard.jobscripts.userfiles import WITHOUT_WAITING

RACE_NS = 2_000_000_000
MOST_FILES = 2000  # below one folder: to read more again costs no more than to look at them
PROGRAM = ("analysis", "facts", "jobscripts")  # the folders whose code makes rows of files

# Inode, size in bytes, time of the content, time of the inode's own last change, in ns. The last one
# nobody can set, as `touch` does the other.
Identity = list[int]


class UnknownChangeError(Exception):
    """A look at these files cannot show that they are unchanged."""


def read_identity(path: str, folder_fd: int) -> Identity:
    """Of a file or folder below an open one, which must be readable; OSError as open() has it.

    It is opened, not only asked for: then NFS asks its server.
    """
    fd = os.open(path, WITHOUT_WAITING, dir_fd=folder_fd)
    try:
        status = os.fstat(fd)
    finally:
        os.close(fd)
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def latest_change_ns(one: Identity) -> int:
    """The later of its times."""
    return max(one[2:])


def list_files(
    folder: str, has_inode_time: Callable[[str, int], bool] = lambda name, mode: True
) -> list[tuple[str | int, ...]]:
    """Every file below a folder: path, size in bytes, time of its content and of its inode, in ns;
    empty where there is no folder.

    `has_inode_time(name, mode)`: whether the inode's time can be believed; else 0 stands for it.
    UnknownChangeError where there are more than MOST_FILES, a link, which shows nothing of its target,
    or a file that was changed less than RACE_NS ago.
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
    """One word for all of these."""
    return hashlib.blake2b(repr(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


@functools.cache
def digest_program() -> str:
    """Of the files of this Steelyard that make rows: another release may read the same file otherwise."""
    package = Path(__file__).parents[2]
    files = (row for name in PROGRAM for row in _list_program_files(package / name))
    return digest(*sorted(files))


def _list_program_files(folder: Path) -> Iterator[tuple[str, int, int]]:
    """Path, size and time of each; what Python compiles of them is no source."""
    for path in folder.rglob("*"):
        if path.suffix != ".pyc" and path.is_file():
            status = path.stat()
            yield str(path), status.st_size, status.st_mtime_ns
