"""Final counters of roots: a repeated message replaces the one before."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

FIRST = "404000 5000000 3000000 4096 8192"
COLUMNS = ("cpu_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes")


@pytest.fixture
def root() -> Iterator[subprocess.Popen[bytes]]:
    """A process without children, whose own use is not the job's."""
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def told(totals: dict[str, Any]) -> list[float]:
    return [totals[name] for name in COLUMNS]


def test_final_counters_told_again_replace_what_was_told_before(sampler: Any, root: Any) -> None:
    attached = sampler.attach("--rate", "0.1")
    attached.send(f"root {root.pid}", f"done {root.pid} {FIRST}")
    assert told(attached.totals()) == [0.404, 5_000_000, 3_000_000, 4096, 8192]
    attached.totals()
    attached.send(f"done {root.pid} 406000 5000100 3000200 4096 12288")
    assert told(attached.totals()) == [0.406, 5_000_100, 3_000_200, 4096, 12288]
    record = attached.end()
    assert told(record["io"] | record["cpu"]) == [0.406, 5_000_100, 3_000_200, 4096, 12288]
    assert record["io"]["source"] == "reaped"


def test_a_root_that_ends_while_its_second_message_waits_counts_once(
    sampler: Any, root: Any, datagram: Any
) -> None:
    """Samples taken for other steps in between do not make the sampler forget it."""
    attached = sampler.attach("--rate", "0.1")
    attached.send(f"root {root.pid}")
    child = attached.child_pid
    os.kill(child, signal.SIGSTOP)
    attached.send(f"done {root.pid} {FIRST}")
    for _ in range(3):
        datagram.sendto(b"totals", str(attached.control))
    attached.send(f"done {root.pid} {FIRST}")
    root.kill()
    root.wait()
    os.kill(child, signal.SIGCONT)
    assert told(attached.totals()) == [0.404, 5_000_000, 3_000_000, 4096, 8192]
    attached.end()


def test_steps_are_added_up(sampler: Any, root: Any) -> None:
    attached = sampler.attach("--rate", "0.1")
    attached.send(f"root {root.pid}", f"done {root.pid} {FIRST}")
    attached.totals()
    with subprocess.Popen(["sleep", "60"]) as other:
        attached.send(f"root {other.pid}")
        for pid in (other.pid, other.pid, root.pid):
            attached.send(f"done {pid} {FIRST}")
            totals = told(attached.totals())
        other.kill()
    assert totals == [0.808, 10_000_000, 6_000_000, 8192, 16384]
    attached.end()


def test_a_root_that_was_never_named_counts_once(sampler: Any, root: Any) -> None:
    attached = sampler.attach("--rate", "0.1")
    for _ in range(2):
        attached.send(f"done {root.pid} {FIRST}")
        assert told(attached.totals()) == [0.404, 5_000_000, 3_000_000, 4096, 8192]
    attached.end()


@pytest.mark.parametrize("done", [False, True])
def test_what_steps_report_is_not_complete_where_nothing_else_counts(
    sampler: Any, root: Any, done: bool
) -> None:
    """Of a process that nobody has waited for no step reports, and none that was killed does."""
    attached = sampler.attach("--rate", "10")
    attached.send(f"root {root.pid} 0")
    if done:
        attached.send(f"done {root.pid} {FIRST}")
    root.kill()
    root.wait()
    record = attached.end()
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith("neither the kernel nor a cgroup has counted")
    assert record["incomplete_of"] == "processes"
    assert (record["io"]["source"] == "reaped") is done


def test_bytes_that_a_step_could_not_report_are_null(sampler: Any, root: Any) -> None:
    """A thread of slurmstepd was reading or writing whenever it looked: CPU alone is reported."""
    attached = sampler.attach("--rate", "10")
    attached.send(f"root {root.pid}", f"done {root.pid} {FIRST}")
    with subprocess.Popen(["sleep", "60"]) as other:
        attached.send(f"root {other.pid}", f"done {other.pid} 100000")
        assert told(attached.totals()) == [0.504, None, None, None, None]
        other.kill()
    record = attached.end()
    assert record["cpu"]["cpu_s"] == 0.504
    assert (record["io"]["source"], record["io"]["rchar_bytes"]) == (None, None)
    why = "a slurmstepd could not separate its tasks' bytes from its own"
    assert record["missing"]["io.rchar_bytes"].startswith(why)
    assert record["missing"]["io.source"].startswith(why)
