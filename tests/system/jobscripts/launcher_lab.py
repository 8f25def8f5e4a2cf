"""Launchers for the tests of runs in containers: those that exist here, and their leftovers."""

from __future__ import annotations

import ipaddress
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.processes import each_process

from steelyard.wrappers.launchers import launcher_grammar

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

ROOT = Path(__file__).parents[3]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has this launcher's networks")
DOCKER = f"docker:steelyard-test:unit-{os.getpid()}"
# Podman's containers.conf without systemd.
CONF = """\
[containers]
default_ulimits = ["nproc=1000:1000", "nofile=1000:1000"]
[engine]
cgroup_manager = "cgroupfs"
"""


def docker(*words: str) -> str:
    """Return the stdout of docker."""
    return subprocess.run(
        ["docker", *words], check=True, capture_output=True, text=True, timeout=60
    ).stdout


@pytest.fixture(scope="session")
def image_tar(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an archive with a few programs of this machine."""
    tar = tmp_path_factory.mktemp("image") / "image.tar"
    subprocess.run([ROOT / "tests/make_image.sh", tar, "timeout"], check=True, timeout=60)
    return tar


@pytest.fixture(scope="session")
def image(image_tar: Path) -> Iterator[str]:
    """Load it as an image of docker."""
    if (
        shutil.which("docker") is None
        or subprocess.run(["docker", "version"], capture_output=True, check=False).returncode
    ):
        pytest.skip("docker does not answer on this machine: apt install docker.io, start dockerd")
    name = DOCKER.partition(":")[2]
    docker("import", str(image_tar), name)
    yield DOCKER
    docker("rmi", "--force", name)


@pytest.fixture(scope="session")
def root_folder(image_tar: Path) -> Path:
    """Unpack it into a folder."""
    folder = image_tar.with_name("root")
    folder.mkdir(mode=0o755)
    subprocess.run(["tar", "-C", folder, "-xf", image_tar], check=True, timeout=60)
    (folder / "etc/os-release").write_text("ID=test\n")  # required by systemd-nspawn
    return folder


@pytest.fixture(scope="session")
def nspawn(root_folder: Path) -> str:
    """Return the launcher for systemd-nspawn."""
    if os.geteuid() != 0 or shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn needs root and is in the package systemd-container")
    return f"systemd-nspawn:{root_folder}"


@pytest.fixture(scope="session")
def lxc(root_folder: Path) -> Iterator[str]:
    """Make a container of LXC."""
    if os.geteuid() != 0 or shutil.which("lxc-config") is None:
        pytest.skip("LXC needs root and is in the package lxc")
    base = subprocess.run(["lxc-config", "lxc.lxcpath"], capture_output=True, text=True, check=True)
    folder = Path(base.stdout.strip()) / f"steelyard-test-{os.getpid()}"
    folder.mkdir(parents=True)
    (folder / "config").write_text(
        f"lxc.rootfs.path = dir:{root_folder}\nlxc.mount.auto = proc:mixed sys:ro\n"
    )
    yield f"lxc:{folder.name}"
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def apptainer(root_folder: Path) -> str:
    """Return a sandbox folder of apptainer."""
    if shutil.which("apptainer") is None:
        pytest.skip(
            "apptainer is not on this machine: Debian has it in sid, apptainer.org packages"
        )
    return f"apptainer:{root_folder}"


@pytest.fixture(params=["unshare", "docker", "systemd-nspawn", "lxc", "apptainer"])
def launcher(request: pytest.FixtureRequest) -> str:
    """Return each launcher that exists here."""
    if request.param == "unshare":
        return "unshare"
    name = {"docker": "image", "systemd-nspawn": "nspawn"}.get(request.param, request.param)
    return str(request.getfixturevalue(name))


def told(text: str) -> dict[str, str]:
    """Return the variables of a launcher."""
    return launcher_grammar.launcher_variables(launcher_grammar.parse(text))


def tags(study: Study, client: int = 0) -> dict[str, str]:
    """Return the tags that a client recorded."""
    lines = (study.attempt() / f"tags.{client}").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def out(study: Study, client: int = 0) -> list[str]:
    """Return the lines that a client wrote."""
    return (study.attempt() / f"out.{client}").read_text(encoding="utf-8").splitlines()


def of_ended_runs(paths: Iterable[Path]) -> list[Path]:
    """Return launchers' networks or groups that outlived their run; other runs may continue."""
    return [path for path in paths if not Path("/proc", path.name.split("-")[1]).exists()]


def groups_of_ended_runs() -> list[Path]:
    """Return the groups of ended runs.

    It does not use a recursive glob, which raises if another run removes its group meanwhile.
    """
    groups = (Path(at, name) for at, names, _ in os.walk("/sys/fs/cgroup") for name in names)
    return of_ended_runs(path for path in groups if path.match("steelyard-[0-9]*-*"))


def bridge_of(address: str) -> str:
    """Return the bridge of an address: blocks of 16 from 198.18.0.0 on (RFC 2544)."""
    offset = int(ipaddress.ip_address(address)) - int(ipaddress.ip_address("198.18.0.0"))
    return f"syb{offset // 16}"


def containers(study: Study) -> list[str]:
    """Return docker's containers of this study."""
    if shutil.which("docker") is None:
        return []
    listed = subprocess.run(
        ["docker", "ps", "-aq", "--filter", f"label=steelyard.study={study.folder}"],
        check=False,
        capture_output=True,
        text=True,
    )
    return listed.stdout.split()


# Appended to the seconds that a test's program sleeps, to distinguish it from the same test with
# another launcher in another worker of pytest.
OWN = f"{os.getpid():07}"


def processes(marker: str) -> list[int]:
    """Return processes with a word in their command line, including those of containers."""
    word = marker.encode()
    return [pid for pid, words in each_process("cmdline") if word in words.split(b"\0")]
