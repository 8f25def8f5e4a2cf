"""For tests that become somebody else: the way to folders and programs that are ours.

Folders of pytest are closed to others, and the checkout may lie below a home that is.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path


def open_way(folder: Path) -> None:
    """Let everybody through to a folder below the temporary one."""
    for path in folder.parents:
        mode = path.stat().st_mode
        if path.is_relative_to(tempfile.gettempdir()) and not mode & 1:
            path.chmod(mode | 0o711)


def open_copy(program: Path, folder: Path) -> Path:
    """A copy, in a folder below the temporary one, that everybody may run."""
    folder.chmod(0o755)
    open_way(folder)
    return Path(shutil.copy2(program, folder))
