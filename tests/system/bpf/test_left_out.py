"""A job of more tasks than the kernel reads at once (8,192).

Samples report what they lack, and the totals are correct when these tasks have ended.
"""

from __future__ import annotations

import fcntl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.waiting import wait_for

from ..sampler.conftest import Attached
from ..sampler.conftest import sampler as sampler  # noqa: PLC0414
from .conftest import answer, tell
from .test_sampler import attach as attach  # noqa: PLC0414
from .test_sampler import go, wait_until_over
from .test_sampler import root as root  # noqa: PLC0414

# 8,300 threads at once hold up whatever else a machine does.
pytestmark = pytest.mark.slow

READ = 8192  # SY_BPF_LIST of plugins/node/bpf/layout.h
THREADS = 8300
BEFORE = 2 * 10_000 + len("ready\n")  # tests/system/bpf/load.c
LOCK = Path("/run/lock/steelyard-test-crowd")
WHY = "the job had more tasks at once than the kernel reads: bpf.unread_tasks"


@pytest.fixture(params=["1", "10"])
def crowd(
    request: pytest.FixtureRequest,
    attach: Callable[..., Attached],
    root: Callable[..., subprocess.Popen[str]],
) -> Iterator[tuple[subprocess.Popen[str], Attached]]:
    """All threads are there, and wait; at 10 Hz a timer reads them."""
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a machine of 32,768 process ids has room for three
        process = root("crowd", THREADS, "0 moved")
        job = attach("--pid", str(process.pid), "--rate", request.param)
        tell(process)
        assert answer(process) == "ready\n", "the load has failed: see stderr"
        yield process, job
        process.kill()  # its threads end when their pipe is closed
        process.communicate()


def test_samples_that_lack_tasks_say_so(crowd: tuple[subprocess.Popen[str], Attached]) -> None:
    process, job = crowd
    # The child that has ended has no place either: what it did comes when it has ended for good.
    wait_for("what was before", lambda: job.totals()["wchar_bytes"] == BEFORE)
    before = job.totals()
    assert before["max_memory_bytes"] is None
    wait_for("a sample", lambda: any(row["processes"] == "" for row in job.samples))
    truth = go(process)
    wait_until_over(process)
    all_written = before["wchar_bytes"] + truth["wchar_bytes"]
    wait_for(
        f"all have ended, {all_written} bytes in",
        lambda: job.totals()["wchar_bytes"] == all_written,
        seen=job.totals,
    )
    record = job.end()
    assert record["complete"] is True, record["incomplete_reason"]
    assert {name: record["io"][name] - before[name] for name in truth} == truth
    # The thread that has started them; and for a moment a child of its.
    assert THREADS + 1 - READ <= record["bpf"]["unread_tasks"] <= THREADS + 2 - READ
    faults = {name: record["memory"].pop(name) for name in ("minor_faults", "major_faults")}
    assert None not in faults.values()  # counted where tasks end: test_faults.py holds them
    nothing = dict.fromkeys(("max_memory_bytes", "source", "charged_peak_bytes"))
    assert record["memory"] == nothing
    assert record["processes"]["max_processes"] is None
    missing = record["missing"]
    assert missing["memory.max_memory_bytes"] == missing["processes.max_processes"] == WHY
    lacking = [row for row in job.samples if row["processes"] == ""]
    assert {row["memory_bytes"] for row in lacking} == {""}


def test_the_reason_at_the_end_is_that_there_are_more(
    crowd: tuple[subprocess.Popen[str], Attached],
) -> None:
    _, job = crowd
    record = job.end()
    assert record["bpf"]["missed_ends"] is None
    why = "at the job's last reading it had more tasks than are read"
    assert record["missing"]["bpf.missed_ends"] == why
    assert record["complete"] is False
    assert why in record["incomplete_reason"]
