"""The daemons of a throwaway cluster: starts each after those that it needs, records them in
cluster.json, so that `down` finds them, and ends them.

A process is identified by its id, its start time and the machine's boot: an id that now belongs to
another process is never signaled."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import random
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.leftovers import read_start_ticks
from steelyard.wrappers.cluster.cluster_config import (
    CLUSTER_NAME,
    LOOPBACK,
    ClusterConfig,
    Layout,
    Network,
    Ports,
    user_name,
)


@dataclass(frozen=True)
class Daemon:
    """One process that we started."""

    name: str  # munged, mariadbd, slurmdbd, slurmctld, slurmd.n1 …
    pid: int
    start_ticks: int  # /proc/PID/stat field 22

    def is_alive(self) -> bool:
        """Return whether exactly this process runs; a zombie does not."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)  # reaps our own child, so that it is no zombie
        return read_start_ticks(self.pid) == self.start_ticks


def end_daemons(daemons: list[Daemon], patience_s: float = 5.0) -> list[Daemon]:
    """Send SIGTERM to all, then SIGKILL to those that still run; return those that survive both."""
    for sign, limit_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
        for daemon in daemons:
            if daemon.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(daemon.pid, sign)
        daemons = wait_gone(daemons, limit_s)
        if not daemons:
            break
    return daemons


def wait_gone(daemons: list[Daemon], limit_s: float) -> list[Daemon]:
    """Wait until all have ended; return those that have not within the limit."""
    end = time.monotonic() + limit_s
    alive = [daemon for daemon in daemons if daemon.is_alive()]
    while alive and time.monotonic() < end:
        time.sleep(0.02)
        alive = [daemon for daemon in alive if daemon.is_alive()]
    return alive


# A daemon is a leftover if its starter was killed before recording its id.
OURS = ("slurmstepd", "steelyard-node", "slurmd", "slurmctld", "slurmdbd", "mariadbd", "munged")
# Slurm's extern step starts it; it survives when that step's daemon is killed.
PLACE_KEEPER = b"sleep\x00100000000\x00"


def find_leftovers(slurm_conf: Path) -> list[Daemon]:
    """Return this cluster's step daemons, samplers and daemons, identified by SLURM_CONF in their
    environment."""
    mark = f"SLURM_CONF={slurm_conf}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name = (entry / "comm").read_text().strip()
            if name not in OURS and (entry / "cmdline").read_bytes() != PLACE_KEEPER:
                continue
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is another user's
            continue
        ticks = read_start_ticks(int(entry.name))
        if mark in environment and ticks is not None:
            found.append(Daemon(name, int(entry.name), ticks))
    return found


FORMAT, VERSION = "steelyard-cluster", 1


@dataclass
class State:
    """The content of cluster.json."""

    dir: Path
    boot_id: str
    slurm_version: str
    nodes: list[str]
    plugin: bool
    ready: bool = False  # every node has been idle once
    daemons: list[Daemon] = field(default_factory=list)
    network: Network | None = None  # of a cluster with guests
    guests: list[str] = field(default_factory=list)

    def save(self) -> None:
        """Write cluster.json atomically."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        temporary = self.dir / ".cluster.json.new"
        temporary.write_text(json.dumps(document, indent=1, default=str) + "\n")
        temporary.replace(self.dir / "cluster.json")

    def list_running(self) -> list[Daemon]:
        """Return the daemons that still run."""
        if self.boot_id != read_boot_id():
            return []
        return [daemon for daemon in self.daemons if daemon.is_alive()]


def load_state(folder: Path) -> State | None:
    """Return the state of the cluster in `folder`; None without one, or if its format is
    unknown."""
    try:
        document = json.loads((folder / "cluster.json").read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if document.pop("format", None) != FORMAT or document.pop("version", None) != VERSION:
        return None
    daemons = [Daemon(**daemon) for daemon in document.pop("daemons")]
    network = Network(**document["network"]) if document.get("network") else None
    return State(**{**document, "dir": folder, "daemons": daemons, "network": network})


def read_boot_id() -> str:
    """Return an id that changes with every boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


START_LIMIT_S = 60.0  # for each daemon; a loaded machine needs many times the usual 2 s
POLL_S = 0.02

# program: its Debian package
PROGRAMS = {
    "munged": "munge",
    "mariadbd": "mariadb-server",
    "mariadb-install-db": "mariadb-server",
    "slurmdbd": "slurmdbd",
    "slurmctld": "slurmctld",
    "slurmd": "slurmd",
    "sinfo": "slurm-client",
    "sacctmgr": "slurm-client",
}


# /sys shows the devices of the namespace in which it was mounted; slurmd needs the earlier cgroups.
OWN_SYSFS = """mount --rbind /sys/fs/cgroup /mnt && mount -t sysfs sysfs /sys &&
mount --rbind /mnt /sys/fs/cgroup && umount -l /mnt"""
# $1: an /etc/hosts for this process alone; then the command
WITH_HOSTS = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'


class ClusterError(MissingError):
    """A daemon did not start, so a required service is missing."""


def search_path() -> str:
    """Return PATH with the sbin folders, which an ordinary user's PATH may not have."""
    return os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"


def find_program(name: str) -> str:
    """Return the absolute path of a program. Raises MissingError, which names every missing
    package."""
    path = shutil.which(name, path=search_path())
    if path is None:
        check_programs()
        raise MissingError(f"the program '{name}' is not there")
    return path


def check_programs() -> None:
    """Raise MissingError with one apt command if any program of a cluster is missing."""
    missing = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        raise MissingError(
            f"a throwaway cluster needs {', '.join(missing)}, not found here; as root: "
            f"apt-get install --no-install-recommends {packages}"
        )


def read_slurm_version() -> str:
    """Return, for example, `22.05.8`."""
    done = subprocess.run(
        [find_program("slurmd"), "-V"], capture_output=True, text=True, timeout=10, check=True
    )
    return done.stdout.split()[-1]


def find_free_ports(count: int) -> list[int]:
    """Return free ports, below those that the kernel assigns."""
    ports: list[int] = []
    for port in random.sample(range(20000, 32000), 2000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise ClusterError(f"no {count} free TCP ports between 20000 and 32000 on 127.0.0.1")


class Starter:
    """Starts daemons one by one and records each in the state before the next."""

    def __init__(self, config: ClusterConfig, state: State, environment: Mapping[str, str]) -> None:
        self.config = config
        self.state = state
        self.environment = dict(environment)
        self.layout = Layout(config.dir)

    def start_program(self, name: str, *arguments: str | Path, **extra: str) -> Daemon:
        """Start a daemon, with its output in log/NAME.out."""
        return self.launch(name, [find_program(name.split(".")[0]), *map(str, arguments)], extra)

    def launch(
        self,
        name: str,
        argv: list[str],
        extra: Mapping[str, str] | None = None,
        console: Path | None = None,
        output: Path | None = None,
    ) -> Daemon:
        """Start a command in its own session; `console` is a FIFO that stays open as stdin."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        pid = os.posix_spawn(
            find_program(argv[0]),
            argv,
            {**self.environment, **(extra or {})},
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, console or os.devnull, os.O_RDWR, 0),
                (os.POSIX_SPAWN_OPEN, 1, output or self.output_path(name), flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=[],
        )
        daemon = Daemon(name, pid, read_start_ticks(pid) or 0)
        self.state.daemons.append(daemon)
        self.state.save()
        return daemon

    def output_path(self, name: str) -> Path:
        """Return the file of a daemon's stdout and stderr."""
        return self.layout.log_dir / f"{name}.out"

    def wait_ready(self, daemon: Daemon, ready: Callable[[], bool], what: str) -> None:
        """Wait until `ready()`. Raises ClusterError with the log's end if the daemon dies or the
        limit is reached."""
        end = time.monotonic() + START_LIMIT_S
        while not ready():
            if not daemon.is_alive():
                raise self.failure(daemon.name, "ended at its start")
            if time.monotonic() > end:
                raise self.failure(daemon.name, f"has not {what} in {START_LIMIT_S:.0f} s")
            time.sleep(POLL_S)

    def failure(self, name: str, what: str) -> ClusterError:
        """Return an error with the daemon, what happened, the last lines of its log, and what to
        do."""
        lines: list[str] = []
        console = self.layout.guest_dir / name.removeprefix("guest.") / "console.log"
        for path in (self.layout.log_dir / f"{name}.log", self.output_path(name), console):
            if path.is_file():
                lines += path.read_text(errors="replace").splitlines()[-8:]
        text = "\n".join(f"    {line}" for line in lines) or "    (it wrote nothing)"
        hint = "mend what its log says, then run 'steelyard cluster up' again"
        if "ddress already in use" in text:
            hint = "another program took the port meanwhile: run 'steelyard cluster up' again"
        if "getaddrinfo() failed" in text:
            host = platform.node()
            hint = f"the name of this host does not resolve: add '127.0.1.1 {host}' to /etc/hosts"
        return ClusterError(f"{name} {what}:\n{text}\n  {hint}; logs: {self.layout.log_dir}")

    def start_munged(self) -> Daemon:
        """Start the authentication; --force, because folders above ours may be group-writable."""
        return self.start_program(
            "munged",
            "--foreground",
            "--force",
            f"--socket={self.layout.munge_socket}",
            f"--key-file={self.layout.munge_key}",
            f"--pid-file={self.layout.dir / 'private' / 'munged.pid'}",
            f"--seed-file={self.layout.dir / 'private' / 'munged.seed'}",
            f"--log-file={self.layout.log_dir / 'munged.log'}",
        )

    def start_mariadbd(self) -> Daemon:
        """Start the accounting's database, with a Unix socket in a private folder and no port."""
        user = user_name()
        install = [
            find_program("mariadb-install-db"),
            "--no-defaults",
            f"--user={user}",
            f"--datadir={self.layout.database_dir}",
            "--auth-root-authentication-method=socket",
            f"--auth-root-socket-user={user}",
            "--skip-test-db",
        ]
        # A mariadbd that starts, of whatever cluster, removes all temporary tables in its TMPDIR: that
        # of a cluster beside it answered nothing or crashed (10.11).
        temporary = {"TMPDIR": str(self.layout.dir / "private")}
        environment = {**self.environment, **temporary}
        done = programs.run_quietly(install, START_LIMIT_S, environment)
        if done.returncode != 0:
            self.output_path("mariadbd").write_text(done.stdout + done.stderr)
            raise self.failure("mariadbd", "could not set up its database (mariadb-install-db)")
        return self.start_program(
            "mariadbd",
            "--no-defaults",
            f"--user={user}",
            f"--datadir={self.layout.database_dir}",
            f"--socket={self.layout.database_socket}",
            f"--pid-file={self.layout.dir / 'private' / 'mariadbd.pid'}",
            "--skip-networking",
            "--innodb-flush-log-at-trx-commit=0",  # its data needs no durability
            "--innodb-lock-wait-timeout=900",  # slurmdbd warns of less
            "--innodb-buffer-pool-size=64M",
            "--loose-innodb-snapshot-isolation=OFF",  # else slurmdbd ends itself (11.6)
            **temporary,
        )

    def start_slurmdbd(self) -> Daemon:
        """Start the accounting daemon."""
        return self.start_program(
            "slurmdbd", "-D", MYSQL_UNIX_PORT=str(self.layout.database_socket)
        )

    def query(self, *argv: str) -> str | None:
        """Return the output of a Slurm command, or None if it fails."""
        try:
            done = programs.run_quietly([find_program(argv[0]), *argv[1:]], 20, self.environment)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode == 0 else None

    def start_slurmctld(self) -> Daemon:
        """Start the controller; it listens on the address to which this machine's name resolves."""
        line = [find_program("slurmctld"), "-D", "-c"]
        if self.state.network:
            line = [*self._private("--mount"), "sh", "-c", *self._with_hosts(line)]
        return self.launch("slurmctld", line)

    def start_slurmd(self, node: str) -> Daemon:
        """Start a node that is this machine; with guests it runs in their network, under its own
        name."""
        line = [find_program("slurmd"), "-D", "-N", node]
        if self.state.network:
            script, *rest = self._with_hosts(line)
            line = [
                *self.state.network.enter(),
                *self._private("--mount", "--uts"),
                *("sh", "-c", f"hostname {node} && {OWN_SYSFS} && {script}", *rest),
            ]
        return self.launch(f"slurmd.{node}", line)

    def _private(self, *spaces: str) -> list[str]:
        """Return the command for private namespaces; later mounts of the machine stay visible."""
        return ["unshare", *spaces, "--propagation", "slave"]

    def _with_hosts(self, line: list[str]) -> list[str]:
        """Return the arguments of `sh -c`: the command with the nodes' names in its /etc/hosts."""
        return [WITH_HOSTS, "sh", str(self.layout.hosts_file), *line]

    def register_cluster(self) -> bool:
        """Register the cluster at slurmdbd; return whether that succeeded."""
        return self.query("sacctmgr", "-i", "add", "cluster", CLUSTER_NAME) is not None

    def are_nodes_idle(self) -> bool:
        """Return whether every node is idle."""
        answer = self.query("sinfo", "-h", "-N", "-o", "%N %T")
        if answer is None:
            return False
        states = dict(line.split() for line in answer.splitlines())
        return sorted(states) == sorted(self.config.node_names()) and set(states.values()) == {
            "idle"
        }


def is_listening(address: str, port: int) -> bool:
    """Return whether a process accepts connections at this address."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((address, port)) == 0


def start_controllers(starter: Starter, ports: Ports) -> Daemon:
    """Start everything but the nodes, in the order of dependencies; return slurmctld."""
    munged, mariadbd = starter.start_munged(), starter.start_mariadbd()
    starter.wait_ready(munged, starter.layout.munge_socket.exists, "opened its socket")
    starter.wait_ready(mariadbd, starter.layout.database_socket.exists, "opened its socket")
    slurmdbd = starter.start_slurmdbd()
    starter.wait_ready(slurmdbd, lambda: is_listening(LOOPBACK, ports.slurmdbd), "opened its port")
    starter.wait_ready(slurmdbd, starter.register_cluster, "taken the cluster's name")
    slurmctld = starter.start_slurmctld()
    starter.wait_ready(
        slurmctld, lambda: is_listening(ports.controller, ports.slurmctld), "opened its port"
    )
    return slurmctld


def wait_nodes(starter: Starter, slurmctld: Daemon, slurmds: Sequence[Daemon]) -> None:
    """Wait until every node is idle. Raises ClusterError if a slurmd has ended."""
    starter.wait_ready(slurmctld, starter.are_nodes_idle, "seen every node idle")
    dead = [daemon for daemon in slurmds if not daemon.is_alive()]
    if dead:
        raise starter.failure(dead[0].name, "ended at its start")
