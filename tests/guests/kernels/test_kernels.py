"""What older and newer kernels count for known loads, by the programs of this machine.

The kernels are those of Debian 12 (Linux 6.1), 13 (6.12), and Debian's newest. As in Debian,
unprivileged users may not call bpf(2).
"""

from __future__ import annotations

import re

import pytest

from .guest import Guest, boot

SUITES = {"bookworm": (6, 1), "trixie": (6, 12), "sid": None}
CAP_DAC_READ_SEARCH, CAP_SYS_PTRACE, CAP_BPF = 2, 19, 39  # linux/capability.h
COUNTS = "the kernel counts what jobs use"
RIGHT = (
    "; samplers keep the right CAP_BPF, without which this kernel refuses bpf(2) "
    "(kernel.unprivileged_bpf_disabled)"
)


@pytest.fixture(scope="module", params=SUITES)
def guest(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Guest:
    return boot(request.param, tmp_path_factory.mktemp(request.param))


def wants_right(guest: Guest) -> bool:
    return guest.release < (5, 19)


def says(guest: Guest) -> str:
    return COUNTS + (RIGHT if wants_right(guest) else "")


def test_it_is_the_kernel_of_that_release(guest: Guest, request: pytest.FixtureRequest) -> None:
    wanted = SUITES[request.node.callspec.params["guest"]]
    assert guest.release == wanted or (wanted is None and guest.release > (6, 12))


def test_status_says_what_it_can(guest: Guest) -> None:
    assert guest.text("can").splitlines() == [says(guest), "not loaded, 0 jobs, 0 tasks, 0.0 MB"]
    found = guest.json("status.json")
    assert found["supported"] is True
    assert found["needs_cap_bpf"] is wants_right(guest)


@pytest.mark.parametrize("how", ["wait", "ignore", "orphan", "thread"])
def test_every_byte(guest: Guest, how: str) -> None:
    truth, counted = guest.json(f"{how}.truth"), guest.json(f"{how}.counted")
    assert (counted["settled"], counted["lost"], counted["unread"]) == (1, 0, 0)
    assert {name: counted[name] for name in truth} == truth
    assert counted["processes"] == {"thread": 1, "orphan": 101}.get(how, 51)
    assert counted["threads"] == max(counted["processes"], 51)


@pytest.mark.parametrize("how", ["wait", "thread", "exec"])
def test_cpu_that_was_waited_for(guest: Guest, how: str) -> None:
    """Each task's way out is in it, too, which is long where all is emulated."""
    counted = guest.json(f"{how}.counted")
    waited_ns = counted["waited_cpu_us"] * 1000
    assert waited_ns - 1e6 - 1000 * counted["threads"] <= counted["cpu_ns"] <= 1.2 * waited_ns
    assert counted["user_ns"] + counted["system_ns"] == counted["cpu_ns"]


@pytest.mark.parametrize("job", ["command", "attached", "seldom"])
def test_every_byte_is_in_the_record(guest: Guest, job: str) -> None:
    truth, record = guest.json(f"{job}.truth"), guest.json(f"{job}.record")
    assert record["complete"] is True, record["incomplete_reason"]
    assert record["io"]["source"] == "bpf", record["missing"].get("bpf.missed_ends")
    assert {name: record["io"][name] for name in truth} == truth
    assert record["cpu"]["source"] == "bpf"
    assert 0.03 < record["cpu"]["cpu_s"] < 60
    assert record["bpf"]["missed_ends"] == 0
    assert (record["bpf"]["ticks"] > 0) is (job != "seldom")


@pytest.mark.parametrize("job", ["attached", "seldom"])
def test_what_the_sampler_may(guest: Guest, job: str) -> None:
    found = int(guest.text(f"{job}.rights"), 16)
    looks = 1 << CAP_SYS_PTRACE | 1 << CAP_DAC_READ_SEARCH
    right = (1 << CAP_BPF) * wants_right(guest)
    assert found & ~looks == right
    assert (found & looks == 0) is (job == "seldom")


def test_the_largest_process(guest: Guest) -> None:
    """It has 64 MiB, and what any program has."""
    memory = guest.json("large.record")["memory"]
    assert memory["source"] == "bpf"
    assert 63 << 20 < memory["max_memory_bytes"] < 70 << 20


def test_who_is_moved_into_a_cgroup(guest: Guest) -> None:
    assert guest.json("move.counted")["wchar_bytes"] == guest.json("move.truth")["wchar_bytes"]


def test_nothing_is_left_and_the_kernel_has_nothing_to_say(guest: Guest) -> None:
    assert guest.text("left") == ""
    assert re.findall(r"BUG|WARNING|Call Trace|stall", guest.text("dmesg")) == []
