"""The private network of a throwaway cluster with virtual nodes.

    user's namespace          the cluster's namespace (sy-4f1a)
    sy-4f1a  10.79.26.1 ─host─┬─ node ─ eth0  10.79.26.2: the host's own slurmd, its jobs
    slurmctld,               br0 ─ v1         10.79.26.11: guest v1
    the user's srun           └─ v2           10.79.26.12: guest v2
    10.79.26.3, to which round-trip times are measured

So what leaves a physical node passes eth0, what leaves a guest passes its own device, and neither
is the device of the controller or of the user's srun. Nothing is forwarded to a real network.
host, node and eth0 are ends of veths, v1 and v2 are taps: ports of the bridge br0, but for eth0,
which the sampler counts as the physical node's uplink.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import random
import subprocess
from collections.abc import Sequence
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.base.leftovers import read_start_ticks
from steelyard.wrappers.cluster.cluster_config import NAMESPACES, Network
from steelyard.wrappers.cluster.daemons import Daemon

BRIDGE = "br0"


def choose_network() -> Network:
    """Return a /24 of 10.64.0.0/10 that overlaps no address or route of this machine."""
    taken = _networks_in_use()
    for number in random.sample(range(0x4000, 0x8000), 200):
        high, low = divmod(number, 256)
        subnet = ipaddress.ip_network(f"10.{high}.{low}.0/24")
        name = f"sy-{number:04x}"
        if not any(subnet.overlaps(other) for other in taken) and not _exists(name):
            return Network(name, f"10.{high}.{low}")
    raise MissingError(
        "no free private network in 10.64.0.0/10: every try met a route of this host"
    )


def _networks_in_use() -> list[ipaddress.IPv4Network]:
    """Return the networks in the host's routing tables, without the default route."""
    routes = json.loads(_ip("-4", "-j", "route", "show", "table", "all") or "[]")
    destinations = {route["dst"] for route in routes} - {"default", "0.0.0.0/0"}
    return [ipaddress.IPv4Network(word, strict=False) for word in destinations]


def _exists(name: str) -> bool:
    return (NAMESPACES / name).exists() or Path("/sys/class/net", name).exists()


def create_network(network: Network, guests: Sequence[str]) -> None:
    """Create the namespace, the bridge, a tap for each guest, and the veth to the user's
    namespace."""
    name = network.name
    _ip("netns", "add", name)
    outside = [
        f"link add {name} type veth peer name host netns {name}",
        f"link set {name} addrgenmode none",  # no IPv6 packets between the measured ones
        f"addr add {network.controller}/24 dev {name}",
        f"addr add {network.peer}/24 dev {name}",
        f"link set {name} up",
    ]
    inside = [
        "link set lo up",
        # Without a delay a port forwards as soon as it is up.
        f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0 mcast_snooping 0",
        # It must not answer ARP for eth0's address, or incoming packets would bypass eth0.
        f"link set {BRIDGE} addrgenmode none arp off up",
        "link add eth0 type veth peer name node",
        "link set eth0 addrgenmode none",
        f"addr add {network.physical}/24 dev eth0",
        "link set eth0 up",
    ]
    for port in ("host", "node", *guests):
        if port in guests:
            inside.append(f"tuntap add dev {port} mode tap")
        inside += [f"link set {port} addrgenmode none", f"link set {port} master {BRIDGE} up"]
    _ip("-batch", "-", text="\n".join(outside))
    _ip("-n", name, "-batch", "-", text="\n".join(inside))


def remove_network(network: Network) -> None:
    """Remove the network's existing parts; the processes in it must have ended."""
    if Path("/sys/class/net", network.name).exists():
        _ip("link", "del", network.name)
    if network.namespace.exists():
        _ip("netns", "del", network.name)


def list_processes(network: Network) -> list[Daemon]:
    """Return every process in the namespace: slurmd, guests, and leftovers of jobs."""
    try:
        wanted = network.namespace.stat()
    except FileNotFoundError:
        return []
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):  # it has ended
            status = (entry / "ns" / "net").stat()
            ticks = read_start_ticks(int(entry.name))
            if (status.st_dev, status.st_ino) == (
                wanted.st_dev,
                wanted.st_ino,
            ) and ticks is not None:
                found.append(Daemon((entry / "comm").read_text().strip(), int(entry.name), ticks))
    return found


def _ip(*arguments: str, text: str | None = None) -> str:
    """Run ip(8) and return its output. Raises MissingError with its message if it fails."""
    done = subprocess.run(
        ["ip", *arguments], input=text, capture_output=True, text=True, timeout=30, check=False
    )
    if done.returncode != 0:
        raise MissingError(
            f"the cluster's network cannot be made: 'ip {' '.join(arguments)}' says: "
            f"{done.stderr.strip()} (in a container: it needs --cap-add NET_ADMIN,SYS_ADMIN)"
        )
    return done.stdout
