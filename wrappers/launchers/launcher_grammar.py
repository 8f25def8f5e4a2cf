"""Launchers: the containers in which a run's clients are executed (docs/launchers.md).

`parse` implements the grammar, KIND[:NAME][,network=…][,device=NAME][,containers=N][,cpus=N]
[,memory=SIZE][,ranks=each|across], and `Launcher.text` the canonical text.
jobscripts/lib/launcher*.sh starts a launcher; launcher_checks.py has what it needs and who may use
it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from steelyard.jobscripts.parameters import parse_size
from steelyard.wrappers.base.errors import UsageError, did_you_mean

MAX_CONTAINERS = 8
MAX_CPUS = 4096
LEAST_MEMORY = 16 * 2**20  # with less not even a shell starts
NETWORKS = ("host", "bridge", "macvlan", "phys")
OWN_DEVICE = "phys"  # in LXC's terms: the container gets a device of the node for itself
# One MPI program in each container, or one program with ranks in all containers.
PROGRAMS = ("each", "across")
# The kind of name after the colon; None: no name.
NAMED: dict[str, str | None] = {
    "bare": None,
    "unshare": None,
    "docker": "IMAGE",
    "podman": "IMAGE",
    "apptainer": "IMAGE",
    "lxc": "NAME",
    "systemd-nspawn": "ROOT",
}
# An image's name for docker and podman, an LXC container's name, a path.
IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]{0,254}")
LXC_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
DEVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,14}")  # Linux permits 15 characters
FOLDER = re.compile(r"/[^,\x00-\x1f\x7f]{1,4000}")
PATTERNS = {
    "docker": (IMAGE, "an image, such as debian:12"),
    "podman": (IMAGE, "an image, such as debian:12"),
    "apptainer": (FOLDER, "the absolute path of an image (.sif) or of a sandbox folder"),
    "lxc": (LXC_NAME, "the name of a container"),
    "systemd-nspawn": (FOLDER, "the absolute path of a root folder"),
}
UNITS = (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
# Reasons why a kind cannot have a network. With ranks=across Steelyard assigns the addresses.
NO_ADDRESS = "nothing would give the container an address"
NOT_THE_ENGINES = "its engine cannot move a device of the node into a container"
NO_NETWORK = {
    ("unshare", "macvlan"): NO_ADDRESS,
    ("systemd-nspawn", "macvlan"): NO_ADDRESS,
    ("unshare", OWN_DEVICE): NO_ADDRESS,
    ("systemd-nspawn", OWN_DEVICE): NO_ADDRESS,
    ("apptainer", OWN_DEVICE): NO_ADDRESS,
    ("docker", OWN_DEVICE): NOT_THE_ENGINES,
    ("podman", OWN_DEVICE): NOT_THE_ENGINES,
}


@dataclass(frozen=True)
class Launcher:
    """A checked launcher; `cpus` and `memory_bytes` limit one container, None is no limit."""

    kind: str = "bare"
    name: str = ""
    network: str = "host"
    device: str = ""  # a node's device for the container alone
    containers: int = 1  # in parallel on each node
    cpus: int | None = None
    memory_bytes: int | None = None
    across: bool = False  # one MPI program uses all containers of the job

    @property
    def clients_per_node(self) -> int:
        """The number of programs that run in parallel on a node."""
        return 1 if self.across else self.containers

    @property
    def is_bare(self) -> bool:
        """Whether the run has no container."""
        return self.kind == "bare"

    @property
    def has_our_programs(self) -> bool:
        """Whether the node's own files are visible inside."""
        return self.kind in ("bare", "unshare")

    @property
    def text(self) -> str:
        """The canonical text: options in a fixed order, without defaults."""
        parts = [self.kind + (f":{self.name}" if self.name else "")]
        if self.network != "host":
            parts.append(f"network={self.network}")
        if self.device:
            parts.append(f"device={self.device}")
        if self.containers != 1:
            parts.append(f"containers={self.containers}")
        if self.cpus is not None:
            parts.append(f"cpus={self.cpus}")
        if self.memory_bytes is not None:
            parts.append(f"memory={format_size(self.memory_bytes)}")
        if self.across:
            parts.append("ranks=across")
        return ",".join(parts)


BARE = Launcher()


def format_size(size_bytes: int) -> str:
    """Return, for example, `2GiB`: the largest unit with a whole number; bytes without a unit."""
    for unit, step in UNITS:
        if size_bytes % step == 0:
            return f"{size_bytes // step}{unit}"
    return str(size_bytes)


def parse(text: str) -> Launcher:
    """Parse a launcher. Raises UsageError, which names the invalid part and what is allowed."""
    head, *options = text.split(",")
    kind, colon, name = head.partition(":")
    if kind not in NAMED:
        listed = ", ".join(kind + (f":{what}" if what else "") for kind, what in NAMED.items())
        raise UsageError(f"'{kind}' is no launcher: known: {listed}{did_you_mean(kind, NAMED)}")
    check_name(kind, bool(colon), name)
    given = read_options(options)
    if kind == "bare" and given:
        raise UsageError("bare takes no options: nothing is around the run that could be limited")
    found = Launcher(
        kind,
        name,
        network=given.get("network", "host"),
        device=given.get("device", ""),
        containers=parse_count("containers", given.get("containers", "1"), MAX_CONTAINERS),
        cpus=parse_count("cpus", given["cpus"], MAX_CPUS) if "cpus" in given else None,
        memory_bytes=parse_memory(given["memory"]) if "memory" in given else None,
        across=is_across(given.get("ranks", PROGRAMS[0])),
    )
    check_network(found)
    check_device(found, "device" in given)
    return found


def check_name(kind: str, has_colon: bool, name: str) -> None:
    """Raise UsageError if the name after the colon is not what the kind needs."""
    wanted = NAMED[kind]
    if wanted is None:
        if has_colon:
            raise UsageError(f"{kind}:{name}: {kind} takes no name")
        return
    pattern, allowed = PATTERNS[kind]
    if kind == "apptainer" and "://" in name:
        raise UsageError(
            f"{kind}:{name}: it would be fetched in every run: say `apptainer pull /PATH.sif "
            f"{name}` once, and name that file"
        )
    if not pattern.fullmatch(name) or ".." in name.split("/"):
        raise UsageError(f"{kind}:{name}: expected {kind}:{wanted}, {allowed}")


def read_options(options: Iterable[str]) -> dict[str, str]:
    """Parse options KEY=VALUE. Raises UsageError for an unknown or repeated key."""
    known = ("network", "device", "containers", "cpus", "memory", "ranks")
    given: dict[str, str] = {}
    for option in options:
        key, equals, value = option.partition("=")
        if key not in known or not equals:
            raise UsageError(
                f"'{option}' is no option of a launcher: known: network={'|'.join(NETWORKS)}, "
                f"device=NAME, containers=N, cpus=N, memory=SIZE, ranks={'|'.join(PROGRAMS)}"
                f"{did_you_mean(key, known)}"
            )
        if key in given:
            raise UsageError(f"{option}: {key} is given twice")
        given[key] = value
    return given


def parse_count(key: str, text: str, most: int) -> int:
    """Parse a whole number from 1 to `most`."""
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= most):
        raise UsageError(f"{key}={text}: allowed is a whole number from 1 to {most}")
    return int(text)


def parse_memory(text: str) -> int:
    """Parse a size and return its bytes."""
    size = parse_size(text)
    if size is None or not LEAST_MEMORY <= size < 2**63:
        raise UsageError(
            f"memory={text}: allowed is a size such as 2GiB or 500MB, at least "
            f"{format_size(LEAST_MEMORY)}"
        )
    return size


def is_across(text: str) -> bool:
    """Return whether one program uses all containers."""
    if text not in PROGRAMS:
        raise UsageError(f"ranks={text}: allowed is {' or '.join(PROGRAMS)}")
    return text == "across"


def check_network(found: Launcher) -> None:
    """Raise UsageError for a network that the kind cannot have."""
    if found.network not in NETWORKS:
        raise UsageError(f"network={found.network}: allowed is {', '.join(NETWORKS)}")
    why = None if found.across else NO_NETWORK.get((found.kind, found.network))
    if why is not None:
        raise UsageError(
            f"{found.kind} has no network={found.network}: {why} (with ranks=across Steelyard does)"
        )


def check_device(found: Launcher, is_named: bool) -> None:
    """Raise UsageError unless a device is named exactly where one is needed, for one container."""
    if found.network != OWN_DEVICE:
        if is_named:
            raise UsageError(f"device={found.device}: goes with network={OWN_DEVICE} only")
        return
    if found.containers != 1:
        raise UsageError(
            f"containers={found.containers}: a device can be in one container only: leave it out, or "
            "take network=macvlan, which gives each a device on that of the node"
        )
    if found.kind == "lxc" and not found.across:
        if is_named:
            raise UsageError(
                f"device={found.device}: the configuration of {found.name} names it "
                "(lxc.net.0.link): leave it out, or add ranks=across"
            )
    elif not is_named:
        raise UsageError(f"network={OWN_DEVICE} needs device=NAME, a device of the node")
    elif not DEVICE.fullmatch(found.device) or found.device == "lo":
        raise UsageError(
            f"device={found.device}: expected the name of a network device of the node, such as "
            "eth1, at most 15 letters"
        )


def condition_conflict(launcher: Launcher, condition: str) -> str | None:
    """Return why a network condition cannot apply to the launcher's containers; None if nothing
    here prevents it."""
    if condition == "none" or launcher.network != OWN_DEVICE:
        return None
    return (
        f"network conditions shape the devices of the node, and with network={OWN_DEVICE} the "
        "container's is none of them: leave the condition out, or take network=macvlan or bridge"
    )


def launcher_of_levels(condition: Mapping[str, object]) -> Launcher:
    """Return the launcher of a condition's factor `launcher`; without it, bare."""
    return parse(str(condition["launcher"])) if "launcher" in condition else BARE


def launcher_variables(launcher: Launcher, condition: str = "none") -> dict[str, str]:
    """Return the variables of run.sh (head of jobscripts/lib/launcher.sh) for the launcher and the
    network condition of its containers; none when bare."""
    if launcher.is_bare:
        return {}
    values = {
        "SY_LAUNCHER": launcher.text,
        "SY_LAUNCHER_KIND": launcher.kind,
        "SY_LAUNCHER_IMAGE": launcher.name,
        "SY_LAUNCHER_NETWORK": launcher.network,
        "SY_LAUNCHER_CONTAINERS": str(launcher.clients_per_node),
    }
    if launcher.network != "host" and condition != "none":
        values["SY_NETWORK_CONDITION"] = condition
    if launcher.device:
        values["SY_LAUNCHER_DEVICE"] = launcher.device
    if launcher.across:
        values["SY_LAUNCHER_ACROSS"] = str(launcher.containers)
    if launcher.cpus is not None:
        values["SY_LAUNCHER_CPUS"] = str(launcher.cpus)
    if launcher.memory_bytes is not None:
        values["SY_LAUNCHER_MEMORY_BYTES"] = str(launcher.memory_bytes)
    return values
