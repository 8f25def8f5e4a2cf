"""What runs left on this machine that were killed with SIGKILL: listed, removed, found again.

The folder of temporary files of a `steelyard run` is named by its process (process_folder.py). Its
containers carry a label that all runs of a user have; jobscripts/lib/launcher_leftovers.sh and the
engines' own sweep (jobscripts/lib/launchers) check whether their client still lives.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from steelyard.jobscripts import registry
from steelyard.wrappers.base import process_folder

SCRIPTS = [
    registry.LIBRARY / name for name in ("launcher_leftover_kinds.sh", "launcher_leftovers.sh")
]
PROGRAM = "steelyard-left"  # as which it is a program of its own
MARKS, NOTES = Path("/run/steelyard-containers"), Path("/tmp")
TIMEOUT_S = 60


def list_leftovers() -> list[str]:
    """A line for each mark and folder of a run that is over. Raises OSError, SubprocessError."""
    return run_script("list")


def remove_leftovers() -> list[str]:
    """What could be removed, a line each; root's also what all others left."""
    if not has_leftovers():
        return []
    try:
        return run_script("sweep" if os.geteuid() == 0 else "folders")
    except (OSError, subprocess.SubprocessError):
        return []  # no run fails by what another one left: `steelyard doctor` names it


def has_leftovers() -> bool:
    """Whether it is worth starting a program: runs that go on have marks, too."""
    marks = os.geteuid() == 0 and any(MARKS.glob("steelyard-*"))
    return marks or any(NOTES.glob(".steelyard.*"))


def run_script(command: str) -> list[str]:
    """Its lines."""
    words = ["bash", "-c", '. "$1" && . "$2" "${@:3}"', PROGRAM, *map(str, SCRIPTS), command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout.splitlines()


RUN_PREFIX = "steelyard-run-"


def container_label() -> str:
    """Of the containers of this user's runs."""
    return f"run-{os.geteuid()}-{process_folder.pid_namespace()}"


def make_run_folder() -> AbstractContextManager[Path]:
    """A folder for temporary files; what killed runs left goes first."""
    for line in remove_leftovers():
        print(f"steelyard: {line}", file=sys.stderr)
    return process_folder.make_folder(RUN_PREFIX, Path(tempfile.gettempdir()))
