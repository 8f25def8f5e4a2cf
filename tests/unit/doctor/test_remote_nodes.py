"""`steelyard doctor --nodes`: the nodes' reports, summarized, and nodes without a report."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from steelyard.analysis.sources.slurm_field_values import expand_nodes
from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.doctor import remote_nodes
from steelyard.wrappers.doctor.remote_nodes import Answer
from steelyard.wrappers.schedulers import registry
from steelyard.wrappers.schedulers.pbs.dialects import OpenPbs, Torque

RIGHT = (Check("energy", "ok", "package-0"), Check("netem states", "ok", "0 hold"))
BUSY = (RIGHT[0], Check("netem states", "ok", "3 hold"))
POOR = (Check("energy", "warning", "no RAPL", "try: modprobe"), RIGHT[1])
SHORT = (RIGHT[0],)


def here(_: str, argv: Sequence[str]) -> list[str]:
    """This machine for any node."""
    return list(argv)


def test_nodes_that_say_the_same_are_told_together_and_the_odd_one_by_what_differs() -> None:
    answers = [
        Answer("n1", RIGHT),
        Answer("n2", POOR),
        Answer("n3", BUSY),
        Answer("n4", SHORT),
        Answer("n5", RIGHT),
        Answer("n6", why="ssh: n6: no route"),
        Answer("n7", why="ssh: n7: no route"),
    ]
    assert list(remote_nodes.format_groups(answers)) == [
        "n[1,3,5] (3 of 7)",
        "  ok       energy: package-0",
        "  ok       netem states: 0 hold",
        "n2 (1 of 7)",
        "  warning  energy: no RAPL",
        "           -> try: modprobe",
        "n4 (1 of 7)",
        "  -        netem states: not reported here",
        "n[6-7] (2 of 7)",
        "  UNREACHED ssh: NODE: no route",
    ]


@pytest.mark.parametrize(
    ("names", "folded"),
    [
        (["n1"], "n1"),
        (["n1", "n2", "n3", "n7", "login"], "n[1-3,7],login"),
        (["n09", "n10", "n9"], "n[09-10],n9"),
        (["a1b2", "a1b3", "c"], "a1b[2-3],c"),
        (["007", "008"], "[007-008]"),
    ],
)
def test_names_are_folded_as_schedulers_write_them(names: list[str], folded: str) -> None:
    assert remote_nodes.fold_node_names(names) == folded
    assert sorted(expand_nodes(folded)) == sorted(names)


def test_ssh_asks_for_no_password_and_quotes_what_it_runs() -> None:
    argv = remote_nodes.ssh_command("-oProxyCommand=x", ["/bin/sh", "-c", "echo a b"])
    assert argv[-3:] == ["--", "-oProxyCommand=x", "/bin/sh -c 'echo a b'"]
    assert "BatchMode=yes" in argv


def test_slurm_gives_each_node_a_job_that_does_not_queue() -> None:
    argv = registry.find_class("slurm")(Path()).node_command("n1", ["true"])
    assert argv[0] == "srun" and argv[-1] == "true"
    assert {"--nodelist=n1", "--immediate=20", "--ntasks=1"} <= set(argv)


def test_moms_run_commands_within_a_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PBS_JOBID", raising=False)
    assert registry.find_class("pbs")(Path()).node_command("n1", ["true"]) == []
    assert Torque().node_command("n1", ["true"]) == ["pbsdsh", "-h", "n1", "true"]
    assert OpenPbs().node_command("n1", ["true"]) == ["pbs_tmrsh", "n1", "true"]
