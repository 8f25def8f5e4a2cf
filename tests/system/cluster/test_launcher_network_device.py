"""A device of the node that is a container's alone comes back, however the job ends."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.throwaway_lab import Lab, processes_of, until

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="these launchers and their networks are root's"),
    pytest.mark.skipif(shutil.which("orted") is None, reason="apt install openmpi-bin"),
]


STUDY = """
[study]
name = "far"
repeat = 1
[job]
time_limit = "00:05:00"
[factors]
launcher = ["unshare,network=phys,device={device},ranks=across"]
[[benchmark]]
use = "npb"
kernel = "is"
class = "S"
ranks = 2
folder = "{folder}"
"""


@pytest.fixture
def device() -> Iterator[str]:
    """Of this machine, with a link."""
    name = f"sd{os.getpid()}a"
    words = ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}b"]
    subprocess.run(words, check=True)
    for one in (name, f"{name}b"):
        subprocess.run(["ip", "link", "set", one, "up"], check=True)
    yield name
    subprocess.run(["ip", "link", "delete", f"{name}b"], check=True)


def is_up(device: str) -> bool:
    """Whether the device is up on this machine."""
    flags = Path("/sys/class/net", device, "flags")
    return flags.exists() and bool(int(flags.read_text(), 16) & 1)


@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_a_device_comes_back_however_the_job_ends(lab: Lab, device: str, how: str) -> None:
    """By scancel; by the plugin at the job's end, when all of the run was killed with -9."""
    program = lab.work / "programs" / "is.S.2"
    program.parent.mkdir()
    program.write_text('#!/bin/bash\necho >"$0.$OMPI_COMM_WORLD_RANK"\nsleep 600\n')
    program.chmod(0o755)
    text = STUDY.format(device=device, folder=program.parent)
    (lab.work / "far.toml").write_text(text)
    lab.steelyard("submit", "far.toml")
    until(lambda: len([*program.parent.glob("is.S.2.?")]) == 2, "both ranks run")
    assert not Path("/sys/class/net", device).exists()
    if how == "cancel":
        lab.steelyard("cancel", "far.toml")
    else:
        for pid in processes_of(lab.work):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    until(lambda: is_up(device), "the device is back, and up")
    lab.wait_nodes("idle", "mixed", what="Slurm has ended the job")
