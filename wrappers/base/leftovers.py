"""Leftovers on this machine of killed commands: temporary folders and containers.

A temporary folder is named after its process, so that the next command can remove those of a killed
one. A process is identified by its id, its start time and its PID namespace: ids are used again, and
a process of another namespace would seem to have ended.

The containers of a `steelyard run` carry a label that all runs of a user share;
jobscripts/lib/launcher_leftovers.sh and the engines' own sweep (jobscripts/lib/launchers) check
whether their client still lives."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from steelyard.jobscripts import registry

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


SCRIPTS = [
    registry.LIBRARY / name for name in ("launcher_leftover_resources.sh", "launcher_leftovers.sh")
]
PROGRAM = "steelyard-left"  # its name as a separate program
MARKS, NOTES = Path("/run/steelyard-containers"), Path("/tmp")
TIMEOUT_S = 60


def remove_leftovers() -> list[str]:
    """Remove leftovers and return a line for each; as root, those of all users."""
    if not has_leftovers():
        return []
    try:
        return run_script("sweep" if os.geteuid() == 0 else "folders")
    except (OSError, subprocess.SubprocessError):
        return []  # a run never fails by leftovers of another; `steelyard doctor` lists them


def has_leftovers() -> bool:
    """Return whether there are marks, so that starting a program is worthwhile; running runs have
    marks, too."""
    marks = os.geteuid() == 0 and any(MARKS.glob("steelyard-*"))
    return marks or any(NOTES.glob(".steelyard.*"))


def run_script(command: str) -> list[str]:
    """Return the script's lines; for `list` one for each mark and folder of a run that has ended.
    Raises OSError, SubprocessError."""
    argv = ["bash", "-c", '. "$1" && . "$2" "${@:3}"', PROGRAM, *map(str, SCRIPTS), command]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout.splitlines()


RUN_PREFIX = "steelyard-run-"


def container_label() -> str:
    """Return the label of the containers of this user's runs."""
    return f"run-{os.geteuid()}-{pid_namespace()}"


def make_run_folder() -> AbstractContextManager[Path]:
    """Remove leftovers, then create a folder for temporary files."""
    for line in remove_leftovers():
        print(f"steelyard: {line}", file=sys.stderr)
    return make_folder(RUN_PREFIX, Path(tempfile.gettempdir()))
