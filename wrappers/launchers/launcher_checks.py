"""What a launcher needs of a machine, and who may use it, checked before submission.

`refusal_reason` has what only root may do on any machine; `find_missing` checks this machine, where
`try_container` starts a container that does nothing: only this shows what the machine's
configuration refuses. All return one sentence that says what to do, or None."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

from steelyard.wrappers.base import programs
from steelyard.wrappers.base.errors import ConditionError, MissingError
from steelyard.wrappers.launchers import image_build
from steelyard.wrappers.launchers.launcher_grammar import OWN_DEVICE, Launcher

TIMEOUT_S = 60  # a container is started, perhaps on a busy machine
# Programs of each kind, and where to get them.
PROGRAMS: dict[str, tuple[tuple[str, str], ...]] = {
    "bare": (),
    "docker": (("docker", "apt install docker.io"),),
    "podman": (("podman", "apt install podman"),),
    "apptainer": (
        ("apptainer", "https://apptainer.org/docs/admin/main/installation.html; not in Debian 12"),
        ("taskset", "apt install util-linux"),
    ),
    "lxc": (("lxc-execute", "apt install lxc"), ("taskset", "apt install util-linux")),
    "systemd-nspawn": (
        ("systemd-nspawn", "apt install systemd-container"),
        ("taskset", "apt install util-linux"),
    ),
    "unshare": (
        ("unshare", "apt install util-linux"),
        ("taskset", "apt install util-linux"),
    ),
}
NETWORK_PROGRAMS = (("ip", "apt install iproute2"), ("nsenter", "apt install util-linux"))
DEVICES = Path("/sys/class/net")
VETH = ("unshare", "systemd-nspawn")  # kinds whose network Steelyard creates


def refusal_reason(launcher: Launcher, user_id: int) -> str | None:
    """Return why an ordinary user may not use the launcher; None for root, or if nothing prevents
    it."""
    if user_id == 0:
        return None
    kind, text = launcher.kind, launcher.text
    instead = "use unshare, podman or apptainer, or ask root to submit"
    if kind in ("lxc", "systemd-nspawn"):
        return f"{text}: only root starts containers of {kind}: {instead}"
    if launcher.network == OWN_DEVICE:
        return f"{text}: only root moves a device of the node into a container: ask root to submit"
    if launcher.network == "macvlan" and kind == "podman":
        return f"{text}: only root's podman can make a macvlan device: leave network= out"
    if launcher.across and launcher.network != "host" and kind == "unshare":
        return (
            f"{text}: only root can give its containers a network between them: leave network= out"
        )
    if launcher.network != "host" and kind == "apptainer":
        return f"{text}: only root's apptainer makes networks: leave network= out"
    if launcher.memory_bytes is not None and kind == "unshare":
        return (
            f"{text}: only root can limit the memory of all processes together (a cgroup): "
            "leave memory= out, or use podman"
        )
    return None


def find_missing(launcher: Launcher) -> str | None:
    """Return what this machine misses for the launcher, or None."""
    wanted = [*PROGRAMS[launcher.kind]]
    if launcher.network != "host" and (launcher.kind in VETH or launcher.across):
        wanted += NETWORK_PROGRAMS
    for program, remedy in wanted:
        if shutil.which(program) is None:
            return f"{launcher.text}: {program} is not on this machine ({remedy})"
    if launcher.cpus is not None and launcher.cpus > len(os.sched_getaffinity(0)):
        return (
            f"{launcher.text}: cpus={launcher.cpus}, and this machine lets us use "
            f"{len(os.sched_getaffinity(0))}"
        )
    if launcher.device and not (DEVICES / launcher.device).exists():
        return (
            f"{launcher.text}: this machine has no network device {launcher.device}, or it is in a "
            "container just now (`ip link` lists them)"
        )
    look = LOOKS.get(launcher.kind)
    return None if look is None else look(launcher)


def check_engine(launcher: Launcher) -> str | None:
    """Return why docker or podman cannot run the image here: no permission, no image, no network;
    or None."""
    program, image = launcher.kind, launcher.name
    error = error_line(program, "version")
    if error is not None and "permission denied" in error.lower():
        return (
            f"{launcher.text}: {error}: ask the administrator to put you into the group docker "
            "(its members can become root), or use podman"
        )
    if error is not None:
        return f"{launcher.text}: {program} does not answer: {error}"
    if error_line(program, "image", "inspect", image) is not None:
        return (
            f"{launcher.text}: the image {image} is not on this machine: say "
            f"`{program} pull {image}` (runs never fetch one: it might be another tomorrow), or "
            f"make one with Open MPI: `{image_build.format_command(f'{program}:{image}')}`"
        )
    if launcher.network == "macvlan" and not list_networks(program):
        return (
            f"{launcher.text}: {program} has no network of the driver macvlan here: say "
            f"`{program} network create --driver=macvlan --subnet=NETWORK --opt=parent=DEVICE "
            "steelyard`"
        )
    if program == "podman" and os.geteuid() != 0:
        controllers = run_quickly(program, "info", "--format={{.Host.CgroupControllers}}")
        error = check_rootless_memory(launcher, controllers.stdout.strip())
        if error is not None and controllers.returncode == 0:
            return error
    network = list_networks(program)[0] if launcher.network == "macvlan" else launcher.network
    return try_container(launcher, network, error_line)


def list_networks(program: str) -> list[str]:
    """Return the names of the engine's macvlan networks."""
    done = run_quickly(program, "network", "ls", "--filter=driver=macvlan", "--format={{.Name}}")
    return done.stdout.split()


def check_image_file(launcher: Launcher) -> str | None:
    """Return what prevents apptainer or systemd-nspawn, whose image must be a file or a folder; or
    None."""
    path = Path(launcher.name)
    if launcher.kind == "apptainer" and not path.exists():
        return (
            f"{launcher.text}: {path} is not there: say `apptainer pull {path} docker://debian:12`, "
            f"or make a sandbox folder with Open MPI: `{image_build.format_command(f'apptainer:{path}')}`"
        )
    if launcher.kind == "systemd-nspawn" and not (path / "usr").is_dir():
        return (
            f"{launcher.text}: {path} is no root folder (it has no usr): say "
            f"`{image_build.format_command(f'systemd-nspawn:{path}')}`"
        )
    problem = check_own_cgroup(launcher)
    if problem is None and launcher.kind == "apptainer":
        return try_container(launcher, launcher.network, error_line)
    return problem


def check_lxc_container(launcher: Launcher) -> str | None:
    """Return what prevents LXC, such as a missing container; or None."""
    error = error_line("lxc-info", "--name", launcher.name, "--state")
    if error is not None:
        return (
            f"{launcher.text}: LXC has no container {launcher.name}: say "
            f"`{image_build.format_command(f'lxc:{launcher.name}')}`"
        )
    return check_lxc_network(launcher)


def check_lxc_network(launcher: Launcher) -> str | None:
    """Return the conflict with the container's configuration, which defines a network other than
    the node's; or None."""
    if launcher.network == "host" or launcher.across:  # host needs none, and across gets ours
        return None
    want = {"bridge": "veth"}.get(launcher.network, launcher.network)
    found = run_quickly(
        "lxc-info", f"--name={launcher.name}", "--config=lxc.net.0.type", "--no-humanize"
    )
    if found.stdout.strip() == want:
        return None
    return (
        f"{launcher.text}: the configuration of {launcher.name} has lxc.net.0.type = "
        f"{found.stdout.strip() or '(nothing)'}: say there lxc.net.0.type = {want}, "
        "lxc.net.0.link, lxc.net.0.flags = up and an address"
    )


def check_user_namespace(launcher: Launcher) -> str | None:
    """Return why an ordinary user cannot have namespaces on this machine, or None."""
    if os.geteuid() == 0:
        return check_own_cgroup(launcher)
    error = error_line("unshare", "--user", "--map-current-user", "true")
    if error is None:
        return None
    return (
        f"{launcher.text}: users may not make namespaces on this machine ({error}): ask the "
        "administrator for sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone"
    )


LOOKS = {
    "docker": check_engine,
    "podman": check_engine,
    "apptainer": check_image_file,
    "systemd-nspawn": check_image_file,
    "lxc": check_lxc_container,
    "unshare": check_user_namespace,
}


def error_line(*argv: str) -> str | None:
    """Return the last line that a failing program prints; None if it succeeds."""
    done = run_quickly(*argv)
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"{argv[0]} ended with {done.returncode}"


def run_quickly(*argv: str) -> subprocess.CompletedProcess[str]:
    """Run a program that only reports. One that cannot be run, or hangs, counts as failed."""
    try:
        return programs.run_quietly(argv, TIMEOUT_S)
    except OSError as error:
        return subprocess.CompletedProcess(argv, 127, "", f"{argv[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"no answer in {TIMEOUT_S} s")


def check_user(launchers: Iterable[Launcher]) -> None:
    """Raise ConditionError for what only root may use."""
    for launcher in launchers:
        why = refusal_reason(launcher, os.geteuid())
        if why is not None:
            raise ConditionError(why)


def list_missing(launchers: Iterable[Launcher]) -> list[str]:
    """Return one sentence for each launcher that could not start here."""
    return [why for launcher in launchers if (why := find_missing(launcher)) is not None]


def check_on_this_machine(launcher: Launcher) -> None:
    """Raise ConditionError or MissingError for a launcher that cannot run here."""
    check_user([launcher])
    why = find_missing(launcher)
    if why is not None:
        raise MissingError(why)


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
