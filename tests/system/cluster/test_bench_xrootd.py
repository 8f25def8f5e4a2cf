"""The benchmark xrootd between two nodes: with and without a delay on the way, and cancelled."""

from __future__ import annotations

import re
from pathlib import Path

from tests.throwaway_lab import Lab, command_line, processes_of, until

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


def servers(lab: Lab) -> set[str]:
    """Folders of the XRootD servers that the test's jobs have started on this machine."""
    lines = " ".join(command_line(pid) for pid in processes_of(lab.work))
    return set(re.findall(r"/tmp/steelyard-xrootd\.\w+", lines))


def test_a_cancelled_run_leaves_no_server_on_the_other_node(lab: Lab) -> None:
    """The server is a separate step, which gets SIGTERM before Slurm kills it."""
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
    lab.wait_nodes("idle", "mixed", what="the job is over")
