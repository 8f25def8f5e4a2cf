"""`steelyard doctor --nodes`: the nodes' reports, summarized, and nodes without a report."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

from tests.unit.doctor.test_remote_nodes import here

from steelyard.wrappers.base.doctor_check import Check
from steelyard.wrappers.doctor import remote_nodes
from steelyard.wrappers.doctor.remote_nodes import Answer

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = ROOT / "build/bin/steelyard-node"
RIGHT = (Check("energy", "ok", "package-0"), Check("netem states", "ok", "0 hold"))
SHORT = (RIGHT[0],)


def test_the_program_is_found_where_jobs_have_it(tmp_path: Path) -> None:
    (answer,) = remote_nodes.query_nodes(["x"], here, None)
    assert answer.checks[:2] and answer.why == ""
    (answer,) = remote_nodes.query_nodes(["x"], here, tmp_path / "it's not here")
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
    said = {
        name: remote_nodes.query_node(name, ["/bin/sh", "-c", script]).why
        for name, script in told.items()
    }
    assert said == {
        "old": "steelyard-node: unknown command 'doctor'",
        "mute": "exit code 9, and no word why",
        "odd": "exit code 0, and no word why",
        "empty": "exit code 0, and no word why",
    }
    noisy = f"echo '[motd]'; echo welcome; echo '{json.dumps([asdict(RIGHT[0])])}'"
    assert remote_nodes.query_node("noisy", ["/bin/sh", "-c", noisy]) == Answer("noisy", SHORT)
    assert remote_nodes.query_node("gone", [str(tmp_path / "none")]).why.endswith(
        "No such file or directory"
    )


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
