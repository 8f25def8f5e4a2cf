"""A study of one benchmark on a throwaway cluster, from its submission to its database."""

from __future__ import annotations

from tests.throwaway_lab import Lab

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
    """Submit the study, wait for it and collect it."""
    (lab.work / "bench.toml").write_text(text, encoding="utf-8")
    lab.steelyard("submit", "bench.toml")
    lab.wait_study("bench.toml")
    lab.collect("bench.toml")
    wrong = lab.rows("bench", "SELECT variant, reason FROM runs WHERE state <> 'completed'")
    assert wrong == []
