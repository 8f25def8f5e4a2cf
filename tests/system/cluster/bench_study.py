"""A study of one benchmark on a throwaway cluster, from its submission to its database."""

from __future__ import annotations

import json
import sys

from tests.throwaway_lab import Lab, until

HEAD = """
[study]
name = "bench"
repeat = 1
[job]
nodes = {nodes}
time_limit = "00:03:00"
time_out = "00:02:00"
"""


def collected(lab: Lab, text: str) -> None:
    """The study, from its submission to its database."""
    (lab.work / "bench.toml").write_text(text, encoding="utf-8")
    lab.steelyard("submit", "bench.toml")
    until(lambda: is_over(lab), "every run has ended", limit_s=400)
    lab.collect("bench.toml")
    wrong = lab.rows("bench", "SELECT variant, reason FROM runs WHERE state <> 'completed'")
    assert wrong == []


def is_over(lab: Lab) -> bool:
    """A guest's processes take their time: longer than one command of the lab may."""
    done = lab.run(
        sys.executable, "-m", "steelyard.wrappers.commands.cli", "status", "bench.toml", "--json"
    )
    said = json.loads(done.stdout)
    return bool(said["done"] + said["failed"] == said["total"])
