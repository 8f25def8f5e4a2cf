"""A throwaway Slurm cluster on this machine, for experiments, tests and the demo.

    with cluster.start_cluster(ClusterConfig(dir=folder)) as slurm:  # plugin=…: find_plugin()
        subprocess.run(["srun", "-N2", "hostname"], env=slurm.environment())

munged, mariadbd, slurmdbd, slurmctld and one slurmd per node run on 127.0.0.1, with all files below
one folder. The user is root or an ordinary user, who is then the only one that can run jobs. With
guests (root only) all daemons are in a private network instead: see network.py.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.sources import slurm_command_environment
from steelyard.wrappers.base import programs
from steelyard.wrappers.base.cron_command_lock import take_lock
from steelyard.wrappers.cluster import cluster_config, daemons, guest_start
from steelyard.wrappers.cluster import network as virtual_network
from steelyard.wrappers.cluster.cluster_config import ClusterConfig, Layout, Ports
from steelyard.wrappers.cluster.daemons import Daemon, State
from steelyard.wrappers.cluster.guest_control import END_LIMIT_S, Guest

# A Unix socket's path has at most 107 bytes; the longest of ours:
# run/steelyard/n999.4294967295.sock
MAX_DIR_LENGTH = 107 - 40


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    state: State

    @property
    def dir(self) -> Path:
        """The folder of all files of the cluster."""
        return self.state.dir

    @property
    def record_dir(self) -> Path:
        """The folder where the plugin writes records and samples."""
        return Layout(self.dir).record_dir

    def variables(self) -> dict[str, str]:
        """Return the environment variables that select this cluster for Slurm's commands and
        ours."""
        return {
            "SLURM_CONF": str(Layout(self.dir).slurm_conf),
            "STEELYARD_RECORD_DIR": str(self.record_dir),
            "STEELYARD_CLUSTER_DIR": str(self.dir),
        }

    def environment(self) -> dict[str, str]:
        """Return this process' environment with `variables()`, for subprocess.run(env=…)."""
        return slurm_command_environment.remove_slurm_variables() | self.variables()

    def find_guest(self, name: str) -> Guest:
        """Return a virtual node, which takes commands outside the network. Raises UsageError for an
        unknown name."""
        return guest_start.find_guest(self.state, name)

    def stop(self) -> None:
        """Cancel the cluster's jobs and end its daemons; the folder remains until the next
        start."""
        stop_cluster(self.dir)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def find_plugin() -> tuple[Path, Path]:
    """Return spank_steelyard.so and steelyard-node of this checkout, else installed ones. Raises
    MissingError if neither exists."""
    checkout = Path(__file__).resolve().parents[2] / "build"
    places = [(checkout / "lib", checkout / "bin")]
    for prefix in (Path(sys.prefix), Path("/usr/local"), Path("/usr")):
        places.append((prefix / "lib" / "steelyard", prefix / "libexec" / "steelyard"))
    for lib, libexec in places:
        plugin, node_program = lib / "spank_steelyard.so", libexec / "steelyard-node"
        if plugin.is_file() and node_program.is_file():
            return plugin, node_program
    raise MissingError(
        "the Slurm plugin is not built: expected build/lib/spank_steelyard.so and "
        "build/bin/steelyard-node; run 'make all' in the checkout (needs libslurm-dev, "
        "libjansson-dev and libmnl-dev), or use --no-plugin for a cluster without it"
    )


def find_cluster(folder: Path) -> Cluster | None:
    """Return the cluster that runs in `folder`; None if none does."""
    state = daemons.load_state(folder)
    if state is None or not state.ready or len(state.list_running()) != len(state.daemons):
        return None
    return Cluster(state)


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Allow one `up` or `down` at a time in a folder; the lock file beside it is removed with the
    lock."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    path = folder.parent / f".{folder.name}.lock"
    fd = take_lock(path, wait=True)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)


def start_cluster(config: ClusterConfig) -> Cluster:
    """Start a cluster; one that already runs in the folder is returned unchanged."""
    daemons.check_programs()
    check_config(config)
    with lock_folder(config.dir):
        running = find_cluster(config.dir)
        if running is not None:
            return running
        _down(config.dir)  # leftovers of a crash
        network = virtual_network.choose_network() if config.guests else None
        state = State(
            dir=config.dir,
            boot_id=daemons.read_boot_id(),
            slurm_version=daemons.read_slurm_version(),
            nodes=config.node_names(),
            plugin=config.plugin is not None,
            network=network,
            guests=config.machine_names(),
        )
        config.dir.mkdir(parents=True, exist_ok=True)
        state.save()  # from now on the folder counts as ours
        try:
            _make_folders(config)
            _start(config, state)
        except BaseException:
            _down(config.dir)
            raise
        state.ready = True
        state.save()
        return Cluster(state)


def _start(config: ClusterConfig, state: State) -> None:
    """Start everything that `down` ends; guests boot while the daemons start."""
    numbers = daemons.find_free_ports(2 + len(state.nodes))
    ports = Ports(numbers[0], numbers[1], tuple(numbers[2:]), state.network)
    _write_files(config, ports, state.slurm_version)
    if state.network:
        virtual_network.create_network(state.network, state.guests)
    starter = daemons.Starter(config, state, Cluster(state).environment())
    guests = guest_start.boot_guests(starter)
    slurmctld = daemons.start_controllers(starter, ports)
    guest_start.start_nfs(starter, guests)
    slurmds = [starter.start_slurmd(node) for node in config.host_names()]
    guest_start.start_slurmd(starter, guests)
    daemons.wait_nodes(starter, slurmctld, slurmds)


def check_config(config: ClusterConfig) -> None:
    """Raise an error for a configuration that cannot work, before any change."""
    counts = (config.physical_nodes, config.virtual_nodes, config.guests)
    if min(counts) < 0 or not sum(counts):
        raise UsageError("a cluster needs at least one node", part="nodes")
    if not config.dir.is_absolute():
        raise UsageError(f"the cluster's folder '{config.dir}' must be absolute", part="dir")
    if len(os.fsencode(config.dir)) > MAX_DIR_LENGTH:
        raise UsageError(
            f"the cluster's folder '{config.dir}' is longer than {MAX_DIR_LENGTH} bytes, too long "
            "for the Unix sockets in it: choose a shorter --dir",
            part="dir",
        )
    if any(character.isspace() for character in str(config.dir)):
        raise UsageError(
            f"the cluster's folder '{config.dir}' has blanks in its name, which Slurm's "
            "configuration cannot hold: choose another --dir",
            part="dir",
        )
    foreign = config.dir.is_dir() and any(config.dir.iterdir())
    if foreign and not (config.dir / "cluster.json").is_file():
        raise UsageError(
            f"'{config.dir}' is not empty and no throwaway cluster: choose another --dir, or "
            "empty it",
            part="dir",
        )
    guest_start.check_guests(config)


def _make_folders(config: ClusterConfig) -> None:
    """Empty the folder and create its subfolders; records of an earlier cluster are removed.
    cluster.json stays: a non-empty folder without it counts as foreign."""
    for entry in config.dir.iterdir():
        if entry.name != "cluster.json":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    for folder, mode in Layout(config.dir).folders().items():
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)
    for node in config.node_names():
        (config.dir / "spool" / node).mkdir(mode=0o755)


def _write_files(config: ClusterConfig, ports: Ports, version: str) -> None:
    at = Layout(config.dir)
    at.munge_key.write_bytes(secrets.token_bytes(64))
    at.munge_key.chmod(0o400)
    at.slurm_conf.write_text(cluster_config.slurm_conf(config, ports))
    at.slurmdbd_conf.touch(mode=0o600)
    at.slurmdbd_conf.write_text(cluster_config.slurmdbd_conf(config, ports))
    release = _parse_release(version)
    (at.dir / "etc" / "cgroup.conf").write_text(cluster_config.cgroup_conf(config, release))
    (at.dir / "etc" / "gres.conf").write_text(cluster_config.gres_conf(config))
    (at.dir / "etc" / "plugstack.conf").write_text(cluster_config.plugstack_conf(config))
    at.netem_conf.write_text(cluster_config.netem_conf(ports.network))
    at.netem_conf.chmod(0o644)  # whatever the umask: a group-writable policy is refused
    if ports.network:
        at.hosts_file.write_text(cluster_config.hosts_file(config, ports.network))
        text = cluster_config.guest_cgroup_conf(config, release)
        (at.dir / "etc" / "cgroup.guest.conf").write_text(text)
    # Copies, because a rebuild must not change the files that a running cluster has loaded.
    if config.plugin is not None:
        shutil.copy2(config.plugin, at.lib_dir / "spank_steelyard.so")
    if config.node_program is not None:
        shutil.copy2(config.node_program, at.lib_dir / "steelyard-node")
        for name in ("steelyard-bpf", "steelyard-left", "steelyard-slurmdb"):
            beside = config.node_program.with_name(name)
            if beside.is_file():
                shutil.copy2(beside, at.lib_dir / name)


def _parse_release(version: str) -> tuple[int, int]:
    """Return, for example, (22, 5) for 22.05.8."""
    major, minor = version.split(".")[:2]
    return int(major), int(minor)


def stop_cluster(folder: Path) -> bool:
    """End the cluster in `folder`; return False if none ran there. It may be called repeatedly."""
    with lock_folder(folder):
        return _down(folder)


def _down(folder: Path) -> bool:
    state = daemons.load_state(folder)
    if state is None:
        return False
    alive = state.list_running()
    if state.ready and any(daemon.name == "slurmctld" for daemon in alive):
        _cancel_jobs(Cluster(state))
    survivors = _end_in_order(state)
    if survivors:
        names = ", ".join(f"{daemon.name} (pid {daemon.pid})" for daemon in survivors)
        raise MissingError(f"these processes of the cluster do not end: {names}; see {folder}/log")
    if state.network and state.boot_id == daemons.read_boot_id():
        virtual_network.remove_network(state.network)
        guest_start.disk_path(folder).unlink(missing_ok=True)
        state.network = None
    state.daemons, state.ready = [], False
    state.save()
    return bool(alive)


def _cancel_jobs(cluster: Cluster, limit_s: float = 8.0) -> None:
    """Cancel every job and wait until their processes have ended, or until the limit."""
    user = cluster_config.user_name()
    queue = _query(cluster, "squeue", "-h", "-o", "%u")
    if not queue:
        return
    for owner in sorted(set(queue.split()) | {user}):
        _query(cluster, "scancel", "--user", owner)
    end = time.monotonic() + limit_s
    while time.monotonic() < end and _query(cluster, "squeue", "-h", "-o", "%i"):
        time.sleep(0.1)


def _query(cluster: Cluster, *argv: str) -> str:
    """Return a Slurm command's output; empty if it fails: a cluster that is stopping may not
    answer."""
    try:
        done = programs.run_quietly(
            [daemons.find_program(argv[0]), *argv[1:]], 15, cluster.environment()
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _end_in_order(state: State) -> list[Daemon]:
    """End the daemons, dependent ones first; return those that could not be ended."""
    survivors: list[Daemon] = []
    rest = daemons.find_leftovers(Layout(state.dir).slurm_conf)
    groups = [("slurmd.", "slurmctld"), ("slurmdbd",), ("mariadbd", "munged")]
    alive = state.list_running()
    guests = [daemon for daemon in alive if daemon.name.startswith("guest.")]
    for daemon in guests:
        guest_start.find_guest(state, daemon.name.removeprefix("guest.")).power_off()
    for group in groups:
        survivors += daemons.end_daemons([d for d in alive if d.name.startswith(group)])
    survivors += daemons.end_daemons(rest, patience_s=3.0)
    daemons.wait_gone(guests, END_LIMIT_S)
    if state.network and state.boot_id == daemons.read_boot_id():
        # Also the processes of jobs, and a guest that could not be recorded.
        strays = virtual_network.list_processes(state.network)
        survivors += daemons.end_daemons(strays, patience_s=1.0)
    return survivors
