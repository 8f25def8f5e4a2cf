"""The factor kernel_release: a run on a node with another kernel is invalid, and names it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.analysis.collect.checks import is_release_of

query, run_id = HELP.query, HELP.run_id


@pytest.mark.parametrize(
    ("level", "release", "holds"),
    [
        ("6.1", "6.1.0-18-amd64", True),
        ("6.1", "6.1", True),
        ("6.1", "6.1-rc3", True),
        ("6.1", "6.18.5", False),
        ("6.1.0-18-amd64", "6.1.0-18-amd64", True),
        ("6.1.0-18", "6.1.0-18-rt-amd64", True),
        ("6.1.0-1", "6.1.0-18-amd64", False),
        ("3.16", "3.2.0-4-amd64", False),
        ("6.1", None, False),
    ],
)
def test_a_level_is_the_beginning_of_a_release_by_whole_numbers(
    level: str, release: str | None, holds: bool
) -> None:
    assert is_release_of(level, release) is holds


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"kernel": {"release": "6.1.176"}}, None),
        (
            {"kernel": {"release": "6.18.5"}},
            "kernel_release=6.1 was asked for: {} ran Linux 6.18.5",
        ),
        ({}, "kernel_release=6.1 was asked for: {}: not told"),
    ],
)
def test_each_node_of_a_run_must_run_it(
    tmp_path: Any, second: dict[str, Any], reason: str | None
) -> None:
    study = HELP.Study(tmp_path)
    path = study.dir / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    for run in plan["runs"]:
        run["condition"]["kernel_release"] = "6.1"
    path.write_text(json.dumps(plan), encoding="utf-8")
    both = study.row("11")
    study.attempt(run_id("twonodes"), both)
    study.record(both, both.nodes[0])
    study.record(both, both.nodes[1], probe=second)
    study.collect()
    told = query(
        study, f"SELECT valid, invalid_reason FROM runs WHERE run_id = '{run_id('twonodes')}'"
    )
    assert told == [(reason is None, reason and reason.format(both.nodes[1]))]


def test_without_any_record_nobody_knows(tmp_path: Any) -> None:
    study = HELP.Study(tmp_path)
    path = study.dir / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    for run in plan["runs"]:
        run["condition"]["kernel_release"] = "6.1"
    path.write_text(json.dumps(plan), encoding="utf-8")
    study.attempt(run_id("twonodes"), study.row("11"))
    study.collect()
    ((reason,),) = query(study, "SELECT invalid_reason FROM runs WHERE valid = false")
    assert reason == "kernel_release=6.1 was asked for, and no record says what the nodes ran"
