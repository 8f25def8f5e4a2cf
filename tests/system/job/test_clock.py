"""A node's wall clock that is set between a job's begin and its end, or between two starts of it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.system import set_clock
from tests.system.job.conftest import TIMEOUT_S, make_old
from tests.waiting import wait_for

from steelyard.wrappers.base.programs import find_node_program

HOUR_S = 3600


@pytest.fixture
def clock(node: Any) -> set_clock.WallClock:
    return set_clock.make(node.base)


def call(clock: set_clock.WallClock, *words: str | Path) -> dict[str, Any]:
    """steelyard-node job under that clock; what it prints."""
    done = subprocess.run(
        [*clock.prefix, find_node_program(), "job", *words],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout or "{}")
    assert isinstance(found, dict)
    return found


def works(node: Any, job_id: str, bytes_written: int) -> None:
    """A job, seen by its sampler, that writes as much."""
    job = node.run_seen(job_id, f"head -c {bytes_written} /dev/zero >/dev/null")
    node.mom.reap(job)


@pytest.mark.parametrize("off", [-HOUR_S, HOUR_S], ids=["back", "forward"])
def test_set_between_begin_and_end(node: Any, clock: set_clock.WallClock, off: int) -> None:
    call(clock, *node.begin_arguments("7.srv", "--rate=20"))
    works(node, "7.srv", 5_000_000)
    clock.set_off(off)
    told = call(clock, "end", "--job-id=7.srv", *node.where())
    record = node.record("7.srv")
    assert record["incomplete_of"] == "processes"  # it lacks nothing else
    assert told["nodes_measured"] == 1
    assert told["elapsed_s"] == pytest.approx(record["elapsed_s"], abs=1e-6)
    assert 5_000_000 <= record["io"]["wchar_bytes"] < 5_100_000
    assert node.left() == []


def test_set_back_between_two_starts_each_tells_its_own(
    node: Any, clock: set_clock.WallClock
) -> None:
    """The earlier record has the later name then."""
    node.begin("7.srv", "--rate=20", "--request=tag=start%3D1")
    works(node, "7.srv", 1_000_000)
    assert node.end("7.srv")["tags"] == {"start": "1"}
    clock.set_off(-HOUR_S)
    program = node.other_program("moved", f'exec {" ".join(clock.prefix)} $program "$@"')
    request = "--request=tag=start%3D2"
    call(clock, *node.begin_arguments("7.srv", "--rate=20", request, f"--node-program={program}"))
    wait_for("both records", lambda: len(list((node.records / "7.srv").glob("*.json"))) == 2)
    works(node, "7.srv", 5_000_000)
    told = call(clock, "end", "--job-id=7.srv", *node.where())
    assert (told["nodes_measured"], told["tags"]) == (1, {"start": "2"})


def test_set_back_between_two_starts_what_is_not_measured_is_not_told(
    node: Any, clock: set_clock.WallClock
) -> None:
    """The record of the start before ended later than now, and than this one began."""
    node.begin("7.srv", "--rate=20")
    assert node.end("7.srv")["nodes_measured"] == 1
    clock.set_off(-HOUR_S)
    call(clock, *node.begin_arguments("7.srv", f"--node-program={node.without_sampler()}"))
    assert call(clock, "end", "--job-id=7.srv", *node.where())["nodes_measured"] == 0


def test_a_killed_sampler_tells_no_part_for_the_whole(node: Any) -> None:
    node.begin("7.srv", "--rate=20")
    works(node, "7.srv", 1_000_000)
    sampler = node.sampler("7.srv")
    wait_for("a sample", lambda: any(p.stat().st_size > 2000 for p in node.records.rglob("*.csv")))
    subprocess.run(["kill", "-9", str(sampler)], check=True)
    wait_for("it is finished", lambda: node.sweep() or "end_unix_s" in final(node))
    assert node.end("7.srv")["nodes_measured"] == 0


def final(node: Any) -> dict[str, Any]:
    record: dict[str, Any] = node.record("7.srv")
    return record if record["end_unix_s"] is not None else {}


def test_a_job_that_has_just_begun_is_not_old_because_the_clock_says_so(
    node: Any, clock: set_clock.WallClock
) -> None:
    """Its processes may still come."""
    call(clock, *node.begin_arguments("7.srv", f"--node-program={node.without_sampler()}"))
    clock.set_off(HOUR_S)
    call(clock, "sweep", *node.where(), "--only-alive")
    assert node.state("7.srv").exists()


def test_a_job_that_is_gone_is_not_new_because_the_clock_says_so(
    node: Any, clock: set_clock.WallClock
) -> None:
    call(clock, *node.begin_arguments("7.srv", f"--node-program={node.without_sampler()}"))
    make_old(node.state("7.srv"))
    clock.set_off(-HOUR_S)
    call(clock, "sweep", *node.where(), "--only-alive")
    assert not node.state("7.srv").exists()
