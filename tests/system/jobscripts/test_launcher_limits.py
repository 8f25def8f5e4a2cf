"""Limits of containers as the kernel holds them, oversubscription, macvlan, rootless podman."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.unit.somebody import open_way
from tests.waiting import wait_for

from steelyard.jobscripts import registry
from steelyard.wrappers.launchers import launcher_checks as launcher_trials
from steelyard.wrappers.launchers import launcher_grammar

from .launcher_lab import (
    CONF,
    OWN,
    containers,
    groups_of_ended_runs,
    needs_root,
    out,
    processes,
    tags,
    told,
)

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

CGROUPS = Path("/sys/fs/cgroup")
MIB_64 = 64 * 2**20


def limit_bytes(pid: str) -> int:
    """What the kernel holds for a process' own memory cgroup, v1 or v2."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if "memory" in names.split(","):
            return int((CGROUPS / "memory" / path[1:] / "memory.limit_in_bytes").read_text())
    path = Path(f"/proc/{pid}/cgroup").read_text().strip().removeprefix("0::")
    return int((CGROUPS / path[1:] / "memory.max").read_text())


@needs_root
def test_eight_containers_a_node_have_the_limits_that_were_asked_for(
    study: Study,
    launcher: str,
) -> None:
    """Looked at from outside, in the kernel's own files, while all eight run."""
    study.body(': >"$SY_STUDY_DIR/here.$SY_CLIENT"; sleep 61.04' + OWN, 8)
    with study.start(**told(f"{launcher},containers=8,cpus=1,memory=64MiB")) as child:
        wait_for("all eight run", lambda: len(processes("61.04" + OWN)) == 8)
        pids = processes("61.04" + OWN)
        assert {limit_bytes(pid) for pid in pids} == {MIB_64}
        have = os.sched_getaffinity(0)
        given = [os.sched_getaffinity(int(pid)) for pid in pids]
        assert all(len(one) == 1 for one in given)
        assert set().union(*given) == set(sorted(have)[:8])
        child.terminate()
        assert child.wait(timeout=60) == 143
    for client in range(8):
        assert int(tags(study, client)["launcher_memory_bytes"]) == MIB_64
    assert containers(study) == []
    # Concurrent runs that were killed leave theirs for a moment.
    wait_for("no group is left", lambda: not groups_of_ended_runs())


@pytest.mark.parametrize(
    ("seen", "given", "said"),
    [("0-2", "0,2,1", ""), ("0-1", "0", "its processors should be 0 on n1 and are 0-1")],
)
def test_processors_that_are_not_in_force_are_no_run(
    tmp_path: Path, seen: str, given: str, said: str
) -> None:
    library = tmp_path / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    done = subprocess.run(
        [
            "bash",
            "-c",
            '. "$1"; sy_tag() { :; }; sy_launcher_check_limits "$2"',
            "-",
            library,
            seen,
        ],
        env={
            "PATH": os.environ["PATH"],
            "SY_LAUNCHER_CPUSET": given,
            "SY_THIS_NODE": "n1",
            **launcher_grammar.launcher_variables(launcher_grammar.parse("unshare,cpus=1")),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )
    assert done.returncode == (4 if said else 0)
    assert said in done.stderr


# Signals that wait, of all processes of a user together, stand far above the processors there.
QUEUE = """
import signal
some = signal.SIGRTMIN + 5
signal.pthread_sigmask(signal.SIG_BLOCK, [some])
print("ready", flush=True)
while True:
    for _ in range(120):
        signal.raise_signal(some)
    for _ in range(120):
        signal.sigwait([some])
"""


def test_processors_are_read_while_other_lines_grow(tmp_path: Path) -> None:
    library = tmp_path / "steelyard.sh"
    library.write_text(registry.library(), encoding="utf-8")
    script = '. "$1"; for ((i = 0; i < 300; i++)); do sy_launcher_allowed_processors; echo; done'
    with subprocess.Popen([sys.executable, "-c", QUEUE], stdout=subprocess.PIPE) as queue:
        try:
            assert queue.stdout is not None and queue.stdout.readline() == b"ready\n"
            words = ["bash", "-c", script, "-", str(library)]
            done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=90)
        finally:
            queue.kill()
    found = done.stdout.split("\n")[:-1]
    assert len(found) == 300
    assert len(set(found)) == 1 and found[0]


@needs_root
def test_memory_that_is_not_limited_is_no_run(study: Study, image: str) -> None:
    """Somebody takes the limit away between the container's start and its first word."""
    study.body("true")
    folder = study.folder / "bin"
    folder.mkdir()
    real = shutil.which("docker")
    (folder / "docker").write_text(
        f"#!/bin/bash\n[[ $1 != inspect ]] || {real} update --memory=128m --memory-swap=128m "
        f'"${{@: -1}}" >/dev/null\nexec {real} "$@"\n'
    )
    (folder / "docker").chmod(0o755)
    path = f"{folder}:{os.environ['PATH']}"
    assert study.run(PATH=path, **told(f"{image},memory=64MiB")).returncode == 1
    assert f"should be limited to {MIB_64} bytes" in study.result()["reason"]
    assert f"limited to {2 * MIB_64}" in study.result()["reason"]


# --- macvlan ---


@pytest.fixture
def parent() -> Iterator[str]:
    """One end of a veth pair; the other has the address 10.214.9.1."""
    name = f"sy{os.getpid()}"
    words = ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}p"]
    if os.geteuid() != 0 or subprocess.run(words, check=False, capture_output=True).returncode:
        pytest.skip("no veth pair can be made: that needs root and a kernel with veth")
    probe = ["ip", "link", "add", f"{name}m", "link", name, "type", "macvlan", "mode", "bridge"]
    made = subprocess.run(probe, check=False, capture_output=True).returncode == 0
    for argv in (["delete", f"{name}m"], ["set", name, "up"], ["set", f"{name}p", "up"]):
        subprocess.run(["ip", "link", *argv], check=False, capture_output=True)
    subprocess.run(["ip", "address", "add", "10.214.9.1/24", "dev", f"{name}p"], check=True)
    if made:
        yield name
    subprocess.run(["ip", "link", "delete", name], check=True)
    if not made:
        pytest.skip("this kernel has no macvlan")


REACH = 'exec 3<>/dev/tcp/10.214.9.1/9; cat /proc/net/dev; echo "$?"'


def reached(study: Study) -> bool:
    """The other end of the veth refused us: it was there, over eth0 alone."""
    said = study.errors()
    return "Connection refused" in said and any("eth0:" in line for line in out(study))


@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_a_macvlan_network_of_the_engines(
    study: Study,
    parent: str,
    image: str,
    engine: str,
    image_tar: Path,
    tmp_path: Path,
) -> None:
    if shutil.which(engine) is None:
        pytest.skip(f"{engine} is not on this machine: apt install {engine}")
    name = f"localhost/steelyard-macvlan-{os.getpid()}:1"
    conf = tmp_path / "containers.conf"
    conf.write_text(CONF + 'runtime = "runc"\n')
    environment = {**os.environ, "CONTAINERS_CONF": str(conf)}

    def run(*words: str) -> None:
        subprocess.run([engine, *words], env=environment, check=True, timeout=60)

    run("import", str(image_tar), name)
    words = ("--driver=macvlan", "--subnet=10.214.9.0/24", "--ip-range=10.214.9.128/25")
    run("network", "create", *words, f"--opt=parent={parent}", f"sy{os.getpid()}")
    try:
        study.body(REACH)
        level = told(f"{engine}:{name},network=macvlan")
        assert study.run(CONTAINERS_CONF=str(conf), **level).returncode == 0
        assert reached(study)
    finally:
        run("network", "rm", f"sy{os.getpid()}")
        run("rmi", "--force", name)


def test_lxcs_macvlan_is_what_its_configuration_says(study: Study, parent: str, lxc: str) -> None:
    base = subprocess.run(["lxc-config", "lxc.lxcpath"], capture_output=True, text=True, check=True)
    config = Path(base.stdout.strip()) / lxc.partition(":")[2] / "config"
    before = config.read_text()
    study.body(REACH)
    assert study.run(**told(f"{lxc},network=macvlan")).returncode == 1
    assert "has lxc.net.0.type = (nothing): say there" in study.result()["reason"]
    keys = {"type": "macvlan", "link": parent, "flags": "up", "ipv4.address": "10.214.9.7/24"}
    config.write_text(before + "".join(f"lxc.net.0.{k} = {v}\n" for k, v in keys.items()))
    try:
        assert study.run(**told(f"{lxc},network=macvlan")).returncode == 0
        text = (study.attempt("local.2") / "err.0").read_text()
        assert "Connection refused" in text
    finally:
        config.write_text(before)


# --- podman without root ---


@pytest.fixture
def ordinary_user() -> Iterator[pwd.struct_passwd]:
    """Ourselves; when we are root, a user made for this test, with subordinate ids."""
    if shutil.which("podman") is None or shutil.which("newuidmap") is None:
        pytest.skip("podman without root is not on this machine: apt install podman uidmap")
    if os.geteuid() != 0:
        yield pwd.getpwuid(os.geteuid())
        return
    name = f"sytest{os.getpid()}"
    words = ["useradd", "--create-home", "--shell=/bin/sh", name]
    made = subprocess.run(words, check=False, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"useradd cannot make a user on this machine: {made.stderr.strip()}")
    user = pwd.getpwnam(name)
    try:
        yield user
    finally:
        # Podman's pause process outlives it; nobody else has this user.
        subprocess.run(["pkill", "-KILL", "-U", str(user.pw_uid)], check=False)
        subprocess.run(["userdel", "--remove", "--force", name], check=True, capture_output=True)


class Rootless:
    """Podman, and runs, as an ordinary user."""

    def __init__(self, user: pwd.struct_passwd, folder: Path) -> None:
        self.user, self.folder = user, folder
        (folder / "run").mkdir(mode=0o700)
        conf = CONF + ('runtime = "runc"\n' if shutil.which("runc") else "")
        (folder / "containers.conf").write_text(conf)
        self.environment = {
            "HOME": user.pw_dir,
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "CONTAINERS_CONF": str(folder / "containers.conf"),
        }
        self.own(folder)

    def own(self, *folders: Path) -> None:
        """What the user writes to is theirs, and the way there is open."""
        for folder in folders if os.geteuid() == 0 else ():
            for path in (folder, *folder.rglob("*")):
                os.chown(path, self.user.pw_uid, self.user.pw_gid)
            open_way(folder)

    def run(self, *argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """A command as them, away from folders that they cannot enter."""
        become = ["setpriv", f"--reuid={self.user.pw_uid}", f"--regid={self.user.pw_gid}"]
        return subprocess.run(
            [*([*become, "--clear-groups"] if os.geteuid() == 0 else []), *argv],
            env={**os.environ, **self.environment, **environment},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=90,
        )


@pytest.fixture
def rootless(
    tmp_path: Path, image_tar: Path, ordinary_user: pwd.struct_passwd
) -> Iterator[tuple[Rootless, str]]:
    """With an image."""
    folder = tmp_path / "user"
    folder.mkdir()
    it = Rootless(ordinary_user, folder)
    tar = folder / "image.tar"
    shutil.copyfile(image_tar, tar)
    it.own(folder)
    name = f"localhost/steelyard-rootless:unit-{os.getpid()}"
    words = ("podman", "run", "--rm", "--network=host", "--userns=keep-id", name, "bash", "-c", ":")
    for argv in (("podman", "system", "migrate"), ("podman", "import", str(tar), name), words):
        done = it.run(*argv)
        if done.returncode:
            pytest.skip(f"podman cannot run as an ordinary user here: {done.stderr.strip()[-200:]}")
    yield it, name
    it.run("podman", "rmi", "--force", name)


@pytest.mark.slow
def test_podman_without_root_has_the_processors_and_says_what_it_cannot_limit(
    study: Study, rootless: tuple[Rootless, str]
) -> None:
    it, name = rootless
    study.body("id -u; nproc", 2)
    it.own(study.folder, study.scratch)
    keys = {k: v for k, v in study.environment.items() if k.startswith(("SY_", "STEELYARD_"))}
    level = told(f"podman:{name},containers=2,cpus=1")
    done = it.run(*study.command(), **keys, **level)
    assert done.returncode == 0, done.stderr
    have = sorted(os.sched_getaffinity(0))
    for client in range(2):
        assert out(study, client) == [str(it.user.pw_uid), "1"]
        assert tags(study, client)["launcher_cpus"] == str(have[client % len(have)])
        assert tags(study, client)["launcher_measured"] == "yes"
    controllers = it.run("podman", "info", "--format={{.Host.CgroupControllers}}").stdout
    done = it.run(*study.command(), **keys, **told(f"podman:{name},memory=64MiB"))
    if "memory" in controllers:
        assert tags_of(study, "local.2")["launcher_memory_bytes"] == str(MIB_64)
    else:
        assert done.returncode == 1
        assert "podman without root cannot limit memory" in done.stderr
    left = it.run(
        "podman", "ps", "--all", "--quiet", f"--filter=label=steelyard.study={study.folder}"
    )
    assert left.stdout == ""


def tags_of(study: Study, attempt: str) -> dict[str, str]:
    """Return the tags of another attempt."""
    lines = (study.attempt(attempt) / "tags.0").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize("said", ["setrlimit `RLIMIT_NPROC`", "error setting rlimit type 7"])
def test_whatever_the_runtime_calls_it_limits_have_a_remedy(said: str) -> None:
    found = launcher_trials.try_container(
        launcher_grammar.parse("podman:a"), "host", lambda *_: said
    )
    assert found is not None and "default_ulimits = " in found
