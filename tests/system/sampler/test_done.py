"""Final counters of roots: told twice by slurmstepd, at its last task's end and at its own."""

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


def test_more_cpu_than_the_node_has_is_no_number(sampler: Any, root: Any) -> None:
    """One root goes on, so that nothing is exact, and the other's sum cannot be."""
    attached = sampler.attach("--rate", "20")
    with subprocess.Popen(["sleep", "60"]) as other:
        attached.send(f"root {root.pid}", f"root {other.pid}")
        attached.totals()
        attached.send(f"done {other.pid} 9000000000 1 1 1 1")
        assert attached.totals()["cpu_s"] == 0
        record = attached.end()
        other.kill()
    assert record["cpu"]["cpu_s"] == 0
    assert set(attached.column("cpu_s")) <= {None, 0}
    assert record["complete"] is False
    assert record["incomplete_reason"].startswith(
        "the job's processes were found to have used 9000.00 s more CPU than"
    )


@pytest.mark.parametrize(
    ("named", "done", "complete"),
    [("{pid} 0", False, False), ("{pid} 0", True, True), ("{pid}", False, True)],
)
def test_a_steps_daemon_that_was_killed_leaves_a_record_that_says_so(
    sampler: Any, root: Any, named: str, done: bool, complete: bool
) -> None:
    """It was complete. Who names a process by hand (no page faults) has promised nothing."""
    attached = sampler.attach("--rate", "10")
    attached.send(f"root {named.format(pid=root.pid)}")
    if done:
        attached.send(f"done {root.pid} {FIRST} 0 0")
    root.kill()
    root.wait()
    record = attached.end()
    assert record["complete"] is complete
    if not complete:
        assert record["incomplete_reason"].startswith("1 steps' daemons ended without telling")
        assert record["incomplete_of"] == "processes"
