"""Clients on several nodes: other nodes are processes here, with their own clocks."""

from __future__ import annotations

import itertools
import os
import signal
import socket
import subprocess
import sys

import pytest
from tests.processes import each_process, of_process
from tests.system.hep.conftest import RUN_ID, SMALL, Study
from tests.waiting import wait_for

from steelyard.jobscripts import registry, runscript
from steelyard.jobscripts.hep import client_groups

# Four nodes. The second has the server. Where a kernel and root allow it, the others' clocks show
# another time: by 5000 s and more.
NODES = """
sy_local_nodes() {{ printf '%s\\n' "$HOSTNAME" server far1 far2; }}
sy_local_is_this_node() {{ [[ $1 == "$HOSTNAME" ]]; }}
sy_local_node_address() {{ printf '127.0.0.1\\n'; }}
sy_local_on_node() {{
    case $1 in
    server) "${{@:2}}" ;;
    far1) {far} "${{@:2}}" ;;
    far2) "${{@:2}}" ;;
    esac
}}
"""
OTHER_CLOCK = "unshare --time --monotonic 5000 --fork --kill-child"
CAN_SHIFT = (
    subprocess.run([*OTHER_CLOCK.split(), "true"], capture_output=True, check=False).returncode == 0
)


@pytest.fixture
def nodes(study: Study) -> Study:
    with (study.folder / "lib/steelyard.sh").open("a", encoding="utf-8") as library:
        library.write(NODES.format(far=OTHER_CLOCK if CAN_SHIFT else ""))
    return study


def own_seconds(study: Study) -> list[float]:
    return [r.value for r in study.results() if r.metric == "client_seconds"]


def tags(study: Study) -> dict[str, str]:
    lines = (study.attempt / "tags.0").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.parametrize(
    ("said", "node"),
    [
        ('{"node": "n2", "secret": "right"}', "n2"),
        ('{"node": "n2", "secret": "wrong"}', None),
        ('{"node": "n2"}', None),
        ("GET / HTTP/1.1", None),
        ("[1]", None),
    ],
)
def test_only_who_knows_the_runs_secret_is_let_in(said: str, node: str | None) -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(said.encode() + b"\n")
        assert client_groups.greeting(here, "right") == node


def test_clients_are_dealt_to_all_nodes_but_the_servers_and_begin_together(nodes: Study) -> None:
    found = nodes.completed("xrootd", mode="xrdcp", clients=4, iterations=2)
    here = os.uname().nodename
    assert tags(nodes)["client_nodes"] == f"{here} far1 far2"
    assert tags(nodes)["server_node"] == "server"
    by_client = [one["node"] for one in nodes.iteration(1)["clients"]]
    assert by_client == [here, "far1", "far2", here]
    size = next((nodes.folder / "data").glob("*.root")).stat().st_size
    assert found["bytes_read"] == 4 * size
    assert 2 * 4 * size < found["server_bytes"] < 2.2 * 4 * size, "the server's own count"
    assert len(own_seconds(nodes)) == 8
    # With clocks that differ by 5000 s: their difference is in no figure.
    assert 0 <= found["start_spread_s"] <= found["seconds"] < 120
    assert max(own_seconds(nodes)[:4]) <= found["seconds"] + 2 * found["clock_error_s"]
    assert 0 < found["first_end_s"] <= found["seconds"]
    assert found["summed_bytes_per_s"] == pytest.approx(
        sum(found["bytes_read"] / 4 / s for s in own_seconds(nodes)[:4])
    )


@pytest.mark.slow
def test_one_after_the_other_no_two_overlap(nodes: Study) -> None:
    found = nodes.completed("xrootd", mode="read", structure="flat", clients=3, order="sequential")
    clients = nodes.iteration(1)["clients"]
    error_s = found["clock_error_s"]
    for before, after in itertools.pairwise(clients):
        assert after["begin_s"] > before["end_s"] - 2 * error_s
    assert found["seconds"] > sum(own_seconds(nodes)) - 4 * error_s
    assert found["bytes_per_s"] < found["summed_bytes_per_s"]
    assert "start_spread_s" not in found


@pytest.mark.slow
def test_two_clients_on_one_node_and_on_two(nodes: Study) -> None:
    nodes.completed("xrootd", mode="xrdcp", clients=2, client_nodes=1)
    assert len({one["node"] for one in nodes.iteration(1)["clients"]}) == 1
    nodes.completed("xrootd", mode="xrdcp", clients=2, client_nodes=2)
    assert len({one["node"] for one in nodes.iteration(1)["clients"]}) == 2
    found = nodes.run("xrootd", clients=1, client_nodes=2)
    assert "client_nodes = 2: expected at most as many" in found["reason"]


def test_a_client_that_fails_elsewhere_is_named_with_its_node(nodes: Study) -> None:
    url, quick = "root://127.0.0.1:9//x.root", "XRD_CONNECTIONWINDOW=1 XRD_CONNECTIONRETRY=1"
    found = nodes.run("xrootd", url=url, verify=False, xrd=quick, mode="xrdcp", clients=2)
    assert "xrdcp ended with" in found["reason"]
    library = nodes.folder / "lib/steelyard.sh"
    text = library.read_text(encoding="utf-8")
    library.write_text(text.replace("far1) ", "far1) echo no such node >&2; exit 1 ;; -) "))
    found = nodes.run("xrootd", mode="xrdcp", clients=2)
    assert "the clients on far1 ended with 1: no such node" in found["reason"]


def test_whoever_is_killed_nothing_goes_on_elsewhere(nodes: Study) -> None:
    text = runscript.render(
        registry.load("xrootd"), {**SMALL, "mode": "xrdcp", "iterations": 10**6, "clients": 3},
        study_dir=nodes.folder, run_id=RUN_ID, environment={"STEELYARD_PYTHON": sys.executable},
    )  # fmt: skip
    (nodes.run_folder / "run.sh").write_text(text, encoding="utf-8")
    run = subprocess.Popen(
        ["bash", str(nodes.run_folder / "run.sh")],
        env={**os.environ, "SY_SCRATCH_BASE": str(nodes.scratch)},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for("both groups elsewhere run", lambda: len(elsewhere(nodes)) == 2)
        (client,) = (
            p for p, line in processes(nodes).items() if b"hep.client_controller\0" in line
        )
        os.kill(client, signal.SIGKILL)
        run.wait(60)
        wait_for("they have ended", lambda: not elsewhere(nodes))
        wait_for("they left nothing", lambda: not list(nodes.scratch.iterdir()))
    finally:
        run.kill()
        run.wait()


def elsewhere(study: Study) -> list[int]:
    return [pid for pid, line in processes(study).items() if b"hep.client_group" in line]


def processes(study: Study) -> dict[int, bytes]:
    """Python's own, with this study in their environment."""
    mine = (pid for pid, words in each_process("environ") if str(study.folder).encode() in words)
    lines = {pid: of_process(pid, "cmdline") for pid in mine}
    return {pid: line for pid, line in lines.items() if b"python" in line.split(b"\0")[0]}
