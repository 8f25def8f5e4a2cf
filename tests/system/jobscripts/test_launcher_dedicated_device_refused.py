"""What the node itself uses is not moved into a container (network=phys), and what is moved is
noted before."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from steelyard.jobscripts import registry

from .launcher_lab import needs_root

pytestmark = needs_root
# In a private network, whose devices /sys shows.
ALONE = """
mount --make-rprivate / && mount -t sysfs sysfs /sys && ip link set lo up || exit
ip link add d0 type veth peer name d1 && ip link set d1 up && ip link set d0 up || exit
. "$1"
SY_THIS_NODE=n1 SY_LAUNCHER=level SY_LEFTOVER_DIR=$2 SY_LAUNCHER_NAME=steelyard-1-1
sy_tag() { printf 'tag %s\n' "$*"; }
eval "$3"
sy_leftover_run_locked sy_device_claim "$4"
code=$?
cat "$2"/steelyard-1-1
exit "$code"
"""


def claimed(folder: Path, setup: str, device: str) -> subprocess.CompletedProcess[str]:
    """As a run does it before it moves the device."""
    library = folder / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    (folder / "marks").mkdir()
    words = ["bash", "-c", ALONE, "-", str(library), str(folder / "marks"), setup, device]
    return subprocess.run(
        ["unshare", "--net", "--mount", *words],
        capture_output=True, text=True, check=False, timeout=60, env={"PATH": os.environ["PATH"]},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("setup", "device", "why"),
    [
        (":", "d7", "n1 has no device d7: expected one of d1, d0"),
        (":", "lo", "lo is the loopback device of n1: name another"),
        (":", "d 0", "'d 0' is no name of a network device"),
        (":", "", "'' is no name of a network device"),
        ("ip link property add dev d0 altname other", "other", "n1 has no device other: expected"),
        ("ip address add 10.9.0.1/24 dev d0", "d0", "itself uses its device d0 (the address 10.9.0.1/24)"),
        ("ip address add fd00::1/64 dev d0", "d0", "(the address fd00::1/64), which would cut it off"),
        ("ip route add 10.9.0.0/24 dev d0", "d0", "(the route 10.9.0.0/24 scope link)"),
        ("ip route add 10.9.0.0/24 dev d0 table 7", "d0", "(the route 10.9.0.0/24 table 7 scope link)"),
        ("ip -6 route add fd00::/64 dev d0", "d0", "(the route fd00::/64 metric 1024 pref medium)"),
        ("ip link add b0 type bridge; ip link set d0 master b0", "d0",
         "device d0 of n1 belongs to b0: name another, or say ip link set d0 nomaster"),
        ("ip link add m0 link d0 type macvlan", "d0", "(the device m0 on top of it)"),
        ("tc qdisc add dev d0 root handle 57e1: pfifo", "d0", "(the queue pfifo 57e1:)"),
        ("tc qdisc add dev d0 clsact", "d0", "(the queue clsact ffff:)"),
        ("SY_LAUNCHER_NAME=steelyard-12-34 sy_leftover_mark phys 'steelyard-12-34 d0 7 up,1500,'", "d0",
         "device d0 of n1 is in the container of another run (process "),
    ],
)  # fmt: skip
def test_what_the_node_uses_is_not_moved(tmp_path: Path, setup: str, device: str, why: str) -> None:
    done = claimed(tmp_path, f"{setup} || exit 99", device)
    assert done.returncode == 4, done.stderr
    assert done.stderr.splitlines()[-2].startswith("steelyard: level: ")
    assert why in done.stderr
    assert done.stdout == ""  # neither tagged nor marked


def test_what_is_moved_is_noted_before(tmp_path: Path) -> None:
    """Addresses that IPv6 gives by itself are nobody's; settings that are the node's own are not its."""
    setup = """ip link set d0 address 02:00:00:00:00:09; cd /proc/sys/net || exit 99
        echo 1 >ipv4/conf/d0/arp_ignore; echo 0 >ipv6/conf/d0/accept_ra
        echo 77 >ipv4/neigh/d0/delay_first_probe_time
        until [[ $(ip -6 address show dev d0) == *fe80:* ]]; do sleep 0.1; done"""
    done = claimed(tmp_path, setup, "d0")
    assert done.returncode == 0, done.stderr
    tag, owner, network, line = done.stdout.splitlines()
    assert (tag, owner.split()[0], network.split()[0]) == (
        "tag launcher_device d0",
        "owner",
        "network",
    )
    words = line.split()
    assert (words[:3], words[4]) == (["phys", "steelyard-1-1", "d0"], "up,1500,02:00:00:00:00:09")
    assert {"ipv4/conf/d0/arp_ignore=1", "ipv6/conf/d0/accept_ra=0"} < set(words[5:])
    assert "ipv4/neigh/d0/delay_first_probe_time=77" in words[5:]
