"""What a `steelyard run` leaves that was killed with -9: found again by the next one.

Its folder of temporary files is named by its process (wrappers/base/own_folder.py); its containers
carry a label that all runs of a user have, and the engine's own sweep looks whether their client
still lives (jobscripts/lib/launchers).
"""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import AbstractContextManager
from pathlib import Path

from steelyard.wrappers.base import killed_runs, own_folder

PREFIX = "steelyard-run-"


def label() -> str:
    """Of the containers of this user's runs."""
    return f"run-{os.geteuid()}-{own_folder.namespace()}"


def folder() -> AbstractContextManager[Path]:
    """A folder for temporary files; what killed runs left goes first."""
    for line in killed_runs.remove():
        print(f"steelyard: {line}", file=sys.stderr)
    return own_folder.folder(PREFIX, Path(tempfile.gettempdir()))
