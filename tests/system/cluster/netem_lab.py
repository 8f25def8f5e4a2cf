"""A virtual device that jobs may shape, and its state in the kernel."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.throwaway_lab import Lab, until

DEVICE = "sy-d0"  # the throwaway cluster's policy lets jobs shape sy-*
FAR = "sy-slurm-far"  # the network namespace at its other end
LOCK = Path("/run/lock/steelyard-test-device")
BEHIND = "198.51.100.2"  # the address in that namespace (TEST-NET-2, RFC 5737)
RATE = f"rate=10mbit,dev={DEVICE}"


def tc(*words: str) -> str:
    """Return the output of tc."""
    done = subprocess.run(["tc", *words], capture_output=True, text=True, timeout=90, check=True)
    return done.stdout


def tree() -> str:
    """Return the device's queues as the kernel reports them."""
    return tc("qdisc", "show", "dev", DEVICE) + tc("filter", "show", "dev", DEVICE)


def ip(*words: str) -> None:
    """Run ip; raise if it fails."""
    subprocess.run(["ip", *words], capture_output=True, text=True, timeout=90, check=True)


@contextmanager
def a_device() -> Iterator[str]:
    """Make a veth device that leads into a network namespace; yield its initial queues.

    Both are removed afterwards.
    """
    if os.geteuid() != 0:
        pytest.skip("making a network device needs root")
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests of another checkout on this machine wait
        yield from made_device()


def made_device() -> Iterator[str]:
    """Make the device, after others have removed theirs, or were killed before they could."""
    subprocess.run(["ip", "netns", "del", FAR], capture_output=True, timeout=90, check=False)
    ip("netns", "add", FAR)
    try:
        ip("link", "add", DEVICE, "type", "veth", "peer", "name", "far", "netns", FAR)
        ip("addr", "add", "198.51.100.1/24", "dev", DEVICE)
        ip("link", "set", DEVICE, "up")
        ip("-n", FAR, "addr", "add", f"{BEHIND}/24", "dev", "far")
        ip("-n", FAR, "link", "set", "far", "up")
        yield tree()
    finally:
        ip("netns", "del", FAR)  # removes the pair, too
        until(lambda: not Path("/sys/class/net", DEVICE).exists(), f"{DEVICE} is gone")


def states(lab: Lab) -> list[str]:
    """Return the names of conditions that are in force, or not undone yet."""
    folder = lab.cluster.dir / "run" / "steelyard" / "netem"
    names = [path.name for path in folder.glob("*.json")]
    return [name for name in names if not name.endswith(".done.json")]


def wait_undone(lab: Lab, before: str, limit_s: float = 30.0) -> None:
    """Wait until the device has its initial queues, byte for byte, and no condition is left."""
    until(lambda: tree() == before and not states(lab), "conditions are undone", limit_s)
