"""The options of a throwaway Slurm cluster, and what follows from them: paths, addresses, ports."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

CLUSTER_NAME = "steelyard"
NAMESPACES = Path("/run/netns")  # ip-netns(8)
LOOPBACK = "127.0.0.1"
NFS_SERVER, NFS_HOST_PART = "nfs", 10  # the guest that is a file server but no node
FIRST_GUEST = 11  # the host part of v1's address


def default_dir() -> Path:
    """Return the cluster's folder: $STEELYARD_CLUSTER_DIR, else ~/.cache/steelyard/cluster."""
    chosen = os.environ.get("STEELYARD_CLUSTER_DIR")
    if chosen:
        return Path(chosen).absolute()
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "steelyard" / "cluster"


@dataclass(frozen=True)
class ClusterConfig:
    """The options of a cluster; none of them depends on the machine's state."""

    dir: Path = field(default_factory=default_dir)
    physical_nodes: int = 2  # nodes n1… with Feature=physical
    virtual_nodes: int = 2  # further nodes with Feature=virtual: only a label, all are this machine
    guests: int = 0  # nodes v1… with Feature=virtual: real virtual machines (needs root)
    memory_mb: int = 640  # of each guest
    nfs: bool = False  # one more guest, which exports /nfs to the others
    shares: tuple[Path, ...] = ()  # folders of the host to which jobs in guests write
    cpus: int = 0  # CPUs that every node claims; 0: those of this machine
    gpus: int = 0  # every node claims /dev/nvidia0 …, which must exist
    proctrack: str = "linuxproc"  # or pgid, cgroup
    gather: str = "linux"  # JobAcctGatherType; cgroup: jobs have groups of cpuacct and memory, too
    gather_interval_s: int = 30  # Slurm's own polling (JobAcctGatherFrequency); 0: only at ends
    contain: bool = True  # PrologFlags=Contain: an extern step on every node of a job
    plugin: Path | None = None  # spank_steelyard.so; None: a cluster without the plugin
    node_program: Path | None = None  # steelyard-node
    sample_rate_hz: float = 1.0
    bpf: bool = True  # the kernel counts, where possible

    def node_names(self) -> list[str]:
        """Return n1, n2, …, physical ones first, then the guests."""
        return self.host_names() + self.guest_names()

    def host_names(self) -> list[str]:
        """Return the nodes that are this machine."""
        return [f"n{number}" for number in range(1, self.physical_nodes + self.virtual_nodes + 1)]

    def guest_names(self) -> list[str]:
        """Return v1, v2, …"""
        return [f"v{number}" for number in range(1, self.guests + 1)]

    def machine_names(self) -> list[str]:
        """Return every virtual machine: the guests that are nodes, and the NFS server."""
        return self.guest_names() + ([NFS_SERVER] if self.nfs else [])

    def feature(self, node: str) -> str:
        """Return the feature of a node, for --constraint."""
        on_host = node.startswith("n") and int(node[1:]) <= self.physical_nodes
        return "physical" if on_host else "virtual"


@dataclass(frozen=True)
class Layout:
    """The paths below the cluster's folder."""

    dir: Path

    @property
    def slurm_conf(self) -> Path:
        return self.dir / "etc" / "slurm.conf"

    @property
    def slurmdbd_conf(self) -> Path:
        return self.dir / "etc" / "slurmdbd.conf"

    @property
    def netem_conf(self) -> Path:
        return self.dir / "etc" / "netem.conf"

    @property
    def munge_key(self) -> Path:
        return self.dir / "private" / "munge.key"

    @property
    def munge_socket(self) -> Path:
        return self.dir / "run" / "munge.socket"

    @property
    def database_dir(self) -> Path:
        return self.dir / "private" / "db"

    @property
    def database_socket(self) -> Path:
        return self.dir / "private" / "db.sock"

    @property
    def record_dir(self) -> Path:
        return self.dir / "records"

    @property
    def run_dir(self) -> Path:
        return self.dir / "run" / "steelyard"

    @property
    def log_dir(self) -> Path:
        return self.dir / "log"

    @property
    def lib_dir(self) -> Path:
        return self.dir / "lib"

    @property
    def guest_dir(self) -> Path:
        return self.dir / "guests"

    @property
    def hosts_file(self) -> Path:
        """/etc/hosts of the nodes of a cluster with guests."""
        return self.dir / "etc" / "hosts"

    def folders(self) -> Mapping[Path, int]:
        """Return every folder to create, with its mode; other users' jobs read those that are not
        private."""
        public = ("etc", "run", "run/steelyard", "log", "lib", "records", "tmp")
        modes = {self.dir: 0o755, self.dir / "private": 0o700, self.dir / "state": 0o700}
        modes[self.guest_dir] = 0o700  # requests to guests run as root
        return modes | {self.dir / name: 0o755 for name in public} | {self.dir / "spool": 0o755}


@dataclass(frozen=True)
class Network:
    """The private network of a cluster with guests; network.py describes it.

    Its name is that of the namespace and of the veth in the user's namespace."""

    name: str  # sy-4f1a: the two free bytes of the subnet
    prefix: str  # 10.79.26

    @property
    def namespace(self) -> Path:
        """The namespace's file, for nsenter."""
        return NAMESPACES / self.name

    @property
    def controller(self) -> str:
        """The address of slurmctld and of the user's srun."""
        return f"{self.prefix}.1"

    @property
    def physical(self) -> str:
        """The address of the host's slurmd and its jobs."""
        return f"{self.prefix}.2"

    @property
    def peer(self) -> str:
        """The host's address to which nodes measure round-trip times, and which jobs shape.

        The controller's own address is never shaped."""
        return f"{self.prefix}.3"

    def address(self, node: str) -> str:
        """Return the address of a node; each guest (v1, v2, …) has its own."""
        if node == NFS_SERVER:
            return f"{self.prefix}.{NFS_HOST_PART}"
        if node.startswith("v"):
            return f"{self.prefix}.{FIRST_GUEST + int(node[1:]) - 1}"
        return self.physical

    def enter(self) -> list[str]:
        """Return the command that runs the rest of the line in the namespace; `ip netns exec` would
        hide /sys/fs/cgroup from slurmd."""
        return ["nsenter", f"--net={self.namespace}"]


@dataclass(frozen=True)
class Ports:
    """Free TCP ports, one per node in `nodes`; without a network all are of 127.0.0.1."""

    slurmctld: int
    slurmdbd: int
    nodes: tuple[int, ...]
    network: Network | None = None

    @property
    def controller(self) -> str:
        """The address of slurmctld; slurmdbd always listens on the loopback address."""
        return self.network.controller if self.network else LOOPBACK

    def address(self, node: str) -> str:
        """Return the address of a node's slurmd."""
        return self.network.address(node) if self.network else LOOPBACK


def user_name() -> str:
    """Return the user that runs the daemons: root, or the only user of this cluster."""
    return pwd.getpwuid(os.getuid()).pw_name
