"""Leftovers on this machine of runs killed with SIGKILL: lists and removes them.

The temporary folder of a `steelyard run` is named after its process (process_folder.py). Its
containers carry a label that all runs of a user share; jobscripts/lib/launcher_leftovers.sh and the
engines' own sweep (jobscripts/lib/launchers) check whether their client still lives."""

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
    return f"run-{os.geteuid()}-{process_folder.pid_namespace()}"


def make_run_folder() -> AbstractContextManager[Path]:
    """Remove leftovers, then create a folder for temporary files."""
    for line in remove_leftovers():
        print(f"steelyard: {line}", file=sys.stderr)
    return process_folder.make_folder(RUN_PREFIX, Path(tempfile.gettempdir()))
