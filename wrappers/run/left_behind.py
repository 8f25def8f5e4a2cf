"""What a `steelyard run` leaves that was killed with -9: found again by the next one.

Its folder of temporary files is named by its process; its containers carry a label that all runs
of a user have, and the engine's own sweep looks whether their client still lives
(jobscripts/lib/launcher_kinds.sh). Processes are known by their start, and by the namespace
that numbers them: another one's may look gone from here.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from steelyard.wrappers.base.process_start import start_ticks

PREFIX = "steelyard-run-"
NAME = re.compile(re.escape(PREFIX) + r"(\d+)-(\d+)-(\d+)-\w+")


def namespace() -> str:
    """Which namespace our process ids are of."""
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def label() -> str:
    """Of the containers of this user's runs."""
    return f"run-{os.geteuid()}-{namespace()}"


@contextmanager
def folder() -> Iterator[Path]:
    """A folder for temporary files; those of runs that were killed go first."""
    sweep(Path(tempfile.gettempdir()))
    own = f"{PREFIX}{os.getpid()}-{start_ticks(os.getpid())}-{namespace()}-"
    with tempfile.TemporaryDirectory(prefix=own) as found:
        yield Path(found)


def sweep(base: Path) -> None:
    """Remove our folders below `base` whose process is gone."""
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if is_left(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def is_left(entry: os.DirEntry[str]) -> bool:
    """A folder of this user, of a process of this namespace that has ended."""
    match = NAME.fullmatch(entry.name)
    if match is None or match[3] != namespace() or not entry.is_dir(follow_symlinks=False):
        return False
    is_ours = entry.stat(follow_symlinks=False).st_uid == os.geteuid()
    return is_ours and start_ticks(int(match[1])) != int(match[2])
