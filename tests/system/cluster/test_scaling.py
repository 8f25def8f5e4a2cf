"""A study over nodes and tasks: NPB on 1, 2 and 4 nodes of the real cluster, 1 and 2 ranks on each."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.throwaway_lab import Lab

STUDY = """
[study]
name = "scaled"
repeat = 2
blocks = 2
scaling = { kind = "strong", over = ["nodes", "tasks_per_node"] }
[job]
time_limit = "00:03:00"
cpus_per_task = 1
retries = 2  # daemons of Open MPI on one machine sometimes make one folder at once
[factors]
nodes = [1, 2, 4]
tasks_per_node = [1, 2]
[baseline]
nodes = 1
within = ["tasks_per_node"]
[[benchmark]]
use = "npb"
kernel = ["ep", "cg"]
class = "S"
implementation = "steelyard"
"""
SIZES = [(nodes, tasks) for nodes in (1, 2, 4) for tasks in (1, 2)]


@pytest.mark.slow
def test_a_study_over_nodes_and_tasks(lab: Lab) -> None:
    """Each run has the nodes, the ranks and the threads of its condition, and its own baseline."""
    (lab.work / "scaled.toml").write_text(STUDY, encoding="utf-8")
    told = lab.steelyard("check", "scaled.toml")
    assert "nodes=4 tasks_per_node=2: 4 runs" in told
    assert "nodes       partition" in told
    lab.steelyard("submit", "scaled.toml")
    lab.wait_study("scaled.toml")
    lab.collect("scaled.toml")

    assert lab.rows("scaled", "SELECT state, valid, count(*) FROM runs GROUP BY ALL") == [
        ("completed", True, 24)
    ]
    sizes = lab.rows(
        "scaled",
        "SELECT (r.condition->>'nodes')::INT, (r.condition->>'tasks_per_node')::INT, "
        "(r.parameters->>'ranks')::INT, a.NNodes::INT, count(*) FROM runs AS r "
        "JOIN accounting AS a ON a.run_id = r.run_id AND a.step IS NULL GROUP BY ALL",
    )
    assert Counter(sizes) == Counter((n, t, n * t, n, 4) for n, t in SIZES)
    records = lab.rows(
        "scaled",
        "SELECT (r.condition->>'nodes')::INT AS nodes, count(*) FROM runs AS r "
        "JOIN records USING (run_id) GROUP BY ALL ORDER BY ALL",
    )
    assert records == [(1, 8), (2, 16), (4, 32)]  # one of every node that a run had
    assert lab.rows("scaled", "SELECT scaling->>'kind', scaling->'over' FROM meta") == [
        ("strong", '["nodes","tasks_per_node"]')
    ]
    baselines = lab.rows(
        "scaled",
        "SELECT DISTINCT (condition->>'nodes')::INT FROM runs WHERE is_baseline",
    )
    assert baselines == [(1,)]
    out = lab.steelyard("report", "scaled.toml", "-o", "report.html")
    assert "baseline: nodes=1 at each level of tasks_per_node" in out
