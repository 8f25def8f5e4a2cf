"""A kernel's real queues for a node of a test: lo of a network namespace."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.waiting import wait_for

POLICY = "enabled yes\nexclusive_only no\ndevices lo\n"


class Wire:
    """A network namespace with lo in it."""

    def __init__(self) -> None:
        self.keeper = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        self.enter = ("nsenter", f"--net=/proc/{self.keeper.pid}/ns/net")
        own = Path("/proc/self/ns/net").readlink()
        wait_for("it", lambda: Path(f"/proc/{self.keeper.pid}/ns/net").readlink() != own)
        self.run("ip", "link", "set", "lo", "up")

    def run(self, *words: str) -> str:
        done = subprocess.run([*self.enter, *words], capture_output=True, text=True, check=True)
        return done.stdout

    def end(self) -> None:
        self.keeper.kill()
        self.keeper.wait()

    def queues(self) -> str:
        return self.run("tc", "qdisc", "show") + self.run("tc", "filter", "show", "dev", "lo")


@contextmanager
def wired() -> Iterator[Wire]:
    """Make a namespace; skip if the kernel cannot limit a rate."""
    if os.geteuid() != 0:
        pytest.skip("makes a network namespace: needs root")
    tool = Wire()
    try:
        tool.run("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", "htb")
        tool.run("tc", "class", "add", "dev", "lo", "parent", "1:", "classid", "1:1", "htb", "rate", "1gbit")  # fmt: skip
        tool.run("tc", "qdisc", "add", "dev", "lo", "parent", "1:1", "tbf", "rate", "1gbit", "burst", "1mb", "limit", "1mb")  # fmt: skip
        tool.run("tc", "qdisc", "del", "dev", "lo", "root")
    except subprocess.CalledProcessError as error:
        tool.end()
        pytest.skip(f"this kernel has no sch_htb or sch_tbf: {error.stderr.strip()}")
    try:
        yield tool
    finally:
        tool.end()
