"""A container that does nothing, started before anything is submitted: only that shows what a
machine's configuration refuses. Asked by launcher_checks.py; answers are one sentence, or None.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from steelyard.wrappers.launchers.launcher import OWN_DEVICE, Launcher

Complaint = Callable[..., str | None]
# What stands in an engine's complaint, and what to do about it.
REMEDIES = (
    (
        "hybrid mode not supported",
        (
            'put runtime = "runc" under [engine] of ~/.config/containers/containers.conf '
            "(apt install runc)"
        ),
    ),
    (
        "rlimit",  # crun says setrlimit, runc "setting rlimit"
        (
            'put default_ulimits = ["nproc=1000:1000", "nofile=1000:1000"] under [containers] of '
            "~/.config/containers/containers.conf (of root: /etc/containers/containers.conf)"
        ),
    ),
    (
        "subuid",
        (
            "ask the administrator: apt install uidmap; usermod --add-subuids 100000-165535 "
            "--add-subgids 100000-165535 and your name"
        ),
    ),
    ("/dev/net/tun", "users need /dev/net/tun for it (chmod 666, as udev has it): or network=host"),
    ("slirp4netns", "apt install slirp4netns, or network=host"),
    ("/dev/fuse", "name a sandbox folder (apptainer build --sandbox), or open /dev/fuse to users"),
    ("iptables", "apt install iptables, or network=host"),
    ("systemd", "memory= needs systemd and cgroup v2 there: leave it out, or use podman"),
    ("executable file not found", "the image needs bash 5 or newer, coreutils and grep"),
)


def try_container(launcher: Launcher, network: str, complaint: Complaint) -> str | None:
    """Start a container with this network; None when it started and ended well."""
    network = "none" if network == OWN_DEVICE else network  # which it is given from outside
    make = try_apptainer if launcher.kind == "apptainer" else try_engine
    argv = make(launcher, network)
    said = complaint(*argv)
    if said is None:
        return None
    remedy = next((words for part, words in REMEDIES if part in said), "mend that, or use unshare")
    return f"{launcher.text}: no container can be started here: {said}: {remedy}"


def try_engine(launcher: Launcher, network: str) -> list[str]:
    """docker and podman, as sy_launcher_engine of jobscripts/ calls them."""
    argv = [launcher.kind]
    if launcher.kind == "podman" and not Path("/run/systemd/system").is_dir():
        argv.append("--cgroup-manager=cgroupfs")
    argv += ["run", "--rm", "--pull=never", f"--network={network}"]
    argv.append(f"--user={os.geteuid()}:{os.getegid()}")
    if launcher.kind == "podman" and os.geteuid() != 0:
        argv.append("--userns=keep-id")
    return [*argv, "--entrypoint=bash", launcher.name, "-c", ":"]


def try_apptainer(launcher: Launcher, network: str) -> list[str]:
    """As sy_launcher_apptainer of jobscripts/ calls it."""
    argv = ["apptainer", "exec", "--pid", "--ipc", "--no-home"]
    if network != "host":
        argv += ["--net", "--network", network]
    if os.geteuid() != 0 and launcher.memory_bytes is not None:
        argv += ["--memory", str(launcher.memory_bytes)]
    if os.geteuid() == 0 and not has_sys_resource():
        argv += ["--drop-caps", "CAP_SYS_RESOURCE"]
    return [*argv, launcher.name, "bash", "-c", ":"]


def has_sys_resource() -> bool:
    """Root in a container often has not this capability (24), which apptainer asks for."""
    found = re.search(
        r"^CapPrm:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.MULTILINE
    )
    return found is None or bool(int(found[1], 16) >> 24 & 1)


def check_rootless_memory(launcher: Launcher, controllers: str) -> str | None:
    """Podman without root: with cgroup v1 it says "ignored" and goes on, so it is for us to say."""
    if launcher.memory_bytes is None or "memory" in re.findall(r"\w+", controllers):
        return None
    return (
        f"{launcher.text}: podman without root cannot limit memory here (controllers it was "
        f"given: {controllers or '[]'}): leave memory= out, or ask the administrator for cgroup v2 "
        "with memory delegated to users"
    )


def check_own_cgroup(launcher: Launcher) -> str | None:
    """Root's memory= of unshare, systemd-nspawn and apptainer is a cgroup that the run makes."""
    if launcher.memory_bytes is None or os.geteuid() != 0:
        return None
    version_2 = Path("/sys/fs/cgroup/cgroup.controllers")
    if Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists() or (
        version_2.exists() and "memory" in version_2.read_text().split()
    ):
        return None
    return (
        f"{launcher.text}: this machine has no memory cgroups at /sys/fs/cgroup: mount them, or "
        "leave memory= out"
    )
