"""One study on two guests that has every factor of docs/study.md at once, each held against what its
clients saw of it themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.guests.nodes.netem_guests import address
from tests.throwaway_lab import Lab

PAGE = Path(__file__).parents[3] / "docs/study.md"
# Of the page's table they stand for themselves: whatever a benchmark, or a command, names.
OF_A_BENCHMARK, OF_A_COMMAND = "command", "pings"
DELAY_MS = 20
BUSY_MS = 60  # what a round trip may take longer on guests that share two processors with others
# $1: whom to ping, $2: how often.
LOOK = """
echo "node $(cat /proc/sys/kernel/hostname)"
echo "kernel $(uname -r)"
echo "space $(readlink /proc/self/ns/pid)"
echo "begin $(date +%s.%N)"
ping -c "$2" -i 0.2 -n "$1"
echo "end $(date +%s.%N)"
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
command = ["sh {folder}/look.sh {n1} {{pings}}"]
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
    """What one saw: where it was, from when to when, and its least round trip."""

    node: str
    kernel: str
    space: str
    begin_s: float
    end_s: float
    pings: int
    least_ms: float


def client(text: str) -> Client:
    said = dict(re.findall(r"^(node|kernel|space|begin|end) (.+)$", text, re.MULTILINE))
    trips_ms = [float(ms) for ms in re.findall(r" time=([0-9.]+) ms$", text, re.MULTILINE)]
    return Client(
        said["node"], said["kernel"], said["space"], float(said["begin"]), float(said["end"]),
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
    kernel = virtual_lab.cluster.guest("v1").run(["uname", "-r"]).stdout.strip()
    spaces = {virtual_lab.cluster.guest(v).run(["readlink", "/proc/1/ns/pid"]).stdout.strip()
              for v in ("v1", "v2")}  # fmt: skip
    (virtual_lab.work / "look.sh").write_text(LOOK)
    text = STUDY.format(kernel=kernel, n1=n1, delay=DELAY_MS, folder=virtual_lab.work)
    (virtual_lab.work / "every.toml").write_text(text)
    virtual_lab.steelyard("submit", "every.toml")
    virtual_lab.steelyard("status", "every.toml", "--watch")
    virtual_lab.collect("every.toml")

    ((keys,),) = virtual_lab.rows("every", "SELECT DISTINCT json_keys(condition) FROM runs")
    assert {*keys} == factors_of_the_page() | {OF_A_BENCHMARK, OF_A_COMMAND}
    found = {(network, launcher): seen for network, launcher, seen in clients(virtual_lab)}
    slow = f"delay={DELAY_MS}ms,to={n1}"
    assert found.keys() == {*product(("none", slow), ("bare", "unshare"))}
    for (network, launcher), (first, second) in found.items():
        assert {first.node, second.node} == {"v1", "v2"}
        assert first.kernel == second.kernel == kernel
        assert first.pings == second.pings == 3
        assert max(first.begin_s, second.begin_s) < min(first.end_s, second.end_s), "parallel"
        added_ms = DELAY_MS if network == slow else 0
        for one in (first, second):
            assert added_ms <= one.least_ms < added_ms + BUSY_MS
            assert (one.space in spaces) == (launcher == "bare")
    tags = virtual_lab.rows("every", "SELECT run_id, node, value FROM tags WHERE key = 'cache'")
    assert sorted((node, value) for _, node, value in tags) == [
        (node, "cold") for node in ("v1", "v2") for _ in range(len(found))
    ]
