"""iperf3, nuttcp and mpi between two guests, each with its own network, in a real study."""

from __future__ import annotations

import pytest
from tests.throwaway_lab import Lab, until

STUDY = """
[study]
name = "net"
repeat = 1
[job]
time_limit = "00:02:00"
nodes = 2
[factors]
node_type = ["virtual"]
[baseline]
node_type = "virtual"
[[benchmark]]
use = "iperf3"
seconds = 1
omit = 0
congestion = "reno"
[[benchmark]]
use = "nuttcp"
protocol = "udp"
bandwidth = 10_000_000
seconds = 1
[[benchmark]]
use = "mpi"
iterations = 5
smallest = "64B"
largest = "64B"
repetitions = 1
profile = true
"""


def servers(lab: Lab, guest: str) -> set[str]:
    """Return the benchmarks' servers that run on a guest."""
    done = lab.cluster.find_guest(guest).run(["ps", "-A", "-o", "comm="], timeout_s=60)
    assert done.returncode == 0, done.stderr
    return {"iperf3", "nuttcp"} & set(done.stdout.split())


def test_network_benchmarks_measure_between_two_guests(virtual_lab: Lab) -> None:
    lab = virtual_lab
    (lab.work / "net.toml").write_text(STUDY, encoding="utf-8")
    lab.steelyard("submit", "net.toml")
    lab.wait_study("net.toml")
    lab.collect("net.toml")
    states = lab.rows("net", "SELECT benchmark, state, valid FROM runs ORDER BY ALL")
    names = ("iperf3", "mpi", "nuttcp")
    assert states == [(name, "completed", True) for name in names]

    found = dict(
        lab.rows("net", "SELECT metric, avg(value) FROM results WHERE iteration = 1 GROUP BY 1")
    )
    assert 1e6 < found["received_bits_per_s"] < 1e11
    assert 1e-6 < found["latency_s"] < 0.5
    assert found["messages"] > 0
    shares = found["compute_share"] + found["communication_share"] + found["init_share"]
    assert shares == pytest.approx(1, abs=0.01)

    tags = set(
        lab.rows("net", "SELECT benchmark, key, tags.value FROM tags JOIN runs USING (run_id)")
    )
    assert {("iperf3", "network.loopback", "false"), ("nuttcp", "network.server", "v2")} <= tags
    assert ("iperf3", "network.congestion_control", "reno") in tags
    assert "mpi.latency_s" in {key for _, key, _ in tags}
    for guest in ("v1", "v2"):
        until(lambda name=guest: not servers(lab, name), f"no server is left on {guest}")


def test_a_cancelled_job_leaves_no_server(virtual_lab: Lab) -> None:
    lab = virtual_lab
    text = STUDY.split("[[benchmark]]")[0] + '[[benchmark]]\nuse = "iperf3"\nseconds = 60\n'
    (lab.work / "net.toml").write_text(text, encoding="utf-8")
    lab.steelyard("submit", "net.toml")
    until(lambda: servers(lab, "v2"), "the server runs")
    lab.steelyard("cancel", "net.toml")
    until(lambda: not servers(lab, "v2"), "the server has ended")
