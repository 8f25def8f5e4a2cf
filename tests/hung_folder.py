"""A file system that may stop to answer, as NFS whose server is away: bindfs, stopped and let go on."""

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
    """Skip where there is none."""
    if os.geteuid() != 0 or shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("root mounts it, by bindfs and /dev/fuse")


@contextmanager
def waiting_samplers(run_dir: Path, count: int, alive: bool = True) -> Iterator[Path]:
    """The files by which samplers say that they wait for their record folder, for a minute by now;
    of killed samplers nobody holds the lock. Yields their folder."""
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
    """A file system that a process of ours answers for, and what is behind it."""

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
    """Its server has taken a request when it hangs, as that of GlusterFS, CephFS or sshfs: whoever
    made the request cannot even be killed. A bindfs over another one, which is stopped. The kernel knows for a minute which files are not there, without a request."""

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
