"""One study on two guests that has every factor of docs/study.md at once, each held against what its
clients saw of it themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.guests.nodes.netem_guests import DEVICE, address
from tests.throwaway_lab import Lab

PAGE = Path(__file__).parents[3] / "docs/study.md"
# Of the page's table they stand for themselves: whatever a benchmark, or a command, names.
OF_A_BENCHMARK, OF_A_COMMAND = "command", "pings"
ONE_NODE = "node"  # its runs are on one node, where these need two
DELAY_MS = 20
# $1: host to ping, $2: how often, $3: the network device, $4: a folder that both guests share.
# Parallel clients wait there for each other; clients in turn would wait in vain.
LOOK = """
node=$(cat /proc/sys/kernel/hostname)
echo "node $node"
echo "kernel $(uname -r)"
echo "space $(readlink /proc/self/ns/pid)"
: >"$4/here.$SLURM_JOB_ID.$node"
tries=0
until set -- "$1" "$2" "$3" "$4" "$4/here.$SLURM_JOB_ID".* && [ $# = 6 ]; do
    [ $((tries += 1)) -lt 300 ] || break
    sleep 0.2
done
echo "met $(($# - 4))"
echo "queue $(tc qdisc show dev "$3" | grep -c delay)"
ping -c "$2" -i 0.2 -n "$1"
"""
STUDY = """
[study]
name = "every"
repeat = 1
[job]
time_limit = "00:03:00"
exclusive = true
[factors]
clients = [2]
node_type = ["virtual"]
kernel_release = ["{kernel}"]
network = ["none", "delay={delay}ms,to={n1}"]
cache = ["cold"]
mode = ["parallel"]
launcher = ["bare", "unshare"]
pings = [3]
command = ["sh {folder}/look.sh {n1} {{pings}} {device} {folder}"]
[baseline]
network = "none"
launcher = "bare"
[place."{kernel}"]
slurm = "--constraint=virtual"
[[benchmark]]
use = "app"
"""


@dataclass(frozen=True)
class Client:
    """What one saw: where it was, how many had begun, the delays of its device, its least round trip."""

    node: str
    kernel: str
    space: str
    met: int
    queues: int
    pings: int
    least_ms: float


def client(text: str) -> Client:
    said = dict(re.findall(r"^(node|kernel|space|met|queue) (.+)$", text, re.MULTILINE))
    trips_ms = [float(ms) for ms in re.findall(r" time=([0-9.]+) ms$", text, re.MULTILINE)]
    return Client(
        said["node"], said["kernel"], said["space"], int(said["met"]), int(said["queue"]),
        len(trips_ms), min(trips_ms),
    )  # fmt: skip


def clients(lab: Lab) -> Iterator[tuple[str, str, list[Client]]]:
    """Of each run its network, its launcher, and its clients."""
    sql = """SELECT run_id, attempt, condition->>'network', condition->>'launcher' FROM runs
             WHERE state = 'completed' AND coalesce(valid, true)"""
    for run_id, attempt, network, launcher in lab.rows("every", sql):
        folder = lab.work / "every.study/runs" / run_id / attempt
        yield network, launcher, [client(p.read_text()) for p in sorted(folder.glob("out.*"))]


def factors_of_the_page() -> set[str]:
    table = PAGE.read_text(encoding="utf-8").partition("## [factors]")[2].partition("\n**")[0]
    return {*re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)}


def test_every_factor_holds_where_its_clients_are(virtual_lab: Lab) -> None:
    n1 = address(virtual_lab.cluster, "n1")
    kernel = virtual_lab.cluster.find_guest("v1").run(["uname", "-r"]).stdout.strip()
    spaces = {virtual_lab.cluster.find_guest(v).run(["readlink", "/proc/1/ns/pid"]).stdout.strip()
              for v in ("v1", "v2")}  # fmt: skip
    (virtual_lab.work / "look.sh").write_text(LOOK)
    text = STUDY.format(
        kernel=kernel, n1=n1, delay=DELAY_MS, device=DEVICE, folder=virtual_lab.work
    )
    (virtual_lab.work / "every.toml").write_text(text)
    virtual_lab.steelyard("submit", "every.toml")
    virtual_lab.wait_study("every.toml")
    virtual_lab.collect("every.toml")

    ((keys,),) = virtual_lab.rows("every", "SELECT DISTINCT json_keys(condition) FROM runs")
    rest = factors_of_the_page() - {ONE_NODE}
    assert {*keys} == rest | {OF_A_BENCHMARK, OF_A_COMMAND}
    found = {(network, launcher): seen for network, launcher, seen in clients(virtual_lab)}
    slow = f"delay={DELAY_MS}ms,to={n1}"
    assert found.keys() == {*product(("none", slow), ("bare", "unshare"))}
    for (network, launcher), (first, second) in found.items():
        assert {first.node, second.node} == {"v1", "v2"}
        assert first.kernel == second.kernel == kernel
        assert first.pings == second.pings == 3
        assert first.met == second.met == 2, "parallel"
        for one in (first, second):
            assert (one.queues > 0) == (network == slow)
            assert network != slow or one.least_ms >= DELAY_MS
            assert (one.space in spaces) == (launcher == "bare")
    tags = virtual_lab.rows("every", "SELECT run_id, node, value FROM tags WHERE key = 'cache'")
    assert sorted((node, value) for _, node, value in tags) == [
        (node, "cold") for node in ("v1", "v2") for _ in range(len(found))
    ]
