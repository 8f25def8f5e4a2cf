"""One MPI program in containers of two nodes, by systemd-nspawn and by LXC: where its ranks are, by which
device they reach each other, and what is left. The truth is the kernel's: of two nodes of this machine, and
(STEELYARD_LAB_LONG=yes: minutes) each guest's own."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from tests.guests.nodes.containers_across import (
    NODES,
    addresses,
    level_of,
    lxc,
    lxc_config,
    nspawn,
    root_folder,
    submitted,
)
from tests.guests.nodes.netem_guests import DEVICE, tree
from tests.system.jobscripts.launcher_lab import bridge_of
from tests.throwaway_lab import Lab, until

__all__ = ["lxc", "nspawn", "root_folder"]  # fixtures

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="these launchers and their networks are root's"),
    pytest.mark.skipif(shutil.which("orted") is None, reason="apt install openmpi-bin"),
]
MINUTES = pytest.mark.skipif(
    "STEELYARD_LAB_LONG" not in os.environ, reason="minutes: STEELYARD_LAB_LONG=yes"
)
GUESTS = ("v1", "v2")


def guests_lxc(lab: Lab, root_folder: Path, level: str) -> None:
    """The same on each guest, which has it in memory."""
    at = f"/var/lib/lxc/{level.partition(':')[2]}"
    script = f'mkdir -p {at} && printf %s "$1" >{at}/config'
    for name in GUESTS:
        words = ["sh", "-c", script, "sh", lxc_config(root_folder)]
        assert lab.cluster.find_guest(name).run(words).returncode == 0


def own_network(lab: Lab, name: str) -> str:
    """A guest's network namespace, by its number."""
    return lab.cluster.find_guest(name).run(["readlink", "/proc/self/ns/net"]).stdout.strip()


LEFT = """
ls -d /run/netns/* /run/steelyard-containers/* /run/systemd/nspawn/propagate/* /tmp/steelyard.*
ps -eo comm= | grep -xE 'lxc-execute|systemd-nspawn|orted|orterun|npb-is'
"""


def left(lab: Lab) -> dict[str, str]:
    """What a launcher might leave on each guest, and its network."""
    found = {}
    for name in GUESTS:
        done = lab.cluster.find_guest(name).run(["bash", "-c", LEFT])
        found[name] = done.stdout + tree(lab.cluster, name)
    return found


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


@MINUTES
@pytest.mark.parametrize(
    ("kind", "network", "containers"),
    [
        ("nspawn", "bridge", 2),
        ("nspawn", "bridge", 4),
        ("nspawn", "bridge", 8),
        ("nspawn", "macvlan", 2),
        ("lxc", "bridge", 2),
        ("lxc", "bridge", 4),
        ("lxc", "macvlan", 2),
    ],
)
def test_one_program_spans_containers_of_two_guests(
    virtual_lab: Lab,
    request: pytest.FixtureRequest,
    root_folder: Path,
    kind: str,
    network: str,
    containers: int,
) -> None:
    lab = virtual_lab
    level = level_of(request, kind, network, containers)
    if kind == "lxc":
        guests_lxc(lab, root_folder, request.getfixturevalue("lxc"))
    before = left(lab)
    count = NODES * containers
    found = submitted(lab, level, "virtual", count)
    # Equally many on each guest, each with its own processes and network.
    assert sorted(rank.guest for rank in found) == sorted(GUESTS * containers)
    assert len({(rank.guest, rank.pids) for rank in found}) == count
    assert len({(rank.guest, rank.network) for rank in found}) == count
    assert all(rank.network != own_network(lab, rank.guest) for rank in found)
    assert len(addresses(lab, level)) == count
    until(lambda: left(lab) == before, "nothing is left", seen=lambda: (before, left(lab)))


@MINUTES
@pytest.mark.parametrize("kind", ["nspawn", "lxc"])
def test_one_program_goes_by_a_device_of_each_guest(
    virtual_lab: Lab, request: pytest.FixtureRequest, root_folder: Path, kind: str
) -> None:
    """A device that the guest does not use, on the cable between them."""
    lab = virtual_lab
    level = f"{request.getfixturevalue(kind)},network=phys,device=own0,ranks=across"
    if kind == "lxc":
        guests_lxc(lab, root_folder, request.getfixturevalue("lxc"))
    for name in GUESTS:
        make = f"ip link add own0 link {DEVICE} type macvlan mode bridge; ip link set own0 up"
        assert lab.cluster.find_guest(name).run(["sh", "-c", make]).returncode == 0
    before = left(lab)
    assert all(re.search(r"own0@\w+: <[^>]*\bUP\b", text) for text in before.values())
    found = submitted(lab, level, "virtual", 4)
    assert sorted(rank.guest for rank in found) == sorted(GUESTS * 2)
    assert len({(rank.guest, rank.network) for rank in found}) == 2
    assert all(rank.network != own_network(lab, rank.guest) for rank in found)
    assert len(addresses(lab, level)) == 2
    until(lambda: left(lab) == before, "nothing is left", seen=lambda: (before, left(lab)))
    for name in GUESTS:
        assert lab.cluster.find_guest(name).run(["ip", "link", "delete", "own0"]).returncode == 0
