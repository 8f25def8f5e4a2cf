"""A virtual node by QEMU with KVM: its kernel, its files, and its command.

The guest boots a kernel that is installed on this machine, and virtiofs gives it the host's files.
KVM is used only with known drivers: kvm_pvm also has a /dev/kvm, but runs only kernels built for it
at full speed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster import guest_kvm_virtiofs
from steelyard.wrappers.cluster.cluster_config import Network
from steelyard.wrappers.cluster.daemons import search_path

ACCELERATOR = ("-accel", "kvm", "-cpu", "host")
DEVICE = Path("/dev/kvm")
DRIVERS = tuple(map(Path, ("/sys/module/kvm_intel", "/sys/module/kvm_amd")))
FILE_SERVERS = ("/usr/libexec/virtiofsd", "/usr/lib/qemu/virtiofsd", "/usr/lib/virtiofsd")
# Modules that the first process needs: for the disk with all files, and for the network.
MODULES = ("virtio_pci", "virtiofs", "virtio_net", "virtio_blk", "overlay")
UNPACK = {".xz": "xz", ".zst": "zstd", ".gz": "gzip"}  # programs by suffix of module
# program: its Debian package
PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86",
    "busybox": "busybox",
    "ip": "iproute2",
    "modprobe": "kmod",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}


@dataclass(frozen=True)
class Kernel:
    """A bootable kernel: its image, and the folder that contains lib/modules/RELEASE."""

    release: str
    image: Path
    root: Path = Path("/")

    @property
    def modules(self) -> Path:
        """The folder with the modules of every release."""
        return self.root / "lib/modules"


def missing_support() -> str:
    """Return what is missing for a KVM guest on this machine; empty if nothing is."""
    if not DEVICE.exists():
        return f"there is no {DEVICE}"
    if not any(driver.is_dir() for driver in DRIVERS):
        return f"the driver of {DEVICE} is neither {' nor '.join(d.name for d in DRIVERS)}"
    missing = [name for name in PROGRAMS if shutil.which(name, path=search_path()) is None]
    if missing:
        packages = " ".join(sorted({PROGRAMS[name] for name in missing}))
        return f"no {', '.join(missing)} (apt-get install --no-install-recommends {packages})"
    if find_file_server() is None:
        return "no virtiofsd (apt-get install virtiofsd; Debian 12: qemu-system-common)"
    if find_kernel() is None:
        return "no kernel in /boot that has modules (apt-get install linux-image-cloud-amd64)"
    return ""


def find_file_server() -> Path | None:
    """Return the program that exports the host's files to a guest, or None."""
    return next((Path(path) for path in FILE_SERVERS if os.access(path, os.X_OK)), None)


def find_kernel(root: Path = Path("/")) -> Kernel | None:
    """Return the running kernel, else the newest in /boot; None if none has modules."""
    images = [(path.name.removeprefix("vmlinuz-"), path) for path in root.glob("boot/vmlinuz-*")]
    images += [(path.parent.name, path) for path in root.glob("lib/modules/*/vmlinuz")]
    found = [Kernel(release, path, root) for release, path in images]
    able = [kernel for kernel in found if (kernel.modules / kernel.release).is_dir()]
    running = os.uname().release
    return max(able, key=lambda k: (k.release == running, _numbers(k.release)), default=None)


def _numbers(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name)]


def prepare_initramfs(cluster_dir: Path) -> None:
    """Write the guests' initramfs next to their scripts. Raises MissingError without a kernel."""
    kernel = find_kernel()
    if kernel is None:
        raise MissingError(missing_support())
    archive = cluster_dir / "guests" / "initrd.cpio"
    archive.write_bytes(b"".join(_pack_members(_files(cluster_dir, kernel))))


def _files(cluster_dir: Path, kernel: Kernel) -> dict[str, bytes]:
    """Return the files of the initramfs: init, busybox with its libraries, the modules in load
    order."""
    busybox = Path(shutil.which("busybox", path=search_path()) or "busybox")
    output = subprocess.run(["ldd", busybox], capture_output=True, text=True, check=False).stdout
    found = {str(path): path.read_bytes() for path in map(Path, re.findall(r"(/\S+) \(0x", output))}
    found["bin/busybox"] = busybox.read_bytes()
    found["init"] = (cluster_dir / "guests/init_kvm.sh").read_bytes()
    for number, path in enumerate(_module_files(kernel)):
        found[f"modules/{number:02}"] = _unpack(path)
    return found


def _module_files(kernel: Kernel) -> list[Path]:
    """Return each module's file once, after its dependencies; modules built into the kernel have
    none."""
    paths: dict[Path, None] = {}
    for module in MODULES:
        done = subprocess.run(
            ["modprobe", "-d", kernel.root, "-S", kernel.release, "--show-depends", module],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": search_path()},
        )
        if done.returncode != 0:
            raise MissingError(f"the kernel {kernel.image} has no {module}: {done.stderr.strip()}")
        paths |= dict.fromkeys(map(Path, re.findall(r"(?m)^insmod (\S+)", done.stdout)))
    return list(paths)


def _unpack(path: Path) -> bytes:
    program = UNPACK.get(path.suffix)
    if program is None:
        return path.read_bytes()
    return subprocess.run([program, "-dc", path], capture_output=True, check=True).stdout


def _pack_members(files: Mapping[str, bytes]) -> Iterator[bytes]:
    """Yield an archive for the kernel: cpio(5), "newc", which pads to words of four bytes."""
    folders = {str(up) for name in files for up in Path(name.lstrip("/")).parents} - {"."}
    for name in sorted(folders | {"proc", "dev", "host"}):
        yield _pack_member(name, 0o040755, b"")
    for name, content in files.items():
        yield _pack_member(name.lstrip("/"), 0o100755, content)
    yield _pack_member("TRAILER!!!", 0, b"")


def _pack_member(name: str, mode: int, content: bytes) -> bytes:
    word = name.encode() + b"\0"
    numbers = (0, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(word), 0)
    head = b"070701" + b"".join(b"%08x" % number for number in numbers) + word
    return head + b"\0" * (-len(head) % 4) + content + b"\0" * (-len(content) % 4)


def launch_line(
    cluster_dir: Path, name: str, network: Network, memory_mb: int, disk: Path | None = None
) -> list[str]:
    """Return the command that runs the guest, like that of guest_uml: in its own process namespace,
    with which its file servers end."""
    kernel, server = find_kernel(), find_file_server()
    if kernel is None or server is None:
        raise MissingError(missing_support())
    guests = cluster_dir / "guests"
    address = network.address(name)
    kernel_arguments = (
        "console=ttyS0 quiet panic=-1",
        f"SY_NAME={name} SY_DIR={cluster_dir} SY_ADDRESS={address}/24 SY_MODULES={kernel.modules}",
    )
    return [
        *network.enter(),
        *("unshare", "--pid", "--fork", "--kill-child"),
        *(sys.executable, "-P", guest_kvm_virtiofs.__file__, str(server), str(guests / name)),
        *("qemu-system-x86_64", *ACCELERATOR, "-smp", "1", "-m", str(memory_mb)),
        # The file servers read and write the guest's memory.
        *("-object", f"memory-backend-memfd,id=memory,size={memory_mb}M,share=on"),
        *("-numa", "node,memdev=memory", "-nodefaults", "-no-reboot", "-display", "none"),
        *("-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console"),
        *("-kernel", str(kernel.image), "-initrd", str(guests / "initrd.cpio")),
        *("-append", " ".join(kernel_arguments)),
        *("-netdev", f"tap,id=net,ifname={name},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:{_last_byte(address):02x}"),
        *(("-drive", f"file={disk},format=raw,if=virtio,cache=unsafe") if disk else ()),
    ]


def _last_byte(address: str) -> int:
    return int(address.rpartition(".")[2])
