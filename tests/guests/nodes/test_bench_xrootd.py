"""The benchmark xrootd between two guests, with and without a delay on the way."""

from __future__ import annotations

from tests.throwaway_lab import Lab

from steelyard.jobscripts.hep import datafile

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


def test_a_delay_between_client_and_server_shows_in_the_time(virtual_lab: Lab) -> None:
    """Client on v1, server on v2: the same requests, each of which waits for 50 ms."""
    lab = virtual_lab
    network = lab.cluster.state.network
    assert network is not None
    # The guests' addresses, .11 and .12, and neither the controller's nor n1's.
    guests = network.address("v1").rpartition(".")[0] + ".8/29"
    (lab.work / "small.toml").write_text(STUDY.format(guests=guests), encoding="utf-8")
    datafile.keep(lab.work / "small.study" / "data", RECIPE)  # a guest would take long
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
    # Not beside the plain run's time: one run of each says little on a busy machine.
    assert figures["seconds"][0] * figures["wait_share"][0] > 8 * 0.05, "each request waited"
    assert figures["wait_share"][0] > figures["wait_share"][1]
    nodes = lab.rows("small", "SELECT DISTINCT key, value FROM tags WHERE key = 'server_node'")
    assert nodes == [("server_node", "v2")]
    rtt = lab.rows("small", "SELECT max(rtt_during_start_s) - max(rtt_before_s) FROM network")[0][0]
    assert rtt > 0.02, "the delay was there"
