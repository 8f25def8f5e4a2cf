"""Samples that a timer in the kernel takes, against what the load itself has written down."""

from __future__ import annotations

import bisect
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ..sampler.conftest import Attached
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414
from .conftest import answer, tell
from .test_sampler import attach as attach  # noqa: PLC0414

CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE = 2, 19  # linux/capability.h

# Writes 1000 bytes at random moments and prints when: before and after each call.
WRITER = """
import json, os, random, time
fd, calls = os.open("/dev/null", os.O_WRONLY), []
data, end = bytes(1000), time.time() + SECONDS
while time.time() < end:
    before = time.time()
    os.write(fd, data)
    calls.append((before, time.time()))
    time.sleep(random.uniform(0.001, 0.03))
text = json.dumps(calls)
print(text, flush=True)
"""

# Its process ends before it reports its usage.
LARGE = """
import mmap, os, resource
if not (child := os.fork()):
    large = mmap.mmap(-1, 200 << 20)
    for at in range(0, 200 << 20, 4096):
        large[at] = 1
    os._exit(0)
os.waitpid(child, 0)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, flush=True)
"""


@pytest.fixture
def job(
    started: Callable[..., subprocess.Popen[str]],
) -> Callable[[str], subprocess.Popen[str]]:
    """Start a root whose child executes such a script on request."""
    wait = 'read; "$0" -c "$1"; read'
    return lambda script: started("bash", "-c", wait, sys.executable, script)


def written(process: subprocess.Popen[str]) -> tuple[list[float], list[float]]:
    calls = json.loads(answer(process))
    return [call[0] for call in calls], [call[1] for call in calls]


def column(job: Attached, name: str) -> list[float]:
    return [value for value in job.column(name) if value is not None]


def check_grid(measured: Attached, record: dict[str, Any], period_s: float) -> None:
    """Check that times grow, and that each missing sample is a missed deadline."""
    times = column(measured, "elapsed_s")
    gaps = [b - a for a, b in pairwise(times)]
    assert min(gaps) >= 0
    # Of all together: a sample that is late by half a period would be rounded up.
    lacks = round((times[-1] - times[0]) / period_s) - len(gaps)
    # The first and the last are not on the grid.
    assert abs(record["sampler"]["missed_deadlines"] - lacks) <= 2 + abs(lacks) // 50
    assert record["sampler"]["samples"] == len(gaps) + 1


@pytest.mark.parametrize("rate_hz", [10, 100])
def test_each_sample_has_what_was_written_by_its_time(
    attach: Callable[..., Attached], job: Callable[[str], subprocess.Popen[str]], rate_hz: int
) -> None:
    """It has no later byte, and lacks no earlier one.

    A wall clock and a monotonic one, read one after the other, may differ by 2 ms here.
    """
    process = job(WRITER.replace("SECONDS", "3"))
    measured = attach("--pid", str(process.pid), "--rate", str(rate_hz))
    tell(process)
    before, after = written(process)
    record = measured.end()
    assert record["complete"] is True, record["why_incomplete"]
    assert record["bpf"]["ticks"] > 2.5 * rate_hz
    check_grid(measured, record, 1 / rate_hz)
    wrong = []
    for unix_s, wchar in zip(
        column(measured, "unix_s"), column(measured, "wchar_bytes"), strict=True
    ):
        least = bisect.bisect_left(after, unix_s - 0.002) * 1000
        most = bisect.bisect_right(before, unix_s + 0.002) * 1000
        if not least <= min(wchar, 1000 * len(after)) <= most:
            wrong.append((unix_s, least, wchar, most))
    assert len(wrong) <= len(after) // 100, wrong


def test_who_comes_too_late_for_them_says_so(
    attach: Callable[..., Attached], job: Callable[[str], subprocess.Popen[str]]
) -> None:
    """There is room for 256: of three seconds at 200 Hz some are lost, and no byte is."""
    process = job(WRITER.replace("SECONDS", "2"))
    measured = attach("--pid", str(process.pid), "--rate", "200")
    child = measured.child_pid
    tell(process)
    time.sleep(0.2)
    os.kill(child, signal.SIGSTOP)
    try:
        _, after = written(process)
        time.sleep(1)
    finally:
        os.kill(child, signal.SIGCONT)
    record = measured.end()
    assert record["complete"] is True, record["why_incomplete"]
    assert record["sampler"]["missed_deadlines"] >= 100
    check_grid(measured, record, 1 / 200)
    assert record["io"]["wchar_bytes"] >= 1000 * len(after)
    assert record["io"]["source"] == "bpf"


def test_a_process_that_is_large_between_two_samples(
    attach: Callable[..., Attached], job: Callable[[str], subprocess.Popen[str]]
) -> None:
    """As getrusage(2) has it: the kernel's own maximum. The root is no part of the job, and its
    own largest may be that of the tests that started it."""
    process = job(LARGE)
    measured = attach("--pid", str(process.pid), "--rate", "0.2")
    tell(process)
    assert process.stdout
    largest_kb = int(process.stdout.readline())
    record = measured.end()
    assert record["memory"]["source"] == "bpf"
    assert record["memory"]["max_memory_bytes"] == largest_kb * 1024


def rights(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("CapPrm:")[1].split()[0], 16)


def test_nobody_is_looked_into_where_the_kernel_counts(
    attach: Callable[..., Attached], job: Callable[[str], subprocess.Popen[str]]
) -> None:
    """Without samples of sockets; until a root is named, the right to do so is kept."""
    process = job(WRITER.replace("SECONDS", "0.5"))
    measured = attach("--rate", "0")
    assert rights(measured.child_pid) == 1 << CAP_SYS_PTRACE | 1 << CAP_DAC_READ_SEARCH
    measured.send(f"root {process.pid}")
    measured.totals()
    assert rights(measured.child_pid) == 0
    tell(process)
    _, after = written(process)
    record = measured.end()
    assert record["complete"] is True, record["why_incomplete"]
    assert record["io"]["wchar_bytes"] >= 1000 * len(after)
    assert record["io"]["source"] == "bpf"
