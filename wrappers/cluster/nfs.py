"""An NFS server for the virtual nodes: one more guest with a disk, which each node mounts by NFS
4.2 at /nfs and by NFS 3 at /nfs3.

The host's kernel needs no NFS, so the nodes that are the host do not mount it."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.base import programs
from steelyard.wrappers.cluster.cluster_config import NFS_SERVER, Layout
from steelyard.wrappers.cluster.daemon_start import Starter, search_path
from steelyard.wrappers.cluster.guest_control import Guest

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
