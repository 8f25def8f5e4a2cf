"""Processes that a test leaves behind.

They are found by our mark in their environment, by their parents, or by the name of the tests'
folder on their command line.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest
from tests.processes import of_process, pids

MARK = "STEELYARD_TESTS"
PATIENCE_S = 30.0  # guards and servers that were asked to end may take so long


def without_sweeps(text: str) -> str:
    """Remove messages about leftovers of other tests' killed runs from stderr.

    The next run removes and reports those.
    """
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if "was killed and left here" not in line)


@pytest.fixture(scope="session")
def marked() -> None:
    """Mark this process alone: others may run the same tests concurrently."""
    os.environ[MARK] = f"{os.getpid()}.{time.time_ns()}"


def read(pid: int, name: str) -> str:
    """Return a file of the process; empty if it has ended or is not readable."""
    return of_process(pid, name).decode(errors="replace")


def parent(pid: int) -> int:
    """Return its parent's process id; 0 if it has ended or is a zombie."""
    state, above = (read(pid, "stat").rpartition(") ")[2].split() or ["Z", "0"])[:2]
    return 0 if state in "ZX" else int(above)


def is_ours(pid: int, before: set[int], folder: str) -> bool:
    """Whether a process lives and was started by us, or by a new process that was."""
    above = parent(pid)
    while above and pid not in before:
        if f"{MARK}={os.environ[MARK]}" in read(pid, "environ").split("\0"):
            return True
        if above == os.getpid() or folder in read(pid, "cmdline"):
            return True
        pid, above = above, parent(above)
    return False


def running(before: set[int], folder: str) -> list[int]:
    """Return our processes that did not exist before."""
    return [pid for pid in pids() - before if is_ours(pid, before, folder)]


def end(before: set[int], folder: str) -> list[str]:
    """Kill processes that do not end by themselves; return their command lines."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := running(before, folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = [read(pid, "cmdline").replace("\0", " ").strip() or f"process {pid}" for pid in left]
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return lines
