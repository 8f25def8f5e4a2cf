"""Temporary folders named after their process, so that the next command can remove those of a
killed one.

A process is identified by its id, its start time and its PID namespace: ids are used again, and a
process of another namespace would seem to have ended."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

Remove = Callable[[str], None]


def pid_namespace() -> str:
    """Return the id of the namespace of our process ids."""
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def remove_tree(path: str) -> None:
    """Remove a tree, as far as possible."""
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def make_folder(prefix: str, base: Path, remove: Remove = remove_tree) -> Iterator[Path]:
    """Yield a new folder below `base`, which is removed at the end. Folders of killed commands are
    removed first."""
    remove_stale_folders(prefix, base, remove)
    own = f"{prefix}{os.getpid()}-{read_start_ticks(os.getpid())}-{pid_namespace()}-"
    found = tempfile.mkdtemp(prefix=own, dir=base)
    try:
        yield Path(found)
    finally:
        remove(found)


def remove_stale_folders(prefix: str, base: Path, remove: Remove = remove_tree) -> None:
    """Remove our folders below `base` whose process has ended."""
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if is_stale(prefix, entry):
                remove(entry.path)


def is_stale(prefix: str, entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder of this user whose process, of this namespace, has
    ended."""
    match = re.fullmatch(re.escape(prefix) + r"(\d+)-(\d+)-(\d+)-\w+", entry.name)
    if match is None or match[3] != pid_namespace() or not entry.is_dir(follow_symlinks=False):
        return False
    is_ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return is_ours and read_start_ticks(int(match[1])) != int(match[2])


def read_start_ticks(pid: int) -> int | None:
    """Return when process `pid` started, in clock ticks since boot; None if it has ended or is a
    zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rsplit(")", 1)[1].split()  # the name may contain blanks and parentheses
    return None if fields[0] in "ZX" else int(fields[19])
