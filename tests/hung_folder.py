"""A file system that stops responding, like NFS without its server: bindfs, stopped."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from tests.waiting import wait_for


def needed() -> None:
    """Skip the test if bindfs is missing."""
    if os.geteuid() != 0 or shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("root mounts it, by bindfs and /dev/fuse")


@contextmanager
def waiting_samplers(run_dir: Path, count: int, alive: bool = True) -> Iterator[Path]:
    """Make the files that state that samplers have waited a minute for their record folder.

    The lock of a killed sampler is free. Yields their folder.
    """
    folder = run_dir / "sample"
    folder.mkdir(parents=True, exist_ok=True)
    for path in (run_dir, folder):
        path.chmod(0o700)
    made = [folder / f".opening.{2**30 + number}" for number in range(count)]
    with ExitStack() as held:
        for path in made:
            file = held.enter_context(path.open("w"))
            if alive:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.utime(path, (time.time() - 60,) * 2)
        yield folder
        for path in made:
            path.unlink(missing_ok=True)


class Mounted:
    """A file system that one of our processes serves, and the folder behind it."""

    options: tuple[str, ...] = ()

    def __init__(self, behind: Path, at: Path) -> None:
        self.behind, self.at = behind, at
        for path in (self.behind, self.at):
            path.mkdir(exist_ok=True)
        self.server = self.serve()

    def serve(self) -> subprocess.Popen[bytes]:
        argv = ["bindfs", "-f", *self.options, str(self.behind), str(self.at)]
        server = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        wait_for("it is mounted", lambda: os.path.ismount(self.at))
        return server

    def hang(self) -> None:
        self.server.send_signal(signal.SIGSTOP)

    def answer(self) -> None:
        self.server.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.answer()
        subprocess.run(["umount", "--lazy", str(self.at)], check=True)
        self.server.terminate()
        self.server.wait()


class Unkillable(Mounted):
    """A file system whose server hangs after it accepted a request, as of GlusterFS, CephFS or
    sshfs.

    The requesting process cannot even be killed. It is a bindfs on top of another one, which is
    stopped. For a minute the kernel knows without a request which files do not exist.
    """

    options = ("-o", "negative_timeout=60")

    def __init__(self, behind: Path, at: Path) -> None:
        self.below = Mounted(behind.with_name(behind.name + ".below"), behind)
        super().__init__(behind, at)

    def hang(self) -> None:
        self.below.hang()

    def answer(self) -> None:
        self.below.answer()

    def end(self) -> None:
        super().end()
        self.below.end()
