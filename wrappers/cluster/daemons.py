"""Records the processes that a throwaway cluster has started in its folder, so that `down` finds
them.

A process is identified by its id, its start time and the machine's boot: an id that now belongs to
another process is never signaled."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from steelyard.wrappers.base.process_folder import read_start_ticks
from steelyard.wrappers.cluster.config import Network

FORMAT, VERSION = "steelyard-cluster", 1


@dataclass(frozen=True)
class Daemon:
    """One process that we started."""

    name: str  # munged, mariadbd, slurmdbd, slurmctld, slurmd.n1 …
    pid: int
    start_ticks: int  # /proc/PID/stat field 22

    def is_alive(self) -> bool:
        """Return whether exactly this process runs; a zombie does not."""
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, os.WNOHANG)  # reaps our own child, so that it is no zombie
        return read_start_ticks(self.pid) == self.start_ticks


@dataclass
class State:
    """The content of cluster.json."""

    dir: Path
    boot_id: str
    slurm_version: str
    nodes: list[str]
    plugin: bool
    ready: bool = False  # every node has been idle once
    daemons: list[Daemon] = field(default_factory=list)
    network: Network | None = None  # of a cluster with guests
    guests: list[str] = field(default_factory=list)

    def save(self) -> None:
        """Write cluster.json atomically."""
        document = {"format": FORMAT, "version": VERSION, **asdict(self)}
        temporary = self.dir / ".cluster.json.new"
        temporary.write_text(json.dumps(document, indent=1, default=str) + "\n")
        temporary.replace(self.dir / "cluster.json")

    def list_running(self) -> list[Daemon]:
        """Return the daemons that still run."""
        if self.boot_id != read_boot_id():
            return []
        return [daemon for daemon in self.daemons if daemon.is_alive()]


def load_state(folder: Path) -> State | None:
    """Return the state of the cluster in `folder`; None without one, or if its format is
    unknown."""
    try:
        document = json.loads((folder / "cluster.json").read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None
    if document.pop("format", None) != FORMAT or document.pop("version", None) != VERSION:
        return None
    daemons = [Daemon(**daemon) for daemon in document.pop("daemons")]
    network = Network(**document["network"]) if document.get("network") else None
    return State(**{**document, "dir": folder, "daemons": daemons, "network": network})


def read_boot_id() -> str:
    """Return an id that changes with every boot."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def end_daemons(daemons: list[Daemon], patience_s: float = 5.0) -> list[Daemon]:
    """Send SIGTERM to all, then SIGKILL to those that still run; return those that survive both."""
    for sign, limit_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, 2.0)):
        for daemon in daemons:
            if daemon.is_alive():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(daemon.pid, sign)
        daemons = wait_gone(daemons, limit_s)
        if not daemons:
            break
    return daemons


def wait_gone(daemons: list[Daemon], limit_s: float) -> list[Daemon]:
    """Wait until all have ended; return those that have not within the limit."""
    end = time.monotonic() + limit_s
    alive = [daemon for daemon in daemons if daemon.is_alive()]
    while alive and time.monotonic() < end:
        time.sleep(0.02)
        alive = [daemon for daemon in alive if daemon.is_alive()]
    return alive


# A daemon is a leftover if its starter was killed before recording its id.
OURS = ("slurmstepd", "steelyard-node", "slurmd", "slurmctld", "slurmdbd", "mariadbd", "munged")
# Slurm's extern step starts it; it survives when that step's daemon is killed.
PLACE_KEEPER = b"sleep\x00100000000\x00"


def find_leftovers(slurm_conf: Path) -> list[Daemon]:
    """Return this cluster's step daemons, samplers and daemons, identified by SLURM_CONF in their
    environment."""
    mark = f"SLURM_CONF={slurm_conf}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name = (entry / "comm").read_text().strip()
            if name not in OURS and (entry / "cmdline").read_bytes() != PLACE_KEEPER:
                continue
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # it has ended, or is another user's
            continue
        ticks = read_start_ticks(int(entry.name))
        if mark in environment and ticks is not None:
            found.append(Daemon(name, int(entry.name), ticks))
    return found
