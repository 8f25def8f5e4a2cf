"""`steelyard doctor --nodes` through a real Slurm: its nodes answer, an unknown one is reported."""

from __future__ import annotations

import json
import sys

from tests.throwaway_lab import Lab


def test_nodes_answer_through_srun(lab: Lab) -> None:
    argv = (sys.executable, "-m", "steelyard.wrappers.commands.cli", "doctor", "--nodes=n[1-2],n99")
    answers = {one["node"]: one for one in json.loads(lab.run(*argv, "--json").stdout)}
    for name in ("n1", "n2"):
        states = {check["name"]: check["state"] for check in answers[name]["checks"]}
        assert answers[name]["why"] == ""
        assert (states["plugstack line"], states["plugin"]) == ("ok", "ok")
    assert answers["n99"]["checks"] == []
    assert "nvalid node name" in answers["n99"]["why"]
    told = lab.run(*argv)
    assert "n99 (1 of 3)" in told.stdout
    assert told.returncode == 3
