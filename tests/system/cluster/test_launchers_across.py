"""One MPI program in containers of two nodes, by systemd-nspawn and by LXC: where its ranks are, by which
device they reach each other, and what is left; a device of the node that is a container's alone. The truth
is the kernel's, of two nodes of this machine; guests/nodes/test_launchers_across.py does it on two guests."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.system.cluster.containers_across import (
    NODES,
    STUDY,
    addresses,
    level_of,
    lxc,
    nspawn,
    root_folder,
    submitted,
)
from tests.system.jobscripts.launcher_lab import bridge_of
from tests.throwaway_lab import Lab, processes_of, until

__all__ = ["lxc", "nspawn", "root_folder"]  # fixtures

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="these launchers and their networks are root's"),
    pytest.mark.skipif(shutil.which("orted") is None, reason="apt install openmpi-bin"),
]


@pytest.mark.parametrize("kind", ["nspawn", "lxc"])
def test_one_program_spans_containers_of_two_nodes(
    lab: Lab, request: pytest.FixtureRequest, kind: str
) -> None:
    level = level_of(request, kind, "bridge", 2)
    found = submitted(lab, level, "physical", NODES * 2)
    assert len({rank.pids for rank in found}) == len({rank.network for rank in found}) == 4
    assert str(Path("/proc/self/ns/net").readlink()) not in {rank.network for rank in found}
    told = addresses(lab, level)
    assert len(told) == 4
    bridges = {Path("/sys/class/net", bridge_of(address)) for address in told}
    assert len(bridges) == NODES
    until(lambda: not any(bridge.exists() for bridge in bridges), "no bridge is left")


# --- a device of its own ---


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
    """On this machine."""
    flags = Path("/sys/class/net", device, "flags")
    return flags.exists() and bool(int(flags.read_text(), 16) & 1)


@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_a_device_comes_back_however_the_job_ends(lab: Lab, device: str, how: str) -> None:
    """By scancel; by the plugin at the job's end, when all of the run was killed with -9."""
    program = lab.work / "programs" / "is.S.2"
    program.parent.mkdir()
    program.write_text('#!/bin/bash\necho >"$0.$OMPI_COMM_WORLD_RANK"\nsleep 600\n')
    program.chmod(0o755)
    level = f"unshare,network=phys,device={device},ranks=across"
    text = STUDY.format(level=level, where="physical", ranks=2, folder=program.parent)
    text = text.replace("nodes = 2", "nodes = 1")
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
    until(lambda: lab.nodes() <= {"idle", "mixed"}, "Slurm has ended the job")
