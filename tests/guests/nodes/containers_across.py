"""One MPI program in containers of two nodes, and the reports of its ranks."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.throwaway_lab import Lab

ROOT = Path(__file__).parents[3]
OPTIONS = "network={network},containers={containers},ranks=across"
NODES = 2
OTHERS_BYTES = 20_000
STUDY = """
[study]
name = "far"
repeat = 1
[job]
nodes = 2
constraint = "{where}"
time_limit = "00:15:00"
[factors]
launcher = ["{level}"]
[[benchmark]]
use = "npb"
kernel = "is"
class = "S"
ranks = {ranks}
folder = "{folder}"
"""
# Programs of a container, in addition to those of make_image.sh.
PROGRAMS = (
    "chmod", "cut", "date", "dirname", "env", "grep", "mkdir", "mkfifo", "mktemp", "mv", "orted",
    "orterun", "readlink", "setpriv", "sort", "stat", "timeout", "touch", "tr", "uname",
)  # fmt: skip
# A user's MPI program: it reports where its rank runs, and what the rank received.
PROGRAM = """\
#!/bin/bash
"$STEELYARD_NPB" is --class S || exit
while read -r device received _; do
    [[ $device != eth0: && $device != own0: ]] || break
done </proc/net/dev
[[ $(</proc/cmdline) =~ SY_NAME=([a-z0-9]+) ]]
printf '%s\\n' "${BASH_REMATCH[1]:--}" "$(readlink /proc/self/ns/pid)" \
    "$(readlink /proc/self/ns/net)" "$received" >"$0.$OMPI_COMM_WORLD_RANK"
"""
# Adds this machine's Open MPI, and the libraries of it and of the program: FOLDER PROGRAM.
ADD_MPI = """
lib=$(readlink -f /usr/lib/*/libopen-rte.so.* | head -n 1) lib=${lib%/*}
tar --dereference --exclude={include,'*'ucx'*','*'ofi'*','*'openib'*'} -cPf - /etc/openmpi /usr/share/openmpi \
    "$lib/openmpi" | tar -C "$1" --strip-components=1 -xPf -
ln -s orterun "$1/usr/bin/mpirun"
ldd "$1/$lib"/openmpi/lib/openmpi*/*.so "$2" | grep -oE ' /[^ ]+' | sort -u | while read -r path; do
    inside=$1/usr/${path#/usr/}
    mkdir -p "${inside%/*}" && cp -L "$path" "$inside"
done
"""


class Rank(NamedTuple):
    """A rank's report."""

    guest: str  # from the kernel's command line; -: this machine
    pids: str
    network: str
    received_bytes: int


@pytest.fixture(scope="module")
def root_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a few programs of this machine and Open MPI, which guests can read."""
    at = tmp_path_factory.mktemp("root")
    subprocess.run([ROOT / "tests/make_image.sh", at / "tar", *PROGRAMS], check=True, timeout=60)
    folder = at / "root"
    folder.mkdir(mode=0o755)
    subprocess.run(["tar", "-C", folder, "-xf", at / "tar"], check=True, timeout=60)
    words = ["bash", "-euc", ADD_MPI, "-", str(folder), str(ROOT / "build/bin/npb-is")]
    subprocess.run(words, check=True, timeout=60)
    (folder / "etc/os-release").write_text("ID=test\n")  # required by systemd-nspawn
    return folder


@pytest.fixture
def nspawn(root_folder: Path) -> str:
    if shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn is not on this machine: apt install systemd-container")
    return f"systemd-nspawn:{root_folder}"


@pytest.fixture
def lxc(root_folder: Path) -> Iterator[str]:
    """Make a stopped container; guests that are started later do not see it."""
    if shutil.which("lxc-execute") is None:
        pytest.skip("LXC is not on this machine: apt install lxc")
    folder = Path(f"/var/lib/lxc/steelyard-{os.getpid()}")
    folder.mkdir(parents=True)
    (folder / "config").write_text(lxc_config(root_folder))
    yield f"lxc:{folder.name}"
    shutil.rmtree(folder)


def lxc_config(root_folder: Path) -> str:
    return f"lxc.rootfs.path = dir:{root_folder}\nlxc.mount.auto = proc:mixed sys:ro\n"


def ranks(program: Path) -> list[Rank]:
    """Return all ranks that reported, by number."""
    texts = [path.read_text().split() for path in sorted(program.parent.glob(f"{program.name}.*"))]
    return [Rank(*words[:3], int(words[3])) for words in texts]


def submitted(lab: Lab, level: str, where: str, count: int) -> list[Rank]:
    """Submit a run, check its end, and return its `count` ranks' reports, one per container."""
    program = lab.work / "programs" / f"is.S.{count}"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    text = STUDY.format(level=level, where=where, ranks=count, folder=program.parent)
    (lab.work / "far.toml").write_text(text)
    lab.steelyard("submit", "far.toml")
    lab.wait_study("far.toml", limit_s=900)
    lab.collect("far.toml")
    assert lab.rows("far", "SELECT state, reason FROM runs") == [("completed", None)]
    found = ranks(program)
    # Each rank has a part of ten times 2^16 keys, most of which are from other ranks, with at least
    # two bytes each; other messages are added.
    least_bytes = 10 * 2**16 / count * (count - 1) / count * 2
    most_bytes = 4 * least_bytes + OTHERS_BYTES * count
    assert all(least_bytes < rank.received_bytes < most_bytes for rank in found), found
    return found


def addresses(lab: Lab, level: str) -> list[str]:
    """Return the addresses of the containers in the tags."""
    noted = dict(lab.rows("far", "SELECT key, value FROM tags WHERE key LIKE 'launcher%'"))
    assert (noted["launcher"], noted["launcher_measured"]) == (level, "yes")
    return sorted(set(noted["launcher_addresses"].split()))


def level_of(request: pytest.FixtureRequest, kind: str, network: str, containers: int) -> str:
    """Return the launcher of a study."""
    options = OPTIONS.format(network=network, containers=containers)
    return f"{request.getfixturevalue(kind)},{options}"
