"""`steelyard doctor --nodes`: what nodes say, summed up, and who says nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from steelyard.analysis.sources.hostlist import expand_nodes
from steelyard.wrappers.base.check import Check
from steelyard.wrappers.doctor import groups, nodes
from steelyard.wrappers.doctor.nodes import Answer
from steelyard.wrappers.schedulers import known
from steelyard.wrappers.schedulers.pbs.openpbs import OpenPbs
from steelyard.wrappers.schedulers.pbs.torque import Torque

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build/bin/steelyard-node"
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
    assert list(groups.lines(answers)) == [
        "n[1,3,5] (3 of 7)",
        "  ok       energy: package-0",
        "  ok       netem states: 0 hold",
        "n2 (1 of 7)",
        "  warning  energy: no RAPL",
        "           -> try: modprobe",
        "n4 (1 of 7)",
        "  -        netem states: not told here",
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
    assert groups.fold(names) == folded
    assert sorted(expand_nodes(folded)) == sorted(names)


def test_the_program_is_found_where_jobs_have_it(tmp_path: Path) -> None:
    (answer,) = nodes.ask_all(["x"], here, None)
    assert answer.checks[:2] and answer.why == ""
    (answer,) = nodes.ask_all(["x"], here, tmp_path / "it's not here")
    assert (answer.checks, answer.why) == (
        (),
        f"steelyard-node is at none of {tmp_path}/it's not here",
    )


def test_whoever_does_not_answer_is_told_with_the_first_that_was_said(tmp_path: Path) -> None:
    told = {
        "old": "echo \"steelyard-node: unknown command 'doctor'\" >&2; echo usage >&2; exit 2",
        "mute": "exit 9",
        "odd": "echo '[{\"name\": 1}]'",
        "empty": "echo '[]'",
    }
    said = {name: nodes.ask(name, ["/bin/sh", "-c", script]).why for name, script in told.items()}
    assert said == {
        "old": "steelyard-node: unknown command 'doctor'",
        "mute": "exit code 9, and no word why",
        "odd": "exit code 0, and no word why",
        "empty": "exit code 0, and no word why",
    }
    noisy = f"echo '[motd]'; echo welcome; echo '{json.dumps([asdict(RIGHT[0])])}'"
    assert nodes.ask("noisy", ["/bin/sh", "-c", noisy]) == Answer("noisy", SHORT)
    assert nodes.ask("gone", [str(tmp_path / "none")]).why.endswith("No such file or directory")


def test_ssh_asks_for_no_password_and_quotes_what_it_runs() -> None:
    argv = nodes.by_ssh("-oProxyCommand=x", ["/bin/sh", "-c", "echo a b"])
    assert argv[-3:] == ["--", "-oProxyCommand=x", "/bin/sh -c 'echo a b'"]
    assert "BatchMode=yes" in argv


def test_slurm_gives_each_node_a_job_that_does_not_queue() -> None:
    argv = known.kind("slurm")(Path()).on_node("n1", ["true"])
    assert argv[0] == "srun" and argv[-1] == "true"
    assert {"--nodelist=n1", "--immediate=20", "--ntasks=1"} <= set(argv)


def test_moms_run_commands_within_a_job_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PBS_JOBID", raising=False)
    assert known.kind("pbs")(Path()).on_node("n1", ["true"]) == []
    assert Torque().on_node("n1", ["true"]) == ["pbsdsh", "-h", "n1", "true"]
    assert OpenPbs().on_node("n1", ["true"]) == ["pbs_tmrsh", "n1", "true"]


def test_the_command_asks_each_node_and_sums_up(tmp_path: Path) -> None:
    """By an ssh that knows two nodes, both this machine."""
    (tmp_path / "ssh").write_text(
        '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\n'
        'case $2 in n[12]) exec /bin/sh -c "$3";; esac\n'
        'echo "ssh: connect to host $2: No route to host" >&2; exit 255\n'
    )
    (tmp_path / "ssh").chmod(0o755)
    argv = [
        sys.executable, "-m", "steelyard.wrappers.commands.cli", "doctor", "--nodes=n[1-3]",
        "--by=ssh", f"--node-program={PROGRAM}",
    ]  # fmt: skip
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert re.findall(r"(?m)^\S.*", done.stdout) == ["n[1-2] (2 of 3)", "n3 (1 of 3)"]
    assert done.stdout.endswith("  UNREACHED ssh: connect to host NODE: No route to host\n")
    done = subprocess.run([*argv, "--json"], env=env, capture_output=True, text=True, check=False)
    answers = json.loads(done.stdout)
    assert [(one["node"], bool(one["checks"])) for one in answers] == [
        ("n1", True),
        ("n2", True),
        ("n3", False),
    ]
