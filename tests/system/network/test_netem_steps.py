"""Conditions with steps: a trace of rates, which needs no sch_netem (sch_tbf, and sch_htb or
sch_prio).

Everything happens in network namespaces made here, with a private /etc.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.network.netem_wire import NODE, EtcLab, two_namespaces_with_etc

WAIT_S = 60
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[EtcLab]:
    with two_namespaces_with_etc(tmp_path) as made:
        yield made


def apply(lab: EtcLab, spec: str) -> dict[str, Any]:
    done = lab.apply(f"{spec},to=10.77.0.2", "1")
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def followers(lab: EtcLab) -> list[int]:
    """The processes of ours in the namespace: those that follow a trace."""
    found = lab.inside("ip", "netns", "pids", lab.here).stdout.split()
    return [int(pid) for pid in found if b"netem" in read_command(pid)]


def read_command(pid: str) -> bytes:
    try:
        return Path("/proc", pid, "cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
        return b""


def wait_for_steps(lab: EtcLab, count: int) -> None:
    """Wait until the state has that many steps."""
    deadline = time.monotonic() + WAIT_S
    while json.loads((lab.run / "netem/n.1.json").read_text())["trace"]["steps"] < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_one_step_has_no_process(lab: EtcLab) -> None:
    lab.put("wan.csv", "time_s,rate_mbit\n0,8\n")
    before = lab.tree()
    document = apply(lab, "trace=wan")
    assert document["applied"] == document["requested"] == "trace=wan,to=10.77.0.2"
    assert "rate 8Mbit" in lab.tree()
    assert followers(lab) == []
    trace = document["trace"]
    assert (trace["steps"], trace["next_boot_s"]) == (1, None)
    assert [step["applied"] for step in trace["step_log"]] == ["rate=8mbit,to=10.77.0.2"]
    done: dict[str, Any] = lab.finish()
    assert (done["valid"], done["undone"]) == (True, True), done["invalid_reason"]
    assert lab.tree() == before


def test_steps_follow_each_other_and_the_process_ends_with_the_job(lab: EtcLab) -> None:
    lab.put("wan.csv", "time_s,rate_mbit\n0,8\n0.2,24\n0.4,16\n3600,8\n")
    before = lab.tree()
    apply(lab, "trace=wan")
    wait_for_steps(lab, 3)
    assert "rate 16Mbit" in lab.tree()
    (follower,) = followers(lab)
    done: dict[str, Any] = lab.finish()
    assert (done["valid"], done["undone"]) == (True, True), done["invalid_reason"]
    assert done["trace"]["now"] == "rate=16mbit,to=10.77.0.2"
    assert lab.tree() == before
    deadline = time.monotonic() + WAIT_S
    while Path("/proc", str(follower)).exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_step_that_is_changed_by_somebody_makes_the_run_invalid(lab: EtcLab) -> None:
    lab.put("wan.csv", "time_s,rate_mbit\n0,8\n")
    before = lab.tree()
    apply(lab, "trace=wan")
    lab.inside("tc", "qdisc", "change", "dev", "v0", "parent", "57e1:2", "handle", "5802:", "tbf",
               "rate", "99mbit", "burst", "25000", "limit", "1514000")  # fmt: skip
    done: dict[str, Any] = lab.finish()
    assert (done["valid"], done["undone"]) == (False, True)
    assert done["invalid_reason"].startswith("the qdisc of v0 was changed during the job")
    assert lab.tree() == before


def test_where_no_process_can_be_started_nothing_is_left(lab: EtcLab) -> None:
    lab.put("wan.csv", "time_s,rate_mbit\n0,8\n3600,24\n")
    before = lab.tree()
    log = lab.run.parent / "calls"
    apply = (str(NODE), "netem", "apply", f"--run-dir={lab.run}", "--node=n", "--job-id=1",
             "--uid=1000", "--no-policy", "--", "trace=wan,to=10.77.0.2")  # fmt: skip
    lab.run.mkdir()
    lab.inside("strace", "-e", "trace=clone,clone3,fork,vfork", "-o", str(log), *apply)
    assert lab.finish()["undone"] is True
    calls = re.findall(r"^(\w+)\(", log.read_text(), re.MULTILINE)
    last = f"{calls[-1]}:error=EAGAIN:when={calls.count(calls[-1])}"
    done = lab.inside("strace", "-o", "/dev/null", f"--inject={last}", *apply)
    assert done.returncode == 4
    assert "no process can be started to follow the trace" in done.stderr
    assert lab.tree() == before
    assert not (lab.run / "netem/n.1.json").exists()
