"""Processes and their memory, where they share it or have partly ended: by the kernel and by /proc."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.waiting import wait_for

from ..sampler.conftest import Measured, Sampler
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414

MB = 1_000_000
BLOCK_MB = 100  # of each process, beside Python itself
# Its child waits between vfork and exec, which opens a FIFO that nobody writes to.
SPAWNS = f"""
import os, sys
block = b"x" * {BLOCK_MB * MB}
os.write(1, b"ready\\n")
fifo = (os.POSIX_SPAWN_OPEN, 0, sys.argv[1], os.O_RDONLY, 0)
os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=[fifo]), 0)
"""
# The main thread of each child ends by exit(2), the other one waits for the FIFO's writer.
MAIN_THREADS_END = f"""
import ctypes, os, platform, sys, threading
def wait():
    while open("/proc/self/stat").read().rsplit(")")[-1].split()[0] != "Z":
        pass
    block = b"x" * {BLOCK_MB * MB}
    os.write(1, b"ready\\n")
    os.read(os.open(sys.argv[1], os.O_RDONLY), 1)
    os._exit(0)
for _ in range(2):
    if os.fork() == 0:
        threading.Thread(target=wait).start()
        ctypes.CDLL(None).syscall(60 if platform.machine() == "x86_64" else 93, 0)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""
# Zombies: each has ended before the next one begins, and is never waited for.
NOBODY_WAITS = """
import os, sys
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
os.write(1, b"ready\\n")
os.read(os.open(sys.argv[1], os.O_RDONLY), 1)
"""
Measure = Callable[..., Measured]


@pytest.fixture(params=["kernel", "processes"])
def measure(
    request: pytest.FixtureRequest, able: None, sampler: Sampler, tmp_path: Path
) -> Measure:
    """The record of a script, which is let go when samples have seen it in its state."""
    counted = request.param == "kernel"
    place = 'mount -t bpf bpf /sys/fs/bpf; exec "$@"'
    prefix = ("unshare", "--mount", "bash", "-c", place, "-")
    fifo = tmp_path / "fifo"

    def run(script: str, lines: int) -> Measured:
        subprocess.run(["mkfifo", fifo], check=True)
        options = ("--rate", "10", *(() if counted else ("--bpf", "no")))
        process, measured = sampler.start(
            [sys.executable, "-c", script, str(fifo)],
            *options,
            prefix=prefix,
            stdout=subprocess.PIPE,
        )
        with process.stdout:
            try:
                for _ in range(lines):
                    assert process.stdout.readline() == b"ready\n"
                before = len(measured.samples)
                wait_for("samples of it", lambda: len(measured.samples) >= before + 10)
            finally:
                writer = os.open(fifo, os.O_RDWR)
                os.write(writer, bytes(lines))
                process.wait(90)
                os.close(writer)
        return measured

    return run


def test_a_child_of_vfork_is_in_its_parents_memory(measure: Measure) -> None:
    record = measure(SPAWNS, 1).record
    assert record["complete"] is True, record["incomplete_reason"]
    assert BLOCK_MB * MB < record["memory"]["max_memory_bytes"] < 1.5 * BLOCK_MB * MB


def test_a_process_outlives_its_main_thread(measure: Measure) -> None:
    record = measure(MAIN_THREADS_END, 2).record
    assert record["complete"] is True, record["incomplete_reason"]
    assert record["processes"]["max_processes"] == 3
    assert record["memory"]["max_memory_bytes"] > 2 * BLOCK_MB * MB


def test_a_zombie_is_no_living_process(measure: Measure) -> None:
    """While they come and go, a slow reading of /proc may meet several of them alive."""
    measured = measure(NOBODY_WAITS, 1)
    assert measured.column("processes")[-8:-3] == [1] * 5  # the last ones are of its end
