"""Clients of a benchmark on two nodes, in parallel or in turn."""

from __future__ import annotations

from tests.system.cluster.bench_study import HEAD, collected
from tests.throwaway_lab import Lab


def test_clients_in_turn_on_two_nodes(lab: Lab) -> None:
    """By their own clocks, which are one machine's: no two at the same time."""
    text = HEAD.format(nodes=1).replace("nodes = 1\n", "")
    text += '[factors]\nclients = [2]\nmode = ["parallel", "sequential"]\n'
    collected(lab, text + '[[benchmark]]\nuse = "app"\ncommand = "sleep 0.5"\n')
    overlapping = {}
    for run_id, label in lab.rows("bench", "SELECT run_id, condition_label FROM runs"):
        folder = lab.work / "bench.study/runs" / run_id
        times = sorted(
            [int(word) for word in path.read_text(encoding="ascii").split()[1:3]]
            for path in folder.glob("*/app.[01]")
        )
        assert len(times) == 2
        overlapping["sequential" in label] = times[1][0] < times[0][1]
    assert overlapping == {False: True, True: False}
