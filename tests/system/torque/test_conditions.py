"""Prologues of jobs with a network condition, on a kernel's real queues: lo of a namespace."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.torque.conftest import NOBODY, Cluster
from tests.system.torque.wire import POLICY, Wire, wired
from tests.waiting import wait_for

TRIES = 30
ASKED = "nodes=1,other=steelyard:netem=rate%3D100mbit%2Cdev%3Dlo"


@pytest.fixture
def wire() -> Iterator[Wire]:
    with wired() as tool:
        yield tool


@pytest.fixture
def shaped(tmp_path: Path, wire: Wire) -> Iterator[Cluster]:
    tmp_path.chmod(0o755)
    tool = Cluster(tmp_path, wire.enter)
    policy = tmp_path / "netem.conf"
    policy.write_text(POLICY)
    with tool.config.open("a") as file:
        file.write(f"netem_policy={policy}\n")
    yield tool
    for node in (tool.first, tool.sister):
        node.process.kill()
        node.process.communicate()


def launch(cluster: Cluster, job: str, **more: float) -> tuple[int, int]:
    status, pid = cluster.first.pelog(
        "prologue", cluster.given("torque.prologue.0.vm", job, resources=ASKED),
        job=["sleep", "0.1"], uid=NOBODY, marks={"PBS_JOBID": job, "PBS_NODENUM": "0", "PATH": "/bin"},
        **more,
    )  # fmt: skip
    cluster.first.order(reap=pid)
    return status, pid


def end(cluster: Cluster, job: str) -> None:
    assert cluster.first.pelog("epilogue", cluster.given("torque.epilogue.0.vm", job)) == 0


def test_a_condition_comes_and_goes_with_the_job(shaped: Cluster, wire: Wire) -> None:
    before = wire.queues()
    status, _ = launch(shaped, "1.srv")
    assert status == 0, shaped.first.output.read_text()
    assert "rate 100Mbit" in wire.queues()
    end(shaped, "1.srv")
    assert wire.queues() == before
    applied = shaped.record_of("1.srv", "vm")["network_conditions"]
    assert applied is not None
    assert (shaped.left(), shaped.samplers()) == ([], [])


@pytest.mark.slow
def test_thirty_prologues_killed_or_failed_leave_the_queues_as_they_were(shaped: Cluster, wire: Wire) -> None:  # fmt: skip
    pick = random.Random(13)
    before = wire.queues()
    took = time.monotonic()
    launch(shaped, "0.srv")
    took = time.monotonic() - took
    end(shaped, "0.srv")
    ends = set()
    for number in range(1, TRIES + 1):
        job = f"{number}.srv"
        ends.add(launch(shaped, job, kill_after_s=pick.uniform(0.0, took))[0])
        end(shaped, job)
    assert -9 in ends, "no prologue was killed in its work"
    wait_for("samplers to end", lambda: shaped.samplers() == [])
    assert wire.queues() == before
    assert shaped.left() == []
