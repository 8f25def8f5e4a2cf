"""A temporary machine with a kernel of any release of Debian, emulated in software.

It boots from a few files in memory (tests/guests/kernels/init.sh), and returns the results of
tests/guests/kernels/cases.sh.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
KERNELS = Path("/var/tmp/steelyard-kernels")  # downloaded once
BOOT_S = 900  # some 100 on an idle machine
NO_SUCH_SUITE = 3


@dataclass(frozen=True)
class Guest:
    """The results."""

    folder: Path

    def text(self, name: str) -> str:
        return (self.folder / name).read_text()

    def json(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.text(name))
        return found

    @property
    def release(self) -> tuple[int, ...]:
        return tuple(int(number) for number in re.findall(r"\d+", self.text("release"))[:2])


def fetched(suite: str) -> Path:
    """Return the newest kernel of a release; download it if necessary."""
    KERNELS.mkdir(exist_ok=True)
    path = KERNELS / f"{suite}.vmlinuz"
    done = subprocess.run(
        [ROOT / "tests/guests/kernels/kernel.sh", suite, path], check=False, timeout=600
    )
    if done.returncode == NO_SUCH_SUITE:
        pytest.skip(f"Debian's mirrors have no release {suite} any more")
    assert done.returncode == 0
    return path


def libraries(program: Path) -> Iterator[Path]:
    said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    yield from (Path(path) for path in re.findall(r"(/\S+) \(0x", said))


def make_files(folder: Path) -> Path:
    """Make all files of the guest: an archive that the kernel unpacks."""
    root, archive = folder / "root", folder / "root.cpio"
    (root / "bin").mkdir(parents=True)
    for name in ("proc", "sys", "dev", "run", "tmp"):
        (root / name).mkdir()
    load = root / "bin/load"
    source = ROOT / "tests/system/bpf/load.c"
    subprocess.run(["gcc", "-O2", "-pthread", "-o", load, source], check=True)
    busybox = shutil.which("busybox")
    assert busybox
    programs = [
        Path(busybox),
        *(ROOT / "build/bin" / name for name in ("steelyard-bpf", "steelyard-node")),
    ]
    for program in programs:
        shutil.copy(program, root / "bin")
    for library in {path for program in [*programs, load] for path in libraries(program)}:
        (root / library.parent.relative_to("/")).mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.relative_to("/"))
    shutil.copy(ROOT / "tests/guests/kernels/init.sh", root / "init")
    shutil.copy(ROOT / "tests/guests/kernels/cases.sh", root / "bin")
    with archive.open("wb") as file:
        names = subprocess.run(["find", "."], cwd=root, capture_output=True, check=True).stdout
        argv = [busybox, "cpio", "-o", "-H", "newc"]
        subprocess.run(
            argv, cwd=root, input=names, stdout=file, stderr=subprocess.DEVNULL, check=True
        )
    return archive


def boot(suite: str, folder: Path) -> Guest:
    """Boot a guest and wait until it switches itself off."""
    kernel, files = fetched(suite), make_files(folder)
    console, back, out = folder / "console", folder / "out.tar", folder / "out"
    # Emulated it is slow enough without what runs beside it. One thread emulates both processors:
    # with a thread each, QEMU may still run the int3 of a kernel that switches a tracepoint
    # on after the kernel has replaced it, and the kernel panics (bugzilla.redhat.com 2216496).
    argv = ["nice", "-n", "-15", "qemu-system-x86_64", "-accel", "tcg,thread=single", "-cpu", "max", "-smp", "2", "-m", "1024",
            "-nodefaults", "-no-reboot", "-display", "none", "-kernel", kernel, "-initrd", files,
            "-append", "console=ttyS0 quiet panic=-1 rdinit=/init mitigations=off",
            "-serial", f"file:{console}", "-serial", f"file:{back}"]  # fmt: skip
    subprocess.run(argv, check=True, timeout=BOOT_S, stdin=subprocess.DEVNULL)
    assert back.stat().st_size, console.read_text(errors="replace")[-3000:]
    with tarfile.open(back) as archive:
        archive.extractall(out)
    guest = Guest(out)
    assert guest.text("rc") == "0\n", guest.text("log")[-3000:]
    return guest
