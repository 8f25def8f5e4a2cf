"""The benchmark xrootd between two nodes: with and without a delay on the way, and cancelled."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.throwaway_lab import Lab, command_line, processes_of, until

from steelyard.jobscripts.hep import datafile

RECIPE = {"structure": "jagged", "compression": "zlib", "events": 4000, "cluster": 500, "seed": 1}
LONG = """
[study]
name = "small"
repeat = 1
[job]
nodes = 2
time_limit = "00:02:00"
[[benchmark]]
use = "xrootd"
events = 4000
cluster = 500
iterations = 1000000
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


def servers(lab: Lab) -> set[str]:
    """Folders of the XRootD servers that the test's jobs have started on this machine."""
    lines = " ".join(command_line(pid) for pid in processes_of(lab.work))
    return set(re.findall(r"/tmp/steelyard-xrootd\.\w+", lines))


def test_a_cancelled_run_leaves_no_server_on_the_other_node(lab: Lab) -> None:
    """The server is a step of its own, which is asked to end before Slurm makes it."""
    (lab.work / "small.toml").write_text(LONG, encoding="utf-8")
    lab.steelyard("submit", "small.toml")
    tags = "small.study/runs/*/*/tags.0"  # written when the server is ready
    until(
        lambda: [p.read_text()[:14] for p in lab.work.glob(tags)] == ["server_node=n2"],
        "the server runs, on the other node",
        seen=lambda: [path.read_text() for path in lab.work.glob(tags)],
    )
    until(lambda: len(servers(lab)) == 2, "its folders are named", seen=lambda: servers(lab))
    folders = [Path(folder) for folder in servers(lab)]
    assert all(folder.exists() for folder in folders)
    lab.steelyard("cancel", "small.toml")
    until(lambda: not servers(lab), "the server has ended")
    until(lambda: not any(folder.exists() for folder in folders), "its files are gone")
    until(lambda: lab.nodes() <= {"idle", "mixed"}, "the job is over")


def test_clients_are_on_all_nodes_but_the_servers(lab: Lab) -> None:
    """One server, two nodes: each client copies the whole file, and its time is told; the server
    counts as many that opened it, and sends as much."""
    (lab.work / "small.toml").write_text(MANY, encoding="utf-8")
    known = datafile.keep(lab.work / "small.study" / "data", RECIPE)
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
