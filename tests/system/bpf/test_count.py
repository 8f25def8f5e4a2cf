"""What the kernel's program counts is what the load knows to have done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .conftest import PROGRAM, Count, Inside

CPUACCT = Path("/sys/fs/cgroup/cpuacct")


@pytest.mark.parametrize("how", ["wait", "ignore", "orphan", "thread"])
def test_every_byte(count: Count, how: str) -> None:
    truth, counted = count(how, 300, 0)
    assert {name: counted[name] for name in truth} == truth
    processes = {"thread": 1, "orphan": 601}.get(how, 301)
    assert counted["processes"] == processes
    assert counted["threads"] == max(processes, 301)
    # The kernel charges whole ticks: of short processes it may have charged none.
    assert counted["user_ns"] + counted["system_ns"] == counted["cpu_ns"] > 0


def test_every_byte_in_a_namespace_of_process_ids(count: Count) -> None:
    truth, counted = count("orphan", 100, 0, before="unshare --pid --fork --mount-proc")
    assert {name: counted[name] for name in truth} == truth
    assert counted["processes"] == 201


IGNORE_SIGCHLD = (
    "import os, signal, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN);"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


def test_where_a_parent_has_left_sigchld_ignored_the_end_is_seen(count: Count) -> None:
    truth, counted = count("wait", 3, 0, before=f"{sys.executable} -c '{IGNORE_SIGCHLD}'")
    assert {name: counted[name] for name in truth} == truth
    assert counted["exit_code"] == 0
    assert counted["waited_cpu_us"] > 0


def test_tasks_for_which_there_is_no_room_are_told(
    inside: Inside,
) -> None:
    """Room for 20: `count` itself, the shell and 18 of its 30 children."""
    script = "ids=(); for i in {1..30}; do sleep 300 & ids+=($!); done; kill ${ids[@]}; wait"
    done = inside(f"$BPF count --base $BASE --tasks 20 -- bash -c '{script}'")
    counted = json.loads(done.stdout)
    assert counted["processes"] + counted["lost"] == 31
    assert counted["processes"] == 19


def agrees(counted: dict[str, Any], truth_us: float, before_us: float = 0) -> bool:
    """To the µs a task that the kernel rounds to. Of a task whose last moments were missed, what
    it did since the last tick (4 ms at 250 Hz) is not known; `before_us` may be in `counted` only.
    """
    surplus_us = counted["cpu_ns"] / 1000 - truth_us
    lack_us = counted["threads"] + 4200 * counted["missed"]
    return bool(-lack_us - 1000 <= surplus_us <= 1000 + counted["threads"] + before_us)


def test_every_moment_of_cpu_that_was_waited_for(count: Count) -> None:
    """wait4(2) tells the same of the same processes."""
    _, counted = count("wait", 300, 2000)
    assert counted["waited_cpu_us"] > 600_000
    assert agrees(counted, counted["waited_cpu_us"]), counted


@pytest.mark.parametrize("how", ["wait", "ignore", "orphan"])
def test_every_moment_of_cpu_as_a_cgroup_counts_it(count: Count, how: str) -> None:
    """The load is in its own group but for its first moments."""
    group = CPUACCT / f"steelyard-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as err:
        pytest.skip(f"no cgroup of version 1 that counts CPU: {err}")
    try:
        _, counted = count(how, 300, 2000, f"{group}/cgroup.procs")
        usage_ns = int((group / "cpuacct.usage").read_text())
    finally:
        group.rmdir()
    assert usage_ns > 600_000_000
    assert agrees(counted, usage_ns / 1000, before_us=3000), (counted, usage_ns)


def test_exec_of_a_thread(count: Count) -> None:
    """A thread that executes a program takes its process' id: it goes on counting for it."""
    _, counted = count("exec", 20, 1000)
    assert counted["processes"] == 21
    assert counted["wchar_bytes"] >= 200_000
    assert counted["waited_cpu_us"] > 20_000
    assert agrees(counted, counted["waited_cpu_us"]), counted


def test_nothing_is_left(inside: Inside) -> None:
    done = inside("$BPF count --base $BASE -- true; ls $BASE")
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 1


def test_a_job_whose_sampler_was_killed_is_swept(
    inside: Inside,
) -> None:
    """As long as one is counted nothing is unloaded; once its sampler is gone all is."""
    done = inside(
        "$BPF count --base $BASE -- sleep 600 >/dev/null 2>&1 & for i in {1..600}; do sleep 0.1;"
        " test -e $BASE/v*/jobs && $BPF status --base $BASE --json | grep -q '\"jobs\":1'"
        " && break; done; $BPF sweep --base $BASE; $BPF status --base $BASE --json;"
        " job=$(cat /proc/$!/task/$!/children); kill -9 $!; wait $! || true; sleep 1;"
        " $BPF sweep --base $BASE; ls $BASE | wc -l; kill $job"
    )
    assert done.returncode == 0, done.stderr
    status, left = done.stdout.splitlines()
    assert (json.loads(status)["jobs"], json.loads(status)["loaded"]) == (1, True)
    assert left == "0"


def test_what_cannot_be_unpinned_is_left(
    inside: Inside,
) -> None:
    """Of another release: a sweep ends all the same."""
    done = inside(
        "$BPF load --base $BASE; mkdir -p $BASE/vother/inner; timeout 90 $BPF sweep --base $BASE;"
        " ls $BASE"
    )
    assert (done.returncode, done.stdout) == (0, "vother\n"), done.stderr


def test_status_says_what_the_kernel_can(
    inside: Inside,
) -> None:
    done = inside("$BPF status --base $BASE --json; $BPF load --base $BASE; $BPF status --json")
    before = json.loads(done.stdout.splitlines()[0])
    assert before["supported"] is True
    assert before["message"].startswith("the kernel counts what jobs use")
    assert (before["loaded"], before["jobs"]) == (False, 0)


def test_status_tells_all_memory(inside: Inside) -> None:
    """With a job's own maps."""
    look = "$BPF status --json --base $BASE"
    done = inside(
        f"$BPF load --base $BASE; {look}; $BPF count --base $BASE -- sleep 1000 >/dev/null & "
        f"until {look} | grep '.tasks.:2,'; do sleep 0.1; done; "
        "kill $(cat /proc/$!/task/$!/children); wait $! || true"
    )
    loaded, job = (json.loads(line)["memory_bytes"] for line in done.stdout.splitlines())
    assert 10_000 * 32 < loaded < 25e6  # 32 B a job's timer, and what finds them
    assert 8192 * 16 * 2 + 256 * 128 + 8192 * 8 < job - loaded < 400_000


def test_a_trial_leaves_nothing(inside: Inside) -> None:
    """Not even a folder, nor where it is mounted."""
    look = "ls -A /sys/fs/bpf $(dirname $BASE); findmnt -n -t bpf"
    done = inside(f"{look}; echo ---; $BPF status --base $BASE >/dev/null; {look}")
    before, after = done.stdout.split("---\n")
    assert before.splitlines() == after.splitlines()


def test_others_may_not_load(able: None) -> None:
    argv = ["setpriv", "--reuid=65534", "--clear-groups", str(PROGRAM), "status", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert json.loads(done.stdout)["supported"] is False
