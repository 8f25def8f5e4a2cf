"""The benchmark xrootd between two guests, with and without a delay on the way."""

from __future__ import annotations

import json

from tests.throwaway_lab import Lab

from steelyard.jobscripts.hep import input_files

RECIPE = {"structure": "jagged", "compression": "zlib", "events": 4000, "cluster": 500, "seed": 1}
STUDY = """
[study]
name = "small"
repeat = 1
[job]
nodes = 2
constraint = "virtual"
time_limit = "00:02:00"
[factors]
network = ["none", "delay=25ms,to={guests}"]
[baseline]
network = "none"
[[benchmark]]
use = "xrootd"
events = 4000
cluster = 500
step = 500
"""
MANY = """
[study]
name = "small"
repeat = 1
[job]
nodes = 3
time_limit = "00:03:00"
[factors]
clients = [1, 5, 10]
[[benchmark]]
use = "xrootd"
mode = "xrdcp"
events = 4000
cluster = 500
"""


def test_clients_are_on_all_nodes_but_the_servers(lab: Lab) -> None:
    """With one server and two nodes, each client copies the complete file, and its time is
    reported.

    The server counts as many opens, and sends as many bytes.
    """
    (lab.work / "small.toml").write_text(MANY, encoding="utf-8")
    known = input_files.keep_file(lab.work / "small.study" / "data", RECIPE)
    lab.steelyard("submit", "small.toml")
    lab.wait_study("small.toml")
    lab.collect("small.toml")
    assert lab.rows("small", "SELECT state, reason FROM runs") == [("completed", None)] * 3
    # Which nodes Slurm takes depends on what else is in the queue.
    sql = "SELECT value FROM tags WHERE key = 'client_nodes'"
    nodes = [value.split() for (value,) in lab.rows("small", sql)]
    assert sorted(len({*names}) for names in nodes) == [1, 2, 2]
    assert all(len({*names}) == len(names) for names in nodes), nodes
    assert figures(lab, "bytes_read") == [clients * known["bytes"] for clients in (1, 5, 10)]
    assert sorted(opens(lab)) == [1, 5, 10]
    # A checksum of 4 bytes for each 4 KB, and the answers to logins: some 300 bytes a client.
    for told, clients in zip(figures(lab, "server_bytes"), (1, 5, 10), strict=True):
        assert clients * known["bytes"] < told < clients * (1.002 * known["bytes"] + 1000) + 1000
    sql = (
        "SELECT count(*) FROM results WHERE metric = 'client_seconds' GROUP BY run_id ORDER BY ALL"
    )
    assert lab.rows("small", sql) == [(1,), (5,), (10,)]


def figures(lab: Lab, metric: str) -> list[float]:
    sql = f"SELECT value FROM results WHERE metric = '{metric}' ORDER BY value"
    return [value for (value,) in lab.rows("small", sql)]


def opens(lab: Lab) -> list[int]:
    """Of the input, as each run's server counts them."""
    outputs = [path.read_text() for path in lab.work.glob("small.study/runs/*/*/out.0")]
    lines = [json.loads(line) for text in outputs for line in text.splitlines()]
    return [line["counts"]["opens"] for line in lines if line["kind"] == "server"]


def test_a_delay_between_client_and_server_shows_in_the_time(virtual_lab: Lab) -> None:
    """Client on v1, server on v2: the same requests, each of which waits for 50 ms."""
    lab = virtual_lab
    network = lab.cluster.state.network
    assert network is not None
    # The guests' addresses, .11 and .12, and neither the controller's nor n1's.
    guests = network.address("v1").rpartition(".")[0] + ".8/29"
    (lab.work / "small.toml").write_text(STUDY.format(guests=guests), encoding="utf-8")
    input_files.keep_file(lab.work / "small.study" / "data", RECIPE)  # a guest would take long
    lab.steelyard("submit", "small.toml")
    # Python with uproot takes its time to start where every system call is slow.
    lab.wait_study("small.toml")
    lab.collect("small.toml")
    assert lab.rows("small", "SELECT state, valid FROM runs") == [("completed", True)] * 2

    sql = "SELECT value FROM results JOIN runs USING (run_id) WHERE metric = '{}' ORDER BY is_baseline"
    figures = {
        name: [value for (value,) in lab.rows("small", sql.format(name))]
        for name in ("seconds", "vector_read_requests", "server_vector_read_requests", "wait_share")
    }
    # 8 steps; opening the file, and three reads before the first step, wait too.
    assert figures["vector_read_requests"] == figures["server_vector_read_requests"] == [8, 8]
    # The plain run's time is no reference: single runs on a busy machine vary.
    assert figures["seconds"][0] * figures["wait_share"][0] > 8 * 0.05, "each request waited"
    nodes = lab.rows("small", "SELECT DISTINCT key, value FROM tags WHERE key = 'server_node'")
    assert nodes == [("server_node", "v2")]
    rtt = lab.rows("small", "SELECT max(rtt_during_start_s) - max(rtt_before_s) FROM network")[0][0]
    assert rtt > 0.02, "the delay was there"
