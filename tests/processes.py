"""Finds the processes of a test, some of which may end meanwhile, for every tier."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def pids() -> set[int]:
    """Return all process ids."""
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}


def of_process(pid: int, name: str) -> bytes:
    """Return a file of the process' folder in /proc; empty if it has ended or is not readable."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def each_process(name: str) -> Iterator[tuple[int, bytes]]:
    """Yield process ids, and that file of each, unless it is empty or unreadable.

    It does not use a glob of `*/cmdline`, which raises if a process ends meanwhile (Python 3.11).
    """
    for pid in pids():
        if content := of_process(pid, name):
            yield pid, content
