"""One MPI program in a container of each of two nodes, by a device of each that is the container's
alone (network=phys): the nodes are network namespaces, and a cable is between them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.waiting import wait_for

from .launcher_lab import OWN, ROOT, needs_root, processes, tags, told

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

pytestmark = [
    needs_root,
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="apt install openmpi-bin"),
]
IS = ROOT / "build/bin/npb-is"
LEFT = ROOT / "build/bin/steelyard-left"
# Namespaces and nodes.
NODES = (f"steelyard-test-{os.getpid()}-a", f"steelyard-test-{os.getpid()}-b")
DEVICE = "d0"  # has the same name on both, as on the nodes of a cluster
# A scheduler's words for them (jobscripts/lib/scheduler.sh).
SCHEDULER = f"""
sy_local_set_client() {{ SY_CLIENT=${{SY_CLIENT:-0}} SY_THIS_NODE=${{SY_TEST_NODE:-{NODES[0]}}} SY_STEP=-; }}
sy_local_nodes() {{ printf '%s\\n' {" ".join(NODES)}; }}
sy_local_is_this_node() {{ [[ $1 == "$SY_THIS_NODE" ]]; }}
sy_local_node_address() {{ [[ $1 == *-b ]] && echo 10.216.9.2 || echo 10.216.9.1; }}
sy_local_on_node() {{ nsenter "--net=/run/netns/$1" env "SY_TEST_NODE=$1" "${{@:2}}"; }}
"""
RANK = f"""
"{IS}" --class S || exit
read -r _ bytes _ < <(grep {DEVICE}: /proc/net/dev)
printf 'rank %s %s %s %s\\n' "$OMPI_COMM_WORLD_RANK" "$(readlink /proc/self/ns/net)" \\
    "$(readlink /proc/self/ns/pid)" "$bytes"
"""


def ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=True, timeout=30)
    return done.stdout


@pytest.fixture
def cable() -> Iterator[None]:
    """Each node has a way to the other's address, and the device with the cable."""
    for node in NODES:
        ip("netns", "add", node)
        quiet = ["sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"]
        subprocess.run(["ip", "netns", "exec", node, *quiet], check=True)
    try:
        ip("-netns", NODES[0], "link", "add", DEVICE, "type", "veth",
           "peer", "name", DEVICE, "netns", NODES[1])  # fmt: skip
        ip("-netns", NODES[0], "link", "add", "way", "type", "veth",
           "peer", "name", "way", "netns", NODES[1])  # fmt: skip
        for number, node in enumerate(NODES, 1):
            ip("-netns", node, "address", "add", f"10.216.9.{number}/24", "dev", "way")
            for device in ("lo", "way", DEVICE):
                ip("-netns", node, "link", "set", device, "up")
        yield
    finally:
        for node in NODES:
            ip("netns", "delete", node)


@contextlib.contextmanager
def started(study: Study, rank: str) -> Iterator[subprocess.Popen[bytes]]:
    """A run of two ranks whose client is on the first node."""
    library = study.folder / "lib/steelyard.sh"
    library.write_text(library.read_text(encoding="utf-8") + SCHEDULER, encoding="utf-8")
    (study.folder / "rank.sh").write_text(rank, encoding="utf-8")
    study.body('sy_mpi_run 2 mpirun bash "$SY_STUDY_DIR/rank.sh"')
    with subprocess.Popen(
        ["nsenter", f"--net=/run/netns/{NODES[0]}", *study.command()],
        env={**study.environment, **told(f"unshare,network=phys,device={DEVICE},ranks=across")},
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as child:  # fmt: skip
        try:
            yield child
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGTERM)


def spaces() -> list[Path]:
    """Namespaces of runs that have a device of these nodes."""
    found = []
    for mark in Path("/run/steelyard-containers").glob("steelyard-*"):
        with contextlib.suppress(FileNotFoundError):
            text = mark.read_text()
            if any(f"network {inode}\n" in text for inode in inodes()):
                found.append(Path("/run/netns", mark.name))
    return found


def inodes() -> set[str]:
    """The nodes' own."""
    return {str(Path("/run/netns", node).stat().st_ino) for node in NODES}


def is_swept(node: str) -> bool:
    """Whether steelyard-left reports the device."""
    return f"had the device {DEVICE}: given back" in ip("netns", "exec", node, str(LEFT), "sweep")


def has(node: str) -> bool:
    """Whether the node has its device."""
    words = ["ip", "-netns", node, "link", "show", "dev", DEVICE]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def counters(node: str) -> tuple[int, int]:
    """Bytes that the node's device has received and sent."""
    words = ip("-netns", node, "-statistics", "link", "show", "dev", DEVICE).split()
    return int(words[words.index("RX:") + 7]), int(words[words.index("TX:") + 7])


def flags(node: str) -> str:
    """Return the flags of the device on the node."""
    return ip("-netns", node, "-oneline", "link", "show", "dev", DEVICE).split()[2]


@pytest.mark.usefixtures("cable")
def test_one_program_of_two_nodes_goes_by_their_devices(study: Study) -> None:
    before = [counters(node) for node in NODES]
    with started(study, RANK) as child:
        assert child.wait(timeout=120) == 0, study.errors()
    lines = [line.split() for line in (study.attempt() / "out.0").read_text().splitlines()]
    ranks = {words[1]: words[2:] for words in lines if words[:1] == ["rank"]}
    assert sorted(ranks) == ["0", "1"]
    mine = {rank[0].strip("net:[]") for rank in ranks.values()}
    assert len(mine) == 2 and not mine & inodes()
    assert len({rank[1] for rank in ranks.values()}) == 2
    # Ten times half of a rank's 2^15 keys are the other's, two bytes each at least.
    assert all(int(rank[2]) > 327_680 for rank in ranks.values())
    assert len(set(tags(study)["launcher_addresses"].split())) == 2
    (rx_a, tx_a), (rx_b, tx_b) = (
        (rx - was[0], tx - was[1])
        for (rx, tx), was in zip(map(counters, NODES), before, strict=True)
    )
    assert (rx_a, tx_a) == (tx_b, rx_b)
    assert min(rx_a, tx_a) > 327_680
    assert all("UP" in flags(node)[1:-1].split(",") for node in NODES)
    assert spaces() == []


@pytest.mark.usefixtures("cable")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_both_nodes_have_them_back_however_it_ends(study: Study, how: signal.Signals) -> None:
    with started(study, "sleep 88.75" + OWN) as child:
        wait_for("both ranks run", lambda: len(processes("88.75" + OWN)) == 2)
        assert not any(has(node) for node in NODES)
        mine = spaces()
        assert len(mine) == 2
        if how == signal.SIGTERM:
            child.terminate()
            assert child.wait(timeout=60) == 143
        else:
            os.killpg(child.pid, how)
    wait_for("no rank is left", lambda: not processes("88.75" + OWN))
    if how == signal.SIGKILL:  # the jobs' ends on the nodes
        for node in NODES:
            wait_for("it is given back", partial(is_swept, node))
    wait_for("nothing of it is left", lambda: not any(path.exists() for path in (*spaces(), *mine)))
    assert all("UP" in flags(node)[1:-1].split(",") for node in NODES)
