"""Starts the virtual nodes of a throwaway cluster and their NFS server, and checks what they need.

The NFS server is one more guest with a disk, which each node mounts by NFS 4.2 at /nfs and by NFS 3
at /nfs3."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.wrappers.base import programs
from steelyard.wrappers.cluster import guest_control, guest_kvm, guest_uml
from steelyard.wrappers.cluster.cluster_config import NFS_SERVER, ClusterConfig, Layout, Network
from steelyard.wrappers.cluster.daemons import Starter, State, search_path
from steelyard.wrappers.cluster.guest_control import Guest

MAX_GUESTS = 100  # their addresses' host parts start at 11
MIN_MEMORY_MB = 256
TUN = Path("/dev/net/tun")
# The kernel's file systems, which a guest has itself, and folders that it has in memory.
NEVER_SHARED = tuple(map(Path, ("/proc", "/sys", "/dev", "/run", "/var/run")))


def check_guests(config: ClusterConfig) -> None:
    """Raise an error for guests that cannot work, before any change."""
    if not config.guests:
        if config.nfs:
            raise UsageError("--nfs needs virtual nodes that mount it: --virtual N", part="nfs")
        return
    if config.guests > MAX_GUESTS:
        raise UsageError(f"at most {MAX_GUESTS} virtual nodes, not {config.guests}", part="virtual")
    if config.memory_mb < MIN_MEMORY_MB:
        raise UsageError(f"a guest needs {MIN_MEMORY_MB} MB of memory at least", part="memory")
    if os.geteuid() != 0:
        raise MissingError(
            "virtual nodes need root (a network namespace, a bridge, /dev/net/tun): "
            "sudo steelyard cluster up --virtual …; without root: --virtual-feature"
        )
    for folder in config.shares:
        check_share(folder)
    _check_host(config)


def _check_host(config: ClusterConfig) -> None:
    """Check programs, kernel modules, the tap driver, and space for the guests' memory."""
    without_kvm = guest_kvm.missing_support()
    programs = dict(guest_uml.PROGRAMS if without_kvm else guest_kvm.PROGRAMS)
    if config.nfs:
        programs |= PROGRAMS
    if without_kvm and "bindfs" in map(guest_uml.mount_type, config.shares):
        programs["bindfs"] = "bindfs"
    missing = [name for name in programs if shutil.which(name, path=search_path()) is None]
    if missing or (without_kvm and not guest_uml.MODULES.is_dir()):
        packages = " ".join(sorted({programs[name] for name in missing} or {"user-mode-linux"}))
        raise MissingError(
            f"virtual nodes need {', '.join(missing) or guest_uml.MODULES}, not found here; as "
            f"root: apt-get install --no-install-recommends {packages}"
        )
    if not TUN.exists():
        raise MissingError(
            f"virtual nodes need {TUN}, not found here: modprobe tun; in a container: "
            "--device /dev/net/tun --cap-add NET_ADMIN,SYS_ADMIN"
        )
    if without_kvm:
        _check_room(config)


def _check_room(config: ClusterConfig) -> None:
    """Check the space for User Mode Linux, whose memory is in a file system."""
    count, folder = len(config.machine_names()), guest_uml.MEMORY_DIR
    free_mb, wanted_mb = shutil.disk_usage(folder).free >> 20, count * config.memory_mb
    if free_mb < wanted_mb:
        raise MissingError(
            f"{count} guests of {config.memory_mb} MB need {wanted_mb} MB in {folder}, "
            f"which has {free_mb} MB free: fewer, or --memory; in a container: --shm-size"
        )


def check_share(folder: Path) -> None:
    """Raise UsageError if a folder cannot be shared with guests."""
    if not folder.is_absolute() or not folder.is_dir():
        raise UsageError(f"--share '{folder}' is no folder (an absolute path)", part="share")
    if not is_shareable(folder):
        raise UsageError(
            f"--share '{folder}' is not possible: guests have their own /, /proc, /sys, /dev and "
            "/run; a name must hold neither comma nor line end",
            part="share",
        )


def is_shareable(folder: Path) -> bool:
    """Return whether a guest can mount the folder at the same path."""
    own = any(folder == other or folder.is_relative_to(other) for other in NEVER_SHARED)
    return folder != Path("/") and not own and not set(str(folder)) & set(",\n")


def list_default_shares() -> tuple[Path, ...]:
    """Return the current folder and the home, if they can be shared."""
    return tuple(folder for folder in (Path.cwd(), Path.home()) if is_shareable(folder))


def format_mounts(cluster_dir: Path, shares: Sequence[Path]) -> dict[Path, str]:
    """Return each folder's mount type in a guest, the cluster's own last; subfolders of others are
    omitted."""
    real = sorted(set(shares))
    outer = [a for a in real if not any(a != b and a.is_relative_to(b) for b in real)]
    outer = [folder for folder in outer if not folder.is_relative_to(cluster_dir)]
    return {folder: guest_uml.mount_type(folder) for folder in outer} | {cluster_dir: "hostfs"}


def find_guest(state: State, name: str) -> Guest:
    """Return a guest of a running cluster. Raises UsageError for another name."""
    for daemon in state.daemons:
        if daemon.name == f"guest.{name}" and state.network:
            at = Layout(state.dir).guest_dir / name
            return Guest(name, state.network.address(name), at, daemon)
    known = ", ".join(state.guests) or "none"
    raise UsageError(f"'{name}' is no guest of this cluster; there are: {known}", part="node")


def choose_kind() -> str:
    """Return the kind of guest that this machine runs, and the reason if it is not KVM."""
    reason = guest_kvm.missing_support()
    return f"User Mode Linux, not of QEMU with KVM: {reason}" if reason else "QEMU with KVM"


def launch_line(
    cluster_dir: Path, name: str, network: Network, memory_mb: int, disk: Path | None = None
) -> list[str]:
    """Return the command that runs the guest: of QEMU if KVM works, else of User Mode Linux."""
    if guest_kvm.missing_support():
        return guest_uml.launch_line(cluster_dir, name, network, memory_mb, disk)
    return guest_kvm.launch_line(cluster_dir, name, network, memory_mb, disk)


def boot_guests(starter: Starter) -> list[Guest]:
    """Start every guest; they boot while the daemons start."""
    config, network = starter.config, starter.state.network
    if network is None:
        return []
    names, shares = config.machine_names(), format_mounts(config.dir, config.shares)
    if guest_kvm.missing_support():
        guest_control.prepare_folders(config.dir, names, shares)
        guest_uml.prepare_library(config.dir)
    else:
        guest_control.prepare_folders(config.dir, names, dict.fromkeys(shares, "virtiofs"))
        guest_kvm.prepare_initramfs(config.dir)
    for name in names:
        at = starter.layout.guest_dir / name
        starter.launch(
            f"guest.{name}",
            launch_line(
                config.dir,
                name,
                network,
                config.memory_mb,
                make_disk(config.dir) if name == NFS_SERVER else None,
            ),
            console=at / "console",
            output=at / "console.log",
        )
    return [find_guest(starter.state, name) for name in names]


def start_slurmd(starter: Starter, guests: Sequence[Guest]) -> None:
    """Wait until each guest that is a node takes requests, and start its slurmd."""
    for guest in guests:
        if guest.name == NFS_SERVER:
            continue
        starter.wait_ready(guest.daemon, guest.is_ready, "booted")
        done = guest.run(["slurmd", "-N", guest.name], timeout_s=60)
        if done.returncode != 0:
            log = starter.layout.log_dir / f"slurmd.{guest.name}.log"
            raise guest.failure(
                f"does not start slurmd ({done.stderr.strip()}; {log} says last:\n"
                f"{guest_control.read_last_lines(log)})"
            )


DISK_MB = 4096  # sparse: unwritten blocks use no space

# program: its Debian package
PROGRAMS = {
    "mkfs.ext4": "e2fsprogs",
    "exportfs": "nfs-kernel-server",
    "rpc.mountd": "nfs-kernel-server",
    "rpc.nfsd": "nfs-kernel-server",
    "mount.nfs4": "nfs-common",
    "rpcbind": "rpcbind",
}


def disk_path(cluster_dir: Path) -> Path:
    """Return the path of the server's disk, a file of the host."""
    return Layout(cluster_dir).guest_dir / NFS_SERVER / "disk.ext4"


def make_disk(cluster_dir: Path) -> Path:
    """Create an empty ext4 file; its tables are written now and not during a measurement."""
    path = disk_path(cluster_dir)
    with path.open("xb") as file:
        file.truncate(DISK_MB << 20)
    mkfs = shutil.which("mkfs.ext4", path=search_path()) or "mkfs.ext4"
    options = ["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]
    done = programs.run_quietly([mkfs, *options, str(path)], 60)
    if done.returncode != 0:
        raise MissingError(f"the disk of the NFS server cannot be made: {done.stderr.strip()}")
    return path


def start_nfs(starter: Starter, guests: Sequence[Guest]) -> None:
    """Export in the server and mount in all other guests; does nothing without a server."""
    servers = [guest for guest in guests if guest.name == NFS_SERVER]
    network = starter.state.network
    for server in servers:
        starter.wait_ready(server.daemon, server.is_ready, "booted")
        _run(server, "nfs_server.sh", f"{network.prefix}.0/24" if network else "")
    if servers:
        for guest in guests:
            if guest.name != NFS_SERVER:
                starter.wait_ready(guest.daemon, guest.is_ready, "booted")
                _run(guest, "nfs_client.sh")


def _run(guest: Guest, script: str, *arguments: str) -> None:
    done = guest.run([str(guest.dir.parent / script), *arguments], timeout_s=60)
    if done.returncode != 0:
        raise guest.failure(f"cannot set up NFS ({script}: {done.stderr.strip()})")
