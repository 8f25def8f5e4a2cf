"""A file system that may stop to answer, as NFS whose server is away: bindfs, stopped and let go on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from tests.waiting import wait_for


def needed() -> None:
    """Skip where there is none."""
    if os.geteuid() != 0 or shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("root mounts it, by bindfs and /dev/fuse")


class Mounted:
    """A file system that a process of ours answers for, and what is behind it."""

    def __init__(self, behind: Path, at: Path) -> None:
        self.behind, self.at = behind, at
        for path in (self.behind, self.at):
            path.mkdir(exist_ok=True)
        argv = ["bindfs", "-f", str(self.behind), str(self.at)]
        self.server = subprocess.Popen(argv, stdin=subprocess.DEVNULL)
        wait_for("it is mounted", lambda: os.path.ismount(self.at))

    def hang(self) -> None:
        self.server.send_signal(signal.SIGSTOP)

    def answer(self) -> None:
        self.server.send_signal(signal.SIGCONT)

    def end(self) -> None:
        self.answer()
        subprocess.run(["umount", "--lazy", str(self.at)], check=True)
        self.server.terminate()
        self.server.wait()
