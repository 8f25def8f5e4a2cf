"""A folder for what a command is making, named by its process: one that was killed with -9 leaves
it, and the next one like it finds it again.

Processes are known by their start, and by the namespace that numbers them: another one's may look
gone from here.
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

from steelyard.wrappers.base.process_start import start_ticks

Remove = Callable[[str], None]


def namespace() -> str:
    """Which namespace our process ids are of."""
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def remove_tree(path: str) -> None:
    """As far as it can be."""
    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def folder(prefix: str, base: Path, remove: Remove = remove_tree) -> Iterator[Path]:
    """One below `base`, gone at the end; those of commands that were killed go first."""
    sweep(prefix, base, remove)
    own = f"{prefix}{os.getpid()}-{start_ticks(os.getpid())}-{namespace()}-"
    found = tempfile.mkdtemp(prefix=own, dir=base)
    try:
        yield Path(found)
    finally:
        remove(found)


def sweep(prefix: str, base: Path, remove: Remove = remove_tree) -> None:
    """Remove our folders below `base` whose process is gone."""
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if is_left(prefix, entry):
                remove(entry.path)


def is_left(prefix: str, entry: os.DirEntry[str]) -> bool:
    """A folder of this user, of a process of this namespace that has ended."""
    match = re.fullmatch(re.escape(prefix) + r"(\d+)-(\d+)-(\d+)-\w+", entry.name)
    if match is None or match[3] != namespace() or not entry.is_dir(follow_symlinks=False):
        return False
    is_ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return is_ours and start_ticks(int(match[1])) != int(match[2])
