"""One MPI program in containers of two nodes, by systemd-nspawn and by LXC: where its ranks are, by which
device they reach each other, and what is left; a device of the node that is a container's alone. The truth
is the kernel's: of two nodes of this machine, and (`make check-containers`: minutes) each guest's own."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.system.jobscripts.launcher_lab import bridge_of

from .conftest import Lab, processes_of, until
from .netem_guests import DEVICE, tree

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(os.geteuid() != 0, reason="these launchers and their networks are root's"),
    pytest.mark.skipif(shutil.which("orted") is None, reason="apt install openmpi-bin"),
]
ROOT = Path(__file__).parents[2]
GUESTS = ("v1", "v2")
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
# A container's own programs, beside make_image.sh's.
PROGRAMS = (
    "chmod", "cut", "date", "dirname", "env", "grep", "mkdir", "mkfifo", "mktemp", "mv", "orted",
    "orterun", "readlink", "setpriv", "sort", "stat", "timeout", "touch", "tr", "uname",
)  # fmt: skip
# A program of MPI's as a user has it: it notes where its rank is, and what that received.
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
# Open MPI as it is on this machine, and what it and the program are linked to: FOLDER PROGRAM.
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
    """As it told itself."""

    guest: str  # by the kernel's own command line; -: this machine
    pids: str
    network: str
    received_bytes: int


@pytest.fixture(scope="module")
def root_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few programs of this machine and Open MPI; the guests see it."""
    at = tmp_path_factory.mktemp("root")
    subprocess.run([ROOT / "tests/make_image.sh", at / "tar", *PROGRAMS], check=True, timeout=60)
    folder = at / "root"
    folder.mkdir(mode=0o755)
    subprocess.run(["tar", "-C", folder, "-xf", at / "tar"], check=True, timeout=60)
    words = ["bash", "-euc", ADD_MPI, "-", str(folder), str(ROOT / "build/bin/npb-is")]
    subprocess.run(words, check=True, timeout=60)
    (folder / "etc/os-release").write_text("ID=test\n")  # systemd-nspawn looks for it
    return folder


@pytest.fixture
def nspawn(root_folder: Path) -> str:
    if shutil.which("systemd-nspawn") is None:
        pytest.skip("systemd-nspawn is not on this machine: apt install systemd-container")
    return f"systemd-nspawn:{root_folder}"


@pytest.fixture
def lxc(root_folder: Path) -> Iterator[str]:
    """A container that stands still; guests that are started later do not see it."""
    if shutil.which("lxc-execute") is None:
        pytest.skip("LXC is not on this machine: apt install lxc")
    folder = Path(f"/var/lib/lxc/steelyard-{os.getpid()}")
    folder.mkdir(parents=True)
    (folder / "config").write_text(lxc_config(root_folder))
    yield f"lxc:{folder.name}"
    shutil.rmtree(folder)


def lxc_config(root_folder: Path) -> str:
    return f"lxc.rootfs.path = dir:{root_folder}\nlxc.mount.auto = proc:mixed sys:ro\n"


def guests_lxc(lab: Lab, root_folder: Path, level: str) -> None:
    """The same on each guest, which has it in memory."""
    at = f"/var/lib/lxc/{level.partition(':')[2]}"
    script = f'mkdir -p {at} && printf %s "$1" >{at}/config'
    for name in GUESTS:
        words = ["sh", "-c", script, "sh", lxc_config(root_folder)]
        assert lab.cluster.guest(name).run(words).returncode == 0


def own_network(lab: Lab, name: str) -> str:
    """A guest's network namespace, by its number."""
    return lab.cluster.guest(name).run(["readlink", "/proc/self/ns/net"]).stdout.strip()


def ranks(program: Path) -> list[Rank]:
    """All that have told where they were, by number."""
    texts = [path.read_text().split() for path in sorted(program.parent.glob(f"{program.name}.*"))]
    return [Rank(*words[:3], int(words[3])) for words in texts]


LEFT = """
ls -d /run/netns/* /run/steelyard-containers/* /run/systemd/nspawn/propagate/* /tmp/steelyard.*
ps -eo comm= | grep -xE 'lxc-execute|systemd-nspawn|orted|orterun|npb-is'
"""


def left(lab: Lab) -> dict[str, str]:
    """What a launcher might leave on each guest, and its network."""
    found = {}
    for name in GUESTS:
        done = lab.cluster.guest(name).run(["bash", "-c", LEFT])
        found[name] = done.stdout + tree(lab.cluster, name)
    return found


def submitted(lab: Lab, level: str, where: str, count: int) -> list[Rank]:
    """The run has ended well, and its `count` ranks, one a container, have told where they were."""
    program = lab.work / "programs" / f"is.S.{count}"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    text = STUDY.format(level=level, where=where, ranks=count, folder=program.parent)
    (lab.work / "far.toml").write_text(text)
    lab.steelyard("submit", "far.toml")
    until(lambda: lab.queued() <= {lab.slow_job}, "the run is over", 900)
    lab.collect("far.toml")
    assert lab.rows("far", "SELECT state, reason FROM runs") == [("completed", None)]
    found = ranks(program)
    # Of ten times 2^16 keys each has its part, of which most are others', two bytes each at least; and
    # what else ranks tell each other.
    least_bytes = 10 * 2**16 / count * (count - 1) / count * 2
    most_bytes = 4 * least_bytes + OTHERS_BYTES * count
    assert all(least_bytes < rank.received_bytes < most_bytes for rank in found), found
    return found


def addresses(lab: Lab, level: str) -> list[str]:
    """Of the containers, as tagged."""
    noted = dict(lab.rows("far", "SELECT key, value FROM tags WHERE key LIKE 'launcher%'"))
    assert (noted["launcher"], noted["launcher_weighed"]) == (level, "yes")
    return sorted(set(noted["launcher_addresses"].split()))


def level_of(request: pytest.FixtureRequest, kind: str, network: str, containers: int) -> str:
    """The launcher of a study."""
    options = OPTIONS.format(network=network, containers=containers)
    return f"{request.getfixturevalue(kind)},{options}"


@pytest.mark.parametrize("kind", ["nspawn", "lxc"])
def test_one_program_spans_containers_of_two_nodes(
    lab: Lab, request: pytest.FixtureRequest, kind: str
) -> None:
    level = level_of(request, kind, "bridge", 2)
    found = submitted(lab, level, "physical", NODES * 2)
    assert len({rank.pids for rank in found}) == len({rank.network for rank in found}) == 4
    assert str(Path("/proc/self/ns/net").readlink()) not in {rank.network for rank in found}
    told = addresses(lab, level)
    assert len(told) == 4
    bridges = {Path("/sys/class/net", bridge_of(address)) for address in told}
    assert len(bridges) == NODES
    until(lambda: not any(bridge.exists() for bridge in bridges), "no bridge is left")


@pytest.mark.skipif("STEELYARD_LAB_LONG" not in os.environ, reason="minutes: make check-containers")
@pytest.mark.parametrize(
    ("kind", "network", "containers"),
    [
        ("nspawn", "bridge", 2),
        ("nspawn", "bridge", 4),
        ("nspawn", "bridge", 8),
        ("nspawn", "macvlan", 2),
        ("lxc", "bridge", 2),
        ("lxc", "bridge", 4),
        ("lxc", "macvlan", 2),
    ],
)
def test_one_program_spans_containers_of_two_guests(
    virtual_lab: Lab,
    request: pytest.FixtureRequest,
    root_folder: Path,
    kind: str,
    network: str,
    containers: int,
) -> None:
    lab = virtual_lab
    level = level_of(request, kind, network, containers)
    if kind == "lxc":
        guests_lxc(lab, root_folder, request.getfixturevalue("lxc"))
    before = left(lab)
    count = NODES * containers
    found = submitted(lab, level, "virtual", count)
    # As many on each guest, each with processes and a network of its own.
    assert sorted(rank.guest for rank in found) == sorted(GUESTS * containers)
    assert len({(rank.guest, rank.pids) for rank in found}) == count
    assert len({(rank.guest, rank.network) for rank in found}) == count
    assert all(rank.network != own_network(lab, rank.guest) for rank in found)
    assert len(addresses(lab, level)) == count
    until(lambda: left(lab) == before, "nothing is left", seen=lambda: (before, left(lab)))


# --- a device of its own ---


@pytest.fixture
def device() -> Iterator[str]:
    """Of this machine, with a link."""
    name = f"sd{os.getpid()}a"
    words = ["ip", "link", "add", name, "type", "veth", "peer", "name", f"{name}b"]
    subprocess.run(words, check=True)
    for one in (name, f"{name}b"):
        subprocess.run(["ip", "link", "set", one, "up"], check=True)
    yield name
    subprocess.run(["ip", "link", "delete", f"{name}b"], check=True)


def is_up(device: str) -> bool:
    """On this machine."""
    flags = Path("/sys/class/net", device, "flags")
    return flags.exists() and bool(int(flags.read_text(), 16) & 1)


@pytest.mark.parametrize("how", ["cancel", "kill"])
def test_a_device_comes_back_however_the_job_ends(lab: Lab, device: str, how: str) -> None:
    """By scancel; by the plugin at the job's end, when all of the run was killed with -9."""
    program = lab.work / "programs" / "is.S.2"
    program.parent.mkdir()
    program.write_text('#!/bin/bash\necho >"$0.$OMPI_COMM_WORLD_RANK"\nsleep 600\n')
    program.chmod(0o755)
    level = f"unshare,network=phys,device={device},ranks=across"
    text = STUDY.format(level=level, where="physical", ranks=2, folder=program.parent)
    text = text.replace("nodes = 2", "nodes = 1")
    (lab.work / "far.toml").write_text(text)
    lab.steelyard("submit", "far.toml")
    until(lambda: len([*program.parent.glob("is.S.2.?")]) == 2, "both ranks run")
    assert not Path("/sys/class/net", device).exists()
    if how == "cancel":
        lab.steelyard("cancel", "far.toml")
    else:
        for pid in processes_of(lab.work):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    until(lambda: is_up(device), "the device is back, and up")
    until(lambda: lab.nodes() <= {"idle", "mixed"}, "Slurm has ended the job")


@pytest.mark.skipif("STEELYARD_LAB_LONG" not in os.environ, reason="minutes: make check-containers")
@pytest.mark.parametrize("kind", ["nspawn", "lxc"])
def test_one_program_goes_by_a_device_of_each_guest(
    virtual_lab: Lab, request: pytest.FixtureRequest, root_folder: Path, kind: str
) -> None:
    """A device that the guest does not use, on the cable between them."""
    lab = virtual_lab
    level = f"{request.getfixturevalue(kind)},network=phys,device=own0,ranks=across"
    if kind == "lxc":
        guests_lxc(lab, root_folder, request.getfixturevalue("lxc"))
    for name in GUESTS:
        make = f"ip link add own0 link {DEVICE} type macvlan mode bridge; ip link set own0 up"
        assert lab.cluster.guest(name).run(["sh", "-c", make]).returncode == 0
    before = left(lab)
    assert all(re.search(r"own0@\w+: <[^>]*\bUP\b", text) for text in before.values())
    found = submitted(lab, level, "virtual", 4)
    assert sorted(rank.guest for rank in found) == sorted(GUESTS * 2)
    assert len({(rank.guest, rank.network) for rank in found}) == 2
    assert all(rank.network != own_network(lab, rank.guest) for rank in found)
    assert len(addresses(lab, level)) == 2
    until(lambda: left(lab) == before, "nothing is left", seen=lambda: (before, left(lab)))
    for name in GUESTS:
        assert lab.cluster.guest(name).run(["ip", "link", "delete", "own0"]).returncode == 0
