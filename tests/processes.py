"""What processes are there: how every tier looks for its own, of which some end meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


def pids() -> set[int]:
    """All that there are."""
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}


def of_process(pid: int, name: str) -> bytes:
    """A file of its folder in /proc; empty when it is gone, or not ours to read."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def each_process(name: str) -> Iterator[tuple[int, bytes]]:
    """Process ids, and that file of each; without those that are gone or have nothing in it.

    Not by a glob of `*/cmdline`, which raises where one ends meanwhile (Python 3.11).
    """
    for pid in pids():
        if content := of_process(pid, name):
            yield pid, content
