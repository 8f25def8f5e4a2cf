"""A study over each node of the real cluster, one of them slow: what the report states."""

from __future__ import annotations

import re

import pytest
from tests.throwaway_lab import Lab

STUDY = """
[study]
name = "nodes"
repeat = 5
blocks = 5
[job]
time_limit = "00:02:00"
[factors]
node = "each"
[[benchmark]]
use = "app"
command = "bash {program}"
[benchmark.figures.rate]
pattern = 'rate ([0-9]+) Mop/s'
unit = "Mop/s"
better = "higher"
"""
# It takes no time and prints a speed, up to 0.2 % off, so that other load on the machine is not in it.
PROGRAM = """\
speed=100000
[[ $SLURMD_NODENAME != n2 ]] || speed=80000
echo "rate $((speed + RANDOM % 400 - 200)) Mop/s"
"""
LOWER = 20.0  # percent, of 80000 beside 100000


@pytest.mark.slow
def test_the_slow_node_is_named(lab: Lab) -> None:
    """Each node has its runs there; the interval of the slow one has the planted truth."""
    program = lab.work / "stand-in.sh"
    program.write_text(PROGRAM, encoding="utf-8")
    (lab.work / "nodes.toml").write_text(STUDY.format(program=program), encoding="utf-8")
    lab.steelyard("check", "nodes.toml")
    lab.steelyard("submit", "nodes.toml")
    lab.wait_study("nodes.toml")
    lab.collect("nodes.toml")

    ran = lab.rows(
        "nodes",
        "SELECT r.condition->>'node', a.NodeList, count(*) FROM runs AS r JOIN accounting AS a "
        "ON a.run_id = r.run_id AND a.step IS NULL WHERE r.valid GROUP BY ALL ORDER BY ALL",
    )
    assert ran == [(name, name, 5) for name in ("n1", "n2", "n3", "n4")]
    out = " ".join(lab.steelyard("report", "nodes.toml", "-o", "report.html").split())
    found = re.search(
        r"app: rate: n2 is ([\d.]+) % lower \(([\d.]+) to ([\d.]+) %\) than the median of 4 nodes "
        r"\([^)]*\); the others do not differ by more than ([\d.]+) %",
        out,
    )
    assert found, out
    mean, low, high, others = map(float, found.groups())
    assert low <= LOWER <= high
    assert 19 < mean < 21
    assert others < 2
