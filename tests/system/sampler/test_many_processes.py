"""Of many processes a sample reads a part, and each of them often enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.waiting import wait_for

PROCESSES, GROW_MB = 60, 8
# At a byte all of them grow, at another one all end.
GROWING = f"""
import os
pipes = [os.pipe(), os.pipe()]
for _ in range({PROCESSES}):
    if os.fork() == 0:
        for _, end in pipes:
            os.close(end)
        os.read(pipes[0][0], 1)
        block = b"x" * ({GROW_MB} << 20)
        os.write(1, b"!")
        os.read(pipes[1][0], 1)
        os._exit(0)
os.write(1, b"!")
for _, end in pipes:
    os.read(0, 1)
    os.close(end)
for _ in range({PROCESSES}):
    os.wait()
"""


def resident_bytes(pid: int) -> int:
    """Of a process and its descendants."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return 4096 * pages + sum(resident_bytes(int(child)) for child in children)


def test_memory_of_many_processes_that_grow_at_once(sampler: Any) -> None:
    """Samples of a second each: less than a sample for each 16 of them."""
    process, measured = sampler.start(
        [sys.executable, "-c", GROWING],
        "--bpf", "no", stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    with process.stdin, process.stdout:
        assert process.stdout.read(1) == b"!"
        seen = str(1 + PROCESSES)
        wait_for("all are known", lambda: measured.samples[-1:] and
                 measured.samples[-1]["processes"] == seen)  # fmt: skip
        process.stdin.write(b"!")
        for _ in range(PROCESSES):
            assert process.stdout.read(1) == b"!"
        before = len(measured.samples)
        wait_for("two samples", lambda: len(measured.samples) >= before + 2)
        command = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[-1]
        truth = resident_bytes(int(command))
        process.stdin.write(b"!")
        assert process.wait(90) == 0
    assert truth > PROCESSES * GROW_MB << 20
    assert 0.98 * truth < measured.record["memory"]["max_memory_bytes"] < 1.02 * truth
