"""Temporary folders named by their process, so that the next command removes what a killed one left.

A process is known by its id, its start time and its namespace of process ids: ids are used again, and
a process of another namespace looks as if it had ended.
"""

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
    """Which namespace our process ids are of."""
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def remove_tree(path: str) -> None:
    """As far as it can be."""
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def make_folder(prefix: str, base: Path, remove: Remove = remove_tree) -> Iterator[Path]:
    """One below `base`, gone at the end; those of commands that were killed go first."""
    remove_stale_folders(prefix, base, remove)
    own = f"{prefix}{os.getpid()}-{read_start_ticks(os.getpid())}-{pid_namespace()}-"
    found = tempfile.mkdtemp(prefix=own, dir=base)
    try:
        yield Path(found)
    finally:
        remove(found)


def remove_stale_folders(prefix: str, base: Path, remove: Remove = remove_tree) -> None:
    """Remove our folders below `base` whose process is gone."""
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if is_stale(prefix, entry):
                remove(entry.path)


def is_stale(prefix: str, entry: os.DirEntry[str]) -> bool:
    """A folder of this user, of a process of this namespace that has ended."""
    match = re.fullmatch(re.escape(prefix) + r"(\d+)-(\d+)-(\d+)-\w+", entry.name)
    if match is None or match[3] != pid_namespace() or not entry.is_dir(follow_symlinks=False):
        return False
    is_ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return is_ours and read_start_ticks(int(match[1])) != int(match[2])


def read_start_ticks(pid: int) -> int | None:
    """When process `pid` started, in clock ticks since boot; None: not there, or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rsplit(")", 1)[1].split()  # the name may hold blanks and brackets
    return None if fields[0] in "ZX" else int(fields[19])
