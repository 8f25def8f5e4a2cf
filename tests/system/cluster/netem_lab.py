"""A device that jobs may shape, and what the kernel says of it. Nothing here is a real device's."""

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
BEHIND = "198.51.100.2"  # the address there (TEST-NET-2, RFC 5737)
RATE = f"rate=10mbit,dev={DEVICE}"


def tc(*words: str) -> str:
    """What tc prints."""
    done = subprocess.run(["tc", *words], capture_output=True, text=True, timeout=90, check=True)
    return done.stdout


def tree() -> str:
    """The device's queues, as the kernel has them now."""
    return tc("qdisc", "show", "dev", DEVICE) + tc("filter", "show", "dev", DEVICE)


def ip(*words: str) -> None:
    """One change by ip; it must succeed."""
    subprocess.run(["ip", *words], capture_output=True, text=True, timeout=90, check=True)


@contextmanager
def a_device() -> Iterator[str]:
    """A veth device that leads into a network namespace, both gone afterwards; its queues before
    anything was done."""
    if os.geteuid() != 0:
        pytest.skip("making a network device needs root")
    with LOCK.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another suite on this machine waits
        yield from made_device()


def made_device() -> Iterator[str]:
    """While nobody else has it."""
    ip("netns", "add", FAR)
    try:
        ip("link", "add", DEVICE, "type", "veth", "peer", "name", "far", "netns", FAR)
        ip("addr", "add", "198.51.100.1/24", "dev", DEVICE)
        ip("link", "set", DEVICE, "up")
        ip("-n", FAR, "addr", "add", f"{BEHIND}/24", "dev", "far")
        ip("-n", FAR, "link", "set", "far", "up")
        yield tree()
    finally:
        ip("netns", "del", FAR)  # the pair goes with it
        until(lambda: not Path("/sys/class/net", DEVICE).exists(), f"{DEVICE} is gone")


def states(lab: Lab) -> list[str]:
    """Names of the conditions that are in force, or were and are not undone yet."""
    folder = lab.cluster.dir / "run" / "steelyard" / "netem"
    names = [path.name for path in folder.glob("*.json")]
    return [name for name in names if not name.endswith(".done.json")]


def wait_undone(lab: Lab, before: str, limit_s: float = 30.0) -> None:
    """Until the device has the queues it had, byte for byte, and no state says otherwise."""
    until(lambda: tree() == before and not states(lab), "conditions are undone", limit_s)
