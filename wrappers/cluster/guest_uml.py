"""A virtual node by User Mode Linux, a kernel that runs as a program on any machine."""

from __future__ import annotations

import shutil
from pathlib import Path

from steelyard.wrappers.base.programs import built_programs
from steelyard.wrappers.cluster.cluster_config import Network

REGISTERS = "libsteelyard-uml.so"  # plugins/uml
MODULES = Path("/usr/lib/uml/modules")
MEMORY_DIR = Path("/dev/shm")  # a guest's memory is a file there, unlinked after it is opened

# program: its Debian package
PROGRAMS = {
    "linux.uml": "user-mode-linux",
    "ip": "iproute2",
    "modprobe": "kmod",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}


def prepare_library(cluster_dir: Path) -> None:
    """Copy the library next to the guests' scripts."""
    library = built_programs().parent / "lib" / REGISTERS
    if library.is_file():
        shutil.copy2(library, cluster_dir / "guests")


def _preloaded(cluster_dir: Path) -> list[str]:
    """Return the variable that preloads the library for processors with AMX, if it was built."""
    library = cluster_dir / "guests" / REGISTERS
    return [f"LD_PRELOAD={library}"] if library.is_file() else []


def mount_type(folder: Path) -> str:
    """Return the mount type: hostfs is faster and writes all data to the host at a close, but its
    files belong to root."""
    return "hostfs" if folder.stat().st_uid == 0 else "bindfs"


def launch_line(
    cluster_dir: Path, name: str, network: Network, memory_mb: int, disk: Path | None = None
) -> list[str]:
    """Return the command that runs the guest, for a Starter; its stdin is the FIFO `console`.

    It runs in its own process namespace: the guest's helper processes end with it, even after
    SIGKILL."""
    guests = cluster_dir / "guests"
    return [
        *network.enter(),
        *("unshare", "--pid", "--fork", "--kill-child"),
        *("env", f"TMPDIR={MEMORY_DIR}", *_preloaded(cluster_dir), "linux.uml"),
        *("rootfstype=hostfs", "rootflags=/", "ro", f"mem={memory_mb}M", f"init={guests}/init.sh"),
        *("quiet", "con=null", "con0=fd:0,fd:1", f"umid={name}", f"uml_dir={guests}/uml/"),
        # Without gro=1 a guest receives 0.2 Mbit/s.
        f"vec0:transport=tap,ifname={name},depth=128,gro=1",
        *((f"ubd0={disk}",) if disk else ()),
        *(f"SY_NAME={name}", f"SY_DIR={cluster_dir}", f"SY_ADDRESS={network.address(name)}/24"),
        f"SY_MODULES={MODULES}",
    ]
