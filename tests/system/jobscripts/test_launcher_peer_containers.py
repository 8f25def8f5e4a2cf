"""One MPI program in several containers of this machine (ranks=across): where its ranks are, what they
share, and what is left on the node afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.waiting import wait_for

from steelyard.jobscripts import registry

from .launcher_lab import OWN, bridge_of, needs_root, processes, tags, told

if TYPE_CHECKING:
    from tests.system.jobscripts.conftest import Study

pytestmark = [
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="apt install openmpi-bin"),
]
# What a rank sees, in a line: no MPI program has to be in an image for it.
RANK = """
: >"/dev/shm/seen.$OMPI_COMM_WORLD_RANK"
processors=$(taskset --cpu-list --pid $$)
printf 'rank %s %s %s %s %s\\n' "$OMPI_COMM_WORLD_RANK" "$(readlink /proc/self/ns/pid)" \
    "$(readlink /proc/self/ns/net)" "${processors##*: }" "$OMPI_COMM_WORLD_SIZE"
for try in {1..300}; do
    shm=(/dev/shm/seen.*)
    ((${#shm[@]} < $1)) || break
    sleep 0.1
done
printf 'shared %s %s\\n' "$OMPI_COMM_WORLD_RANK" "${#shm[@]}"
"""


class Rank(NamedTuple):
    """A rank's report."""

    pids: str
    network: str
    processors: str
    size: int
    shared: int  # files that all ranks with the same /dev/shm wrote


def body(study: Study, ranks: int = 4, program: str = RANK, together: int = 2) -> None:
    """`together`: so many ranks are in one container, and wait for each other's file."""
    (study.folder / "rank.sh").write_text(program)
    study.body(f'sy_mpi_run {ranks} mpirun bash "$SY_STUDY_DIR/rank.sh" {together}')


def ranks_of(study: Study) -> dict[int, Rank]:
    lines = [line.split() for line in (study.attempt() / "out.0").read_text().splitlines()]
    shared = {int(words[1]): int(words[2]) for words in lines if words[0] == "shared"}
    return {
        int(number): Rank(pids, network, processors, int(size), shared[int(number)])
        for word, number, pids, network, processors, size in (w for w in lines if w[0] == "rank")
    }


def left(study: Study) -> list[str]:
    """Return this run's leftover networks on the node; other runs may have theirs."""
    addresses = tags(study).get("launcher_addresses", "").split()
    names = {bridge_of(address) for address in addresses}
    found = [str(path) for name in names if (path := Path("/sys/class/net", name)).exists()]
    for note in Path("/run/steelyard-containers").glob("steelyard-*"):
        with contextlib.suppress(FileNotFoundError):
            found += [str(note) for name in names if f"link {name}\n" in note.read_text()]
    for space in Path("/run/netns").glob("steelyard-*"):
        shown = ["nsenter", f"--net={space}", "ip", "-oneline", "address"]
        said = subprocess.run(shown, capture_output=True, text=True, check=False).stdout
        found += [str(space) for address in addresses if f" {address}/" in said]
    return found


@pytest.mark.parametrize("network", ["host", pytest.param("bridge", marks=needs_root)])
def test_the_ranks_of_one_program_are_spread_over_the_containers(
    study: Study, network: str
) -> None:
    body(study)
    done = study.run(**told(f"unshare,containers=2,ranks=across,network={network}"))
    assert done.returncode == 0, study.errors()
    found = ranks_of(study)
    assert sorted(found) == [0, 1, 2, 3]
    assert {rank.size for rank in found.values()} == {4}
    first, second = ([found[0], found[1]], [found[2], found[3]])
    here = str(Path("/proc/self/ns/pid").readlink())
    assert len({here} | {rank.pids for rank in found.values()}) == 3
    assert [len({rank.pids for rank in side}) for side in (first, second)] == [1, 1]
    # Each container's /dev/shm has its own two ranks' files and nobody else's.
    assert {rank.shared for rank in found.values()} == {2}
    networks = {rank.network for rank in found.values()}
    mine = str(Path("/proc/self/ns/net").readlink())
    assert (
        networks == {mine}
        if network == "host"
        else (len(networks) == 2, mine in networks) == (True, False)
    )
    noted = tags(study)
    assert noted["launcher_cpus"] == f"{found[0].processors};{found[2].processors}"
    if len(os.sched_getaffinity(0)) > 1:
        assert found[0].processors != found[2].processors
    assert noted["mpi.containers"] == "2"
    assert (left(study), list(study.scratch.iterdir())) == ([], [])


def test_more_containers_than_processors_and_ranks(study: Study) -> None:
    """Ranks that wait must let others run; a container may be without any."""
    body(study, ranks=3, together=1)
    assert study.run(**told("unshare,containers=4,ranks=across")).returncode == 0
    found = ranks_of(study)
    assert sorted(found) == [0, 1, 2]
    assert len({rank.pids for rank in found.values()}) == 3
    assert {len(rank.processors.split(",")) for rank in found.values()} == {
        max(1, len(os.sched_getaffinity(0)) // 4)
    }


def test_a_rank_that_fails_fails_the_run_and_its_words_are_kept(study: Study) -> None:
    body(
        study,
        program='((OMPI_COMM_WORLD_RANK < 3)) || { echo "rank 3 gives up" >&2; exit 7; }; sleep 33.5'
        + OWN,
    )
    assert study.run(**told("unshare,containers=2,ranks=across")).returncode == 1
    assert "rank 3 gives up" in study.errors()
    assert study.result()["exit_codes"] == [7]
    wait_for("no rank is left", lambda: not processes("33.5" + OWN))


def test_a_stopped_run_leaves_no_rank_in_any_container(study: Study) -> None:
    body(study, program="sleep 44.25" + OWN)
    with study.start(**told("unshare,containers=2,ranks=across")) as child:
        wait_for("all ranks run", lambda: len(processes("44.25" + OWN)) == 4)
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=90) == 143
    wait_for("no rank is left", lambda: not processes("44.25" + OWN))
    assert (left(study), list(study.scratch.iterdir())) == ([], [])


@needs_root
def test_what_a_killed_run_left_of_its_network_the_next_one_removes(study: Study) -> None:
    body(study, program="sleep 55.75" + OWN)
    level = told("unshare,containers=2,ranks=across,network=bridge")
    with study.start(**level) as child:
        wait_for("all ranks run", lambda: len(processes("55.75" + OWN)) == 4)
        assert len(left(study)) == 4  # a bridge, the mark of it, two network namespaces
        os.killpg(child.pid, signal.SIGKILL)
    wait_for("no rank is left", lambda: not processes("55.75" + OWN))
    body(study, program=":")
    assert study.run(**level).returncode == 0
    assert left(study) == []


def bash(folder: Path, script: str, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The library, then the script."""
    (folder / "library.sh").write_text(f"{registry.library()}\n{script}\n", encoding="utf-8")
    return subprocess.run(
        ["bash", folder / "library.sh", *words],
        env={"PATH": os.environ["PATH"], "SY_RUN_ID": "r"},
        capture_output=True,
        text=True,
        check=False,
        timeout=90,
    )


def test_addresses_of_a_job_do_not_meet(tmp_path: Path) -> None:
    """RFC 2544: 198.18.0.0 to 198.19.255.255; a block of 16 each."""
    script = """
    SY_ATTEMPT_DIR=/s/1.0 SY_CLIENT=0
    SY_NETWORK_BLOCK=$(sy_network_choose_block 64); echo "$SY_NETWORK_BLOCK"
    for SY_NETWORK_BLOCK in 1 4095 8127; do
        for node in 0 63; do sy_network_address $node 0; echo; sy_network_address $node 14; echo; done
    done"""
    first, *addresses = bash(tmp_path, script).stdout.split()
    assert 1 <= int(first) <= 8127
    assert addresses[:4] == ["198.18.0.16", "198.18.0.30", "198.18.4.0", "198.18.4.14"]
    assert addresses[4:6] == ["198.18.255.240", "198.18.255.254"]
    assert addresses[-1] == "198.19.255.238"
    assert len(set(addresses)) == 12


@pytest.mark.parametrize("word", ["ready", "reached", "trip", "sent"])
def test_a_container_that_answers_nothing_is_not_waited_for_until_the_jobs_end(
    tmp_path: Path, word: str
) -> None:
    script = """
    SY_SIGNAL= SY_BARRIER_S=1
    exec {SY_LAUNCHER_IN}<> <(:)
    sy_launcher_read_answer "$1"; echo "$?"
    """
    assert bash(tmp_path, script, word).stdout == "1\n"


def test_who_does_not_answer_is_named(tmp_path: Path) -> None:
    """A refused connection is an answer."""
    alone = "unshare --user --map-root-user --net bash -c"
    inside = 'ip link set lo up; . "$1"; sy_peers_probe "127.0.0.1 198.18.0.1 127.0.0.2"'
    done = bash(tmp_path, f"[[ -n ${{1:-}} ]] || {alone} '{inside}' - \"$0\" x")
    assert done.stdout == "reached 198.18.0.1\n", done.stderr


def test_an_image_without_timeout_is_named_as_such(tmp_path: Path) -> None:
    """Not as a firewall: what looks whether containers reach each other is a program of the image."""
    (tmp_path / "empty").mkdir()
    done = bash(tmp_path, 'PATH=$1; sy_peers_probe "127.0.0.1"', str(tmp_path / "empty"))
    assert done.stdout == "reached without-timeout\n"
    script = """
    SY_LAUNCHER=systemd-nspawn:/srv/app,ranks=across SY_LAUNCHER_NETWORK=bridge SY_PEERS=$1
    printf 'a n1 198.18.0.1/15 -\n' >"$SY_PEERS/list"
    sy_tag() { :; }
    sy_launcher_send() { :; }
    sy_launcher_read_answer() { answer=without-timeout; }
    sy_peers_check_connections"""
    done = bash(tmp_path, script, str(tmp_path))
    assert done.returncode == 1
    assert "its image lacks the program timeout (Debian: coreutils)" in done.stderr
    assert "firewall" not in done.stderr


@pytest.mark.parametrize(
    ("route", "address", "device"),
    [
        ("default via 10.0.0.1 dev eno1 proto dhcp", "10.0.0.7", "eno1"),
        ("", "10.0.0.7", "ib0"),  # a compute node without a way to the world
        ("", "127.0.1.1", ""),
    ],
)
def test_macvlan_devices_are_on_the_nodes_way_out(
    tmp_path: Path, route: str, address: str, device: str
) -> None:
    script = """
    ip() { [[ $2 != route ]] && echo "2: ib0    inet $5/24 scope global ib0" || printf '%s' "$route"; }
    sy_node_address() { echo "$known"; }
    route=$1 known=$2 SY_THIS_NODE=a
    sy_network_find_parent"""
    done = bash(tmp_path, script, route, address)
    assert (done.stdout, done.returncode) == (device, 0 if device else 4), done.stderr
    assert bool(device) or "none has the address 127.0.1.1" in done.stderr


@pytest.mark.parametrize(
    "slow",
    [
        "sy_leftover_list_notes() { exec >&-; sleep 0.3; : >ended; }\nsy_leftover_sweep_folders /nowhere",
        "sy_every_scheduler() { echo 17; exec >&-; sleep 0.3; : >ended; }\nsy_leftover_format_owner >/dev/null",
    ],
)
def test_whose_words_are_read_is_waited_for(tmp_path: Path, slow: str) -> None:
    """Otherwise it may end after its shell, and the record of a slow node's job lacks its usage."""
    done = bash(tmp_path, f"cd {tmp_path}\n{slow}\n[[ -e ended ]] && echo waited")
    assert (done.stdout, done.returncode) == ("waited\n", 0), done.stderr
