"""The processes of a throwaway cluster's daemons: identifies, ends and finds them.

A process is identified by its id, its start time and the machine's boot: an id that now belongs to
another process is never signaled."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from steelyard.wrappers.base.process_folder import read_start_ticks


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
