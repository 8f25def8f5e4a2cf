"""What runs have left on this machine that were killed with -9 (jobscripts/lib/launcher_left.sh)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from steelyard.jobscripts import registry

SCRIPTS = [registry.LIBRARY / name for name in ("launcher_left_words.sh", "launcher_left.sh")]
PROGRAM = "steelyard-left"  # as which it is a program of its own
MARKS, NOTES = Path("/run/steelyard-containers"), Path("/tmp")
TIMEOUT_S = 60


def listed() -> list[str]:
    """A line for each mark and folder of a run that is over. Raises OSError, SubprocessError."""
    return told("list")


def remove() -> list[str]:
    """What could be removed, a line each; root's also what all others left."""
    if not any_left():
        return []
    try:
        return told("sweep" if os.geteuid() == 0 else "folders")
    except (OSError, subprocess.SubprocessError):
        return []  # no run fails by what another one left: `steelyard doctor` names it


def any_left() -> bool:
    """Whether it is worth starting a program: runs that go on have marks, too."""
    marks = os.geteuid() == 0 and any(MARKS.glob("steelyard-*"))
    return marks or any(NOTES.glob(".steelyard.*"))


def told(command: str) -> list[str]:
    """Its lines."""
    words = ["bash", "-c", '. "$1" && . "$2" "${@:3}"', PROGRAM, *map(str, SCRIPTS), command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
    return done.stdout.splitlines()
