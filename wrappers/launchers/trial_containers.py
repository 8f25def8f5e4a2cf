"""Starts a container that does nothing, before submission: only this shows what a machine's
configuration refuses. launcher_checks.py calls it; results are one sentence, or None."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from steelyard.wrappers.launchers.launcher_grammar import OWN_DEVICE, Launcher

Complaint = Callable[..., str | None]
# Texts in an engine's error message, and what to do about each.
REMEDIES = (
    (
        "hybrid mode not supported",
        (
            'put runtime = "runc" under [engine] of ~/.config/containers/containers.conf '
            "(apt install runc)"
        ),
    ),
    (
        "rlimit",  # crun prints setrlimit, runc "setting rlimit"
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
    """Start a container with this network; return None if it started and ended without an error."""
    network = "none" if network == OWN_DEVICE else network  # it gets its device from outside
    make = try_apptainer if launcher.kind == "apptainer" else try_engine
    argv = make(launcher, network)
    error = complaint(*argv)
    if error is None:
        return None
    remedy = next(
        (advice for symptom, advice in REMEDIES if symptom in error), "mend that, or use unshare"
    )
    return f"{launcher.text}: no container can be started here: {error}: {remedy}"


def try_engine(launcher: Launcher, network: str) -> list[str]:
    """Return the command of docker or podman, as sy_launcher_engine of jobscripts/ calls it."""
    argv = [launcher.kind]
    if launcher.kind == "podman" and not Path("/run/systemd/system").is_dir():
        argv.append("--cgroup-manager=cgroupfs")
    argv += ["run", "--rm", "--pull=never", f"--network={network}"]
    argv.append(f"--user={os.geteuid()}:{os.getegid()}")
    if launcher.kind == "podman" and os.geteuid() != 0:
        argv.append("--userns=keep-id")
    return [*argv, "--entrypoint=bash", launcher.name, "-c", ":"]


def try_apptainer(launcher: Launcher, network: str) -> list[str]:
    """Return the command of apptainer, as sy_launcher_apptainer of jobscripts/ calls it."""
    argv = ["apptainer", "exec", "--pid", "--ipc", "--no-home"]
    if network != "host":
        argv += ["--net", "--network", network]
    if os.geteuid() != 0 and launcher.memory_bytes is not None:
        argv += ["--memory", str(launcher.memory_bytes)]
    if os.geteuid() == 0 and not has_sys_resource():
        argv += ["--drop-caps", "CAP_SYS_RESOURCE"]
    return [*argv, launcher.name, "bash", "-c", ":"]


def has_sys_resource() -> bool:
    """Return whether this process has CAP_SYS_RESOURCE (24), which apptainer requests: root in a
    container often does not."""
    found = re.search(
        r"^CapPrm:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text(), re.MULTILINE
    )
    return found is None or bool(int(found[1], 16) >> 24 & 1)


def check_rootless_memory(launcher: Launcher, controllers: str) -> str | None:
    """Return why podman without root cannot limit memory, or None. With cgroup v1 it only prints
    "ignored" and continues, so the check is here."""
    if launcher.memory_bytes is None or "memory" in re.findall(r"\w+", controllers):
        return None
    return (
        f"{launcher.text}: podman without root cannot limit memory here (controllers it was "
        f"given: {controllers or '[]'}): leave memory= out, or ask the administrator for cgroup v2 "
        "with memory delegated to users"
    )


def check_own_cgroup(launcher: Launcher) -> str | None:
    """Return why root's memory= of unshare, systemd-nspawn or apptainer cannot work, or None: the
    run makes a cgroup for it."""
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
