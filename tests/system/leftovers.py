"""Processes that a test leaves behind: found by our mark in their environment, by their parents,
or by a name of the folder of the tests on their command line."""

from __future__ import annotations

import contextlib
import os
import signal
import time

import pytest
from tests.processes import of_process, pids

MARK = "STEELYARD_TESTS"
PATIENCE_S = 30.0  # what ends by itself (guards, servers that were told to) may take so long


def without_sweeps(text: str) -> str:
    """Lines of stderr without those on what a killed run of another test left on this machine, which
    the next run removes and reports."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if "was killed and left here" not in line)


@pytest.fixture(scope="session")
def marked() -> None:
    """Of this process alone: others may run the same tests beside us."""
    os.environ[MARK] = f"{os.getpid()}.{time.time_ns()}"


def read(pid: int, name: str) -> str:
    """A file of the process; empty when it is gone, or not ours to read."""
    return of_process(pid, name).decode(errors="replace")


def parent(pid: int) -> int:
    """Its parent's process id; 0 when it is gone, or dead and only not waited for."""
    state, above = (read(pid, "stat").rpartition(") ")[2].split() or ["Z", "0"])[:2]
    return 0 if state in "ZX" else int(above)


def is_ours(pid: int, before: set[int], folder: str) -> bool:
    """Does it live, and was it started by us, or by a new one that was?"""
    above = parent(pid)
    while above and pid not in before:
        if f"{MARK}={os.environ[MARK]}" in read(pid, "environ").split("\0"):
            return True
        if above == os.getpid() or folder in read(pid, "cmdline"):
            return True
        pid, above = above, parent(above)
    return False


def running(before: set[int], folder: str) -> list[int]:
    """Those of ours that were not there before."""
    return [pid for pid in pids() - before if is_ours(pid, before, folder)]


def end(before: set[int], folder: str) -> list[str]:
    """Kill what does not end by itself; their command lines."""
    deadline = time.monotonic() + PATIENCE_S
    while (left := running(before, folder)) and time.monotonic() < deadline:
        time.sleep(0.05)
    lines = [read(pid, "cmdline").replace("\0", " ").strip() or f"process {pid}" for pid in left]
    for pid in left:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return lines
