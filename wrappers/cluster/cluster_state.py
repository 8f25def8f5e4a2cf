"""The state of a throwaway cluster in its folder (cluster.json), so that `down` finds its processes."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path

from steelyard.wrappers.cluster.cluster_config import Network
from steelyard.wrappers.cluster.daemon_processes import Daemon

FORMAT, VERSION = "steelyard-cluster", 1


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
