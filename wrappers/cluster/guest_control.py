"""A virtual node of the throwaway cluster: sends it commands and ends it; guest_kvm and guest_uml
start it.

Requests do not use the shaped network: an id goes to the guest's console, a FIFO; the command, its
output and its exit code are files in the cluster's folder, which the guest mounts."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import subprocess
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from steelyard.analysis.base.errors import MissingError
from steelyard.wrappers.cluster.daemons import Daemon

PANIC = "Kernel panic"
POLL_S = 0.005
END_LIMIT_S = 4.0


@dataclass(frozen=True)
class Guest:
    """A started guest; `run` executes a command in it."""

    name: str  # v1
    address: str  # 10.79.26.11
    dir: Path  # guests/v1 in the cluster's folder
    daemon: Daemon

    def run(
        self, argv: Sequence[str], timeout_s: float = 30.0, text: str = ""
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in the guest as root; `text` is its stdin.

        Raises MissingError if the guest has died, subprocess.TimeoutExpired at the time limit, when
        the command is killed in the guest."""
        number = str(uuid.uuid4().int)
        at = self.dir / "requests" / number
        at.mkdir(parents=True)
        (at / "in").write_text(text)
        (at / "command").write_text(
            f"exec timeout --kill-after=1 {timeout_s:g} {shlex.join(argv)}\n"
        )
        try:
            self._send(number)
            code = self._wait_code(at / "rc", argv, timeout_s)
            out, err = ((at / name).read_text(errors="replace") for name in ("out", "err"))
        finally:
            shutil.rmtree(at, ignore_errors=True)
        return subprocess.CompletedProcess(list(argv), code, out, err)

    def _wait_code(self, rc: Path, argv: Sequence[str], timeout_s: float) -> int:
        begin = time.monotonic()
        while not rc.exists():
            if not self.daemon.is_alive():
                raise self.failure("has died")
            if time.monotonic() - begin > timeout_s + 5:
                raise subprocess.TimeoutExpired(list(argv), timeout_s)
            time.sleep(POLL_S)
        code = int(rc.read_text())
        if code == 124 and time.monotonic() - begin >= timeout_s:  # timeout(1)
            raise subprocess.TimeoutExpired(list(argv), timeout_s)
        return code

    def _send(self, line: str) -> None:
        """Write one line to the console."""
        try:
            console = os.open(self.dir / "console", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # ENXIO: it has no reader
            raise self.failure("has died") from None
        try:
            os.write(console, f"{line}\n".encode())
        finally:
            os.close(console)

    def power_off(self) -> None:
        """Request a clean shutdown, without waiting for it."""
        with contextlib.suppress(MissingError):
            self._send("off")

    def failure(self, what: str) -> MissingError:
        """Return an error with what happened and the last lines of the console."""
        return MissingError(
            f"guest {self.name} {what}; its console says last:\n{read_last_lines(self.console)}\n"
            f"  all of it: {self.console}; start afresh: steelyard cluster down, then up"
        )

    @property
    def console(self) -> Path:
        """The file with the guest's console output."""
        return self.dir / "console.log"

    def is_ready(self) -> bool:
        """Return whether the guest takes requests. Raises MissingError if its kernel has
        crashed."""
        if PANIC.encode() in self.console.read_bytes():
            raise self.failure("has crashed")
        return (self.dir / "ready").exists()


def read_last_lines(path: Path, count: int = 12) -> str:
    """Return the end of a log, indented."""
    text = path.read_text(errors="replace") if path.is_file() else ""
    text, panic, rest = text.partition(PANIC)  # the kernel's stack follows
    text += panic + rest.partition("\n")[0]
    lines = [line for line in text.splitlines() if line.strip()][-count:]
    return "\n".join(f"    {line}" for line in lines) or "    (nothing)"


def prepare_folders(cluster_dir: Path, names: Sequence[str], shares: Mapping[Path, str]) -> None:
    """Create the guests' folders with the console, the list of shared folders and mount types, and
    the scripts."""
    for script in (resources.files(__package__) / "guest_files").iterdir():
        copy = cluster_dir / "guests" / script.name
        copy.write_bytes(script.read_bytes())
        copy.chmod(0o755)
    for name in names:
        at = cluster_dir / "guests" / name
        (at / "requests").mkdir(parents=True)
        (at / "shares").write_text("".join(f"{how} {folder}\n" for folder, how in shares.items()))
        os.mkfifo(at / "console", 0o600)
