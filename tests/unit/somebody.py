"""Gives other users access to folders and programs, for tests that change their user.

Folders of pytest are private, and the checkout may be below a private home.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


def open_way(folder: Path) -> None:
    """Let all users enter a folder below the temporary one."""
    for path in folder.parents:
        mode = path.stat().st_mode
        if path.is_relative_to(tempfile.gettempdir()) and not mode & 1:
            path.chmod(mode | 0o711)


def open_copy(program: Path, folder: Path) -> Path:
    """Copy a program that all users may run to a folder below the temporary one."""
    folder.chmod(0o755)
    open_way(folder)
    return Path(shutil.copy2(program, folder))
