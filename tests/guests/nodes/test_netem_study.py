"""A study whose factor is the network, on guests: from submit to the report."""

from __future__ import annotations

import pytest
from tests.guests.nodes.netem_guests import address, tree
from tests.throwaway_lab import Lab, until

# Somebody takes away the queue of the third; the node of the fourth has no such device.
STUDY = """
[study]
name = "wan"
repeat = 1
[job]
time_limit = "00:02:00"
exclusive = true
[factors]
node_type = ["virtual"]
network = ["none", "delay=10ms,to={n1}", "delay=77ms,to={n1}", "delay=5ms,dev=vec9"]
[baseline]
network = "none"
node_type = "virtual"
[[benchmark]]
use = "filesystem"
test = "small_file_write"
write_files = 20
iterations = 5
directory = "{directory}"
"""


def take_it_away(lab: Lab) -> None:
    """As soon as the third condition holds on one of the guests, its root is deleted."""

    def holder() -> str | None:
        names = (name for name in ("v1", "v2") if "delay 77ms" in tree(lab.cluster, name))
        return next(names, None)

    name = until(holder, "the delay of 77 ms holds", 200)
    done = lab.cluster.find_guest(name).run(["tc", "qdisc", "del", "dev", "vec0", "root"])
    assert done.returncode == 0, done.stderr


@pytest.fixture
def studied(virtual_lab: Lab) -> Lab:
    """Submitted, ended, collected."""
    text = STUDY.format(n1=address(virtual_lab.cluster, "n1"), directory="/tmp")
    (virtual_lab.work / "wan.toml").write_text(text)
    virtual_lab.steelyard("submit", "wan.toml")
    take_it_away(virtual_lab)
    virtual_lab.wait_study("wan.toml", code=5)
    virtual_lab.collect("wan.toml")
    return virtual_lab


def test_a_study_knows_what_was_asked_and_what_was_had(studied: Lab) -> None:
    n1 = address(studied.cluster, "n1")
    runs = dict(
        studied.rows("wan", "SELECT json_extract_string(condition, 'network'), state FROM runs")
    )
    assert runs == {
        "none": "completed",
        f"delay=10ms,to={n1}": "completed",
        f"delay=77ms,to={n1}": "completed",
        "delay=5ms,dev=vec9": "failed",
    }
    ((requested, applied, valid, undone, during_s),) = studied.rows(
        "wan",
        "SELECT requested, applied, valid, undone, rtt_during_end_s FROM network "
        "WHERE requested LIKE 'delay=10ms%'",
    )
    assert (requested, applied, valid, undone) == (requested, requested, True, True)
    assert 0.010 <= during_s < 0.020
    ((reason,),) = studied.rows("wan", "SELECT invalid_reason FROM runs WHERE valid = false")
    assert "77" in reason or "gone" in reason
    ((reason,),) = studied.rows("wan", "SELECT reason FROM runs WHERE state = 'failed'")
    assert "there is no network device vec9 on this node" in reason
    studied.steelyard("report", "wan.toml", "-o", "report.html")
    page = (studied.work / "report.html").read_text()
    assert f"delay=10ms,to={n1}" in page
    assert "vec9" in page
    assert "the qdisc of vec0 was gone at the end" in page or "longer than before" in page


# Without a launcher: mpirun starts its daemon on the other node by its own srun.
PROGRAM = """
[study]
name = "ranks"
repeat = 1
[job]
nodes = 2
time_limit = "00:03:00"
exclusive = true
constraint = "virtual"
[factors]
network = ["delay=3ms,to={guests}"]
[baseline]
network = "delay=3ms,to={guests}"
[[benchmark]]
use = "npb"
implementation = "steelyard"
kernel = "is"
class = "S"
ranks = 2
"""


def test_every_node_of_an_mpi_program_has_its_condition(virtual_lab: Lab) -> None:
    """Only the first had it: a container, which had it on all, seemed to cost the difference."""
    guests = address(virtual_lab.cluster, "v1").rpartition(".")[0] + ".8/29"
    (virtual_lab.work / "ranks.toml").write_text(PROGRAM.format(guests=guests))
    virtual_lab.steelyard("submit", "ranks.toml")
    virtual_lab.wait_study("ranks.toml")
    virtual_lab.collect("ranks.toml")
    rows = virtual_lab.rows("ranks", "SELECT node, valid, rtt_during_end_s FROM network")
    assert sorted(node for node, _, _ in rows) == ["v1", "v2"]
    # Its own 3 ms, the other's while that has not undone its own, and what guests on one machine take.
    assert all(valid and 0.003 <= rtt_s < 0.050 for _, valid, rtt_s in rows), rows
