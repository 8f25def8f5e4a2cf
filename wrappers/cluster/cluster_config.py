"""The options of a throwaway Slurm cluster, and what follows from them: paths, addresses, ports, and
the text of its configuration files: slurm.conf, slurmdbd.conf and others."""

from __future__ import annotations

import os
import platform
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


# Settings for many short jobs in sequence.
SCHEDULING = {
    "ReturnToService": 2,
    "InactiveLimit": 0,
    "KillWait": 5,
    # Many daemons share this machine's processors. If one does not answer within the default, 10 s,
    # its node gets no job until the next ping, up to 100 s later.
    "MessageTimeout": 30,
    "BatchStartTimeout": 30,
    "Waittime": 0,
    "MinJobAge": 300,
    # The default, 2000 µs per node, is for thousands of nodes. With 0 slurmd of 22.05 crashes by a
    # division after jobs of more than 32 nodes.
    "EpilogMsgTime": 1,
    "MaxArraySize": 20001,
    "MaxJobCount": 50000,
    # A finished job makes room for the next one at once, not in the next cycle.
    "SchedulerParameters": "batch_sched_delay=0,sched_interval=1,sched_min_interval=0,"
    "bf_interval=1,max_array_tasks=20000",
}


def slurm_conf(config: ClusterConfig, ports: Ports) -> str:
    """Return slurm.conf; unusual settings have their reasons."""
    at = Layout(config.dir)
    host = platform.node().split(".")[0]
    lines = {
        "ClusterName": CLUSTER_NAME,
        "SlurmctldHost": f"{host}({ports.controller})",
        "SlurmctldPort": ports.slurmctld,
        "SlurmUser": user_name(),
        "SlurmdUser": user_name(),
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={at.munge_socket}",
        # Without these every daemon listens on all addresses.
        "CommunicationParameters": _listening(ports),
        "StateSaveLocation": at.dir / "state",
        "SlurmdSpoolDir": at.dir / "spool" / "%n",
        "SlurmctldPidFile": at.dir / "run" / "slurmctld.pid",
        "SlurmdPidFile": at.dir / "run" / "slurmd.%n.pid",
        "SlurmctldLogFile": at.log_dir / "slurmctld.log",
        "SlurmdLogFile": at.log_dir / "slurmd.%n.log",
        "SlurmctldDebug": "info",
        "SlurmdDebug": "verbose",  # the plugin logs at this level
        "PlugStackConfig": at.dir / "etc" / "plugstack.conf",
        "ProctrackType": f"proctrack/{config.proctrack}",
        "TaskPlugin": "task/cgroup" if config.proctrack == "cgroup" else "task/none",
        "JobAcctGatherType": f"jobacct_gather/{config.gather}",
        "JobAcctGatherFrequency": config.gather_interval_s,
        "MpiDefault": "none",
        "MailProg": "/bin/true",  # a throwaway cluster sends no mail
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU",
        "SlurmdParameters": "config_overrides",  # permits more CPUs than the machine has
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": LOOPBACK,  # sacct is for the user, not for jobs in guests
        "AccountingStoragePort": ports.slurmdbd,
        "AccountingStoragePass": at.munge_socket,  # slurmdbd does not use AuthInfo
        "AccountingStoreFlags": "job_comment",
        **SCHEDULING,
    }
    if config.gpus:
        lines["GresTypes"] = "gpu"
    if config.contain:
        lines["PrologFlags"] = "Contain"
    if config.proctrack == "cgroup":
        # Groups are named by node and job, and another cluster's n1 on this machine may have equal
        # job ids.
        lines["FirstJobId"] = ports.slurmctld
    text = "".join(f"{key}={value}\n" for key, value in lines.items())
    return text + _nodes(config, ports) + "PartitionName=main Nodes=ALL Default=YES State=UP\n"


def _listening(ports: Ports) -> str:
    """Return where daemons listen; in a cluster with a network, nodes must reach srun on its
    address."""
    return "NoCtldInAddrAny" if ports.network else "NoInAddrAny,NoCtldInAddrAny"


def _nodes(config: ClusterConfig, ports: Ports) -> str:
    cpus = config.cpus or os.cpu_count() or 1
    host = platform.node().split(".")[0]
    guests = config.guest_names()  # with one CPU each: User Mode Linux has no more
    memory_mb = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20
    gres = f"Gres=gpu:{config.gpus} " if config.gpus else ""
    return "".join(
        f"NodeName={name} NodeHostname={name if name in guests else host} "
        f"NodeAddr={ports.address(name)} Port={port} CPUs={1 if name in guests else cpus} "
        f"RealMemory={config.memory_mb if name in guests else memory_mb} "
        f"{gres}Feature={config.feature(name)} State=UNKNOWN\n"
        for name, port in zip(config.node_names(), ports.nodes, strict=True)
    )


def hosts_file(config: ClusterConfig, network: Network) -> str:
    """Return /etc/hosts for the nodes; the controller has this machine's name."""
    names = {platform.node().split(".")[0]: network.controller}
    names |= {name: network.address(name) for name in config.node_names()}
    names |= {name: network.address(name) for name in config.machine_names()}
    return "127.0.0.1 localhost\n" + "".join(f"{names[name]} {name}\n" for name in names)


def slurmdbd_conf(config: ClusterConfig, ports: Ports) -> str:
    """Return slurmdbd.conf, which Slurm requires in mode 0600. MYSQL_UNIX_PORT names the database's
    socket."""
    at = Layout(config.dir)
    lines = {
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={at.munge_socket}",
        "CommunicationParameters": "NoInAddrAny",
        "DbdHost": "localhost",
        "DbdAddr": LOOPBACK,
        "DbdPort": ports.slurmdbd,
        "SlurmUser": user_name(),
        "PidFile": at.dir / "run" / "slurmdbd.pid",
        "LogFile": at.log_dir / "slurmdbd.log",
        "DebugLevel": "info",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",  # by its Unix socket, in a private folder
        "StorageUser": user_name(),
        "StorageLoc": "slurm_acct_db",
    }
    return "".join(f"{key}={value}\n" for key, value in lines.items())


def cgroup_conf(config: ClusterConfig, slurm_version: tuple[int, int]) -> str:
    """Return cgroup.conf: no cgroups unless requested; 22.05 does not know `disabled`."""
    if config.proctrack == "cgroup":
        devices = "ConstrainDevices=yes\n" if config.gpus else ""
        return devices + ("IgnoreSystemd=yes\n" if slurm_version >= (22, 5) else "")
    return "CgroupPlugin=disabled\n" if slurm_version >= (23, 11) else ""


def gres_conf(config: ClusterConfig) -> str:
    """Return gres.conf with the GPUs of every node."""
    return f"Name=gpu File=/dev/nvidia[0-{config.gpus - 1}]\n" if config.gpus else ""


def guest_cgroup_conf(config: ClusterConfig, slurm_version: tuple[int, int]) -> str:
    """Return cgroup.conf for guests, which have cgroup v2 and no systemd; 22.05 requires
    cgroups."""
    if config.proctrack != "cgroup" and slurm_version >= (23, 11):
        return cgroup_conf(config, slurm_version)
    return "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n"


def plugstack_conf(config: ClusterConfig) -> str:
    """Return plugstack.conf with our line, or without one."""
    if config.plugin is None:
        return "# a cluster without the Steelyard plugin\n"
    at = Layout(config.dir)
    return (
        f"optional {at.lib_dir / 'spank_steelyard.so'} record_dir={at.record_dir} "
        f"run_dir={at.run_dir} node_program={at.lib_dir / 'steelyard-node'} "
        f"rate={config.sample_rate_hz:g} max_rate=100 netem_policy={at.netem_conf}"
        f"{'' if config.bpf else ' bpf=no'}\n"
    )


def netem_conf(network: Network | None) -> str:
    """Return the policy for jobs' network conditions: all are allowed, but on no device of this
    machine.

    With guests, eth0 is in the cluster's own network, which the nodes on this machine use."""
    own = " eth0" if network else ""
    peer = f"peer {network.peer}\n" if network else ""
    return (
        "enabled yes\ncache yes\n"
        "exclusive_only no   # several nodes are one machine: no job has it for itself\n"
        f"devices lo{own} vec* sy-*   # vec*: of the guests; sy-*: made for trying out\n{peer}"
    )
