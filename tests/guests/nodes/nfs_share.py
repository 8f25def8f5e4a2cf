"""A share of the guests' file server: exported for one test, mounted on demand."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from tests.throwaway_lab import Lab

from steelyard.wrappers.cluster.cluster_config import NFS_SERVER
from steelyard.wrappers.cluster.guest_control import Guest

SHARE = "/srv/nfs/own"
MOUNT = {
    "4.2": "-t nfs4 -o vers=4.2 nfs:/own",
    "3": f"-t nfs -o vers=3,proto=tcp,port=2049,mountproto=tcp,mountport=20048,nolock nfs:{SHARE}",
}
# A separate file system: one below the file system that is exported to root would be accessible
# through that, too.
EXPORT = """
set -eu
mkdir -p {share}
mount -t tmpfs -o mode=755 tmpfs {share}
exportfs -o rw,{squash},fsid=7,insecure,no_subtree_check,async {network}:{share}
"""
UNEXPORT = "exportfs -u {network}:{share}; umount {share}"


def shell(guest: Guest, script: str, timeout_s: float = 60.0) -> str:
    """Run a script as the guest's root; return its output."""
    done = guest.run(["sh", "-c", script], timeout_s=timeout_s)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
    return done.stdout


@contextlib.contextmanager
def exported(lab: Lab, squash: str) -> Iterator[Guest]:
    """Export SHARE, an empty file system, for the `with` statement; yield the server.

    `squash` maps the client's root.
    """
    network = lab.cluster.state.network
    assert network is not None
    words = {"share": SHARE, "network": f"{network.prefix}.0/24", "squash": squash}
    server = lab.cluster.find_guest(NFS_SERVER)
    shell(server, EXPORT.format(**words))
    try:
        yield server
    finally:
        shell(server, UNEXPORT.format(**words))
