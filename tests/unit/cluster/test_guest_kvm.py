"""The requirements of a guest of QEMU with KVM; none is started here.

tests/guests/nodes/test_virtual_kvm.py starts one.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from steelyard.wrappers.cluster import guest_kvm
from steelyard.wrappers.cluster.cluster_config import Network

NETWORK = Network("sy-4f1a", "10.79.26")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One that has all of it."""
    for name in ("kvm", "virtiofsd"):
        (tmp_path / name).touch(0o755)
    (tmp_path / "kvm_amd").mkdir()
    monkeypatch.setattr(guest_kvm, "DEVICE", tmp_path / "kvm")
    monkeypatch.setattr(guest_kvm, "DRIVERS", (tmp_path / "kvm_intel", tmp_path / "kvm_amd"))
    monkeypatch.setattr(guest_kvm, "FILE_SERVERS", ("/none", str(tmp_path / "virtiofsd")))
    monkeypatch.setattr(shutil, "which", lambda name, path=None: f"/{name}")
    kernel = guest_kvm.Kernel("6.1.0-5-amd64", Path("/boot/vmlinuz-6.1.0-5-amd64"))
    monkeypatch.setattr(guest_kvm, "find_kernel", lambda: kernel)
    return tmp_path


def test_what_is_missing_is_told_by_its_package(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert guest_kvm.missing_support() == ""
    monkeypatch.setattr(guest_kvm, "find_kernel", lambda: None)
    assert "no kernel in /boot that has modules (apt-get" in guest_kvm.missing_support()
    (machine / "virtiofsd").chmod(0o644)
    assert "no virtiofsd (apt-get install virtiofsd" in guest_kvm.missing_support()
    there = {"ip", "modprobe", "nsenter", "unshare"}
    monkeypatch.setattr(shutil, "which", lambda name, path=None: name if name in there else None)
    assert guest_kvm.missing_support() == (
        "no qemu-system-x86_64, busybox "
        "(apt-get install --no-install-recommends busybox qemu-system-x86)"
    )
    (machine / "kvm_amd").rmdir()
    assert guest_kvm.missing_support().endswith("/kvm is neither kvm_intel nor kvm_amd"), "kvm_pvm"
    (machine / "kvm").unlink()
    assert guest_kvm.missing_support() == f"there is no {machine / 'kvm'}"


def add_kernel(root: Path, release: str, modules: bool = True) -> None:
    (root / "boot").mkdir(exist_ok=True)
    (root / "boot" / f"vmlinuz-{release}").touch()
    if modules:
        (root / "lib/modules" / release).mkdir(parents=True)


def test_the_running_kernel_is_taken_else_the_newest_that_has_modules(tmp_path: Path) -> None:
    assert guest_kvm.find_kernel(tmp_path) is None
    add_kernel(tmp_path, "6.9.1-amd64")
    add_kernel(tmp_path, "6.10.0-amd64")
    add_kernel(tmp_path, "6.11.0-amd64", modules=False)
    found = guest_kvm.find_kernel(tmp_path)
    assert found == guest_kvm.Kernel(
        "6.10.0-amd64", tmp_path / "boot/vmlinuz-6.10.0-amd64", tmp_path
    )
    own = tmp_path / "lib/modules" / "6.12.0-fedora"  # its image is with its modules
    own.mkdir()
    (own / "vmlinuz").touch()
    found = guest_kvm.find_kernel(tmp_path)
    assert found and found.image == own / "vmlinuz"
    add_kernel(tmp_path, os.uname().release)
    found = guest_kvm.find_kernel(tmp_path)
    assert found and found.release == os.uname().release


def test_the_command_is_a_machine_of_one_cpu_with_the_clusters_network(
    machine: Path, tmp_path: Path
) -> None:
    line = guest_kvm.launch_line(tmp_path, "v2", NETWORK, 512, tmp_path / "disk")
    assert line[:2] == ["nsenter", "--net=/run/netns/sy-4f1a"]
    assert str(machine / "virtiofsd") in line
    text = " ".join(line)
    assert "-accel kvm -cpu host -smp 1 -m 512 " in text
    assert "tap,id=net,ifname=v2," in text and "mac=52:54:00:00:00:0c" in text
    assert "SY_ADDRESS=10.79.26.12/24 SY_MODULES=/lib/modules" in text
    assert f"file={tmp_path}/disk,format=raw" in text
    assert "-drive" not in guest_kvm.launch_line(tmp_path, "v2", NETWORK, 512)


def test_the_archive_is_one_that_kernels_unpack() -> None:
    archive = b"".join(guest_kvm._pack_members({"init": b"abc", "/lib/x.so": b"so"}))
    found: dict[str, tuple[int, bytes]] = {}
    while archive:
        assert archive[:6] == b"070701"
        mode, size, length = (int(archive[at : at + 8], 16) for at in (14, 54, 94))
        begin = -(-(110 + length) // 4) * 4
        found[archive[110 : 110 + length - 1].decode()] = (mode, archive[begin : begin + size])
        archive = archive[begin + -(-size // 4) * 4 :]
    folder = (0o040755, b"")
    assert found == {
        **dict.fromkeys(("dev", "host", "lib", "proc"), folder),
        "init": (0o100755, b"abc"),
        "lib/x.so": (0o100755, b"so"),
        "TRAILER!!!": (0, b""),
    }
