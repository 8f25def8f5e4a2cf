"""Which process a number means: ids are used again, an id and its start are not."""

from __future__ import annotations

from pathlib import Path


def start_ticks(pid: int) -> int | None:
    """When process `pid` started, in clock ticks since boot; None: not there, or a zombie."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text.rsplit(")", 1)[1].split()  # the name may hold blanks and brackets
    return None if fields[0] in "ZX" else int(fields[19])
