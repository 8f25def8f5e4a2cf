"""The factor cache: a cold run is valid only if every node's record states that caches were
dropped.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.collect import study as HELP

query, run_id = HELP.query, HELP.run_id
DONE = ["page cache", "dentries and inodes"]
# As `steelyard-node cache --cold` reports it.
COLD = {"requested": "cold", "done": DONE, "refused": []}
LIMITED = {"requested": "cold", "done": ["CVMFS cache", "CVMFS limit 300 MB", *DONE], "refused": []}
REFUSED = {"requested": "cold", "done": DONE, "refused": ["CVMFS cache: no repository is mounted"]}


def validity(
    tmp_path: Any, level: str, second: dict[str, Any] | None, first: Any = COLD, **result: Any
) -> tuple[bool, str | None]:
    """Of a run on two nodes; `second`: fields of the second node's record, None: it left none."""
    study = HELP.Study(tmp_path)
    path = study.dir / "plan.json"
    plan = json.loads(path.read_text(encoding="utf-8"))
    for run in plan["runs"]:
        run["condition"]["cache"] = level
    path.write_text(json.dumps(plan), encoding="utf-8")
    both = study.row("11")
    study.attempt(run_id("twonodes"), both, **result)
    study.record(both, both.nodes[0], cache=first)
    if second is not None:
        study.record(both, both.nodes[1], **second)
    study.collect()
    sql = f"SELECT valid, invalid_reason FROM runs WHERE run_id = '{run_id('twonodes')}'"
    ((valid, reason),) = query(study, sql)
    return valid, reason and reason.replace(both.nodes[1], "SECOND").replace(both.nodes[0], "FIRST")


@pytest.mark.parametrize("level", ["cold", "warm"])
def test_caches_as_the_level_says(tmp_path: Any, level: str) -> None:
    document = COLD if level == "cold" else None
    assert validity(tmp_path, level, {"cache": document}, document) == (True, None)


def test_a_limit_of_cvmfs(tmp_path: Any) -> None:
    assert validity(tmp_path, "cold:cvmfs=300", {"cache": LIMITED}, LIMITED) == (True, None)


@pytest.mark.parametrize(
    ("level", "second", "reason"),
    [
        ("cold", None, "SECOND left no record"),
        ("cold", {"cache": None}, "SECOND: its caches were not dropped"),
        (
            "cold",
            {"cache": None, "missing": {"cache": "asked for, not in place yet: --cache=cold"}},
            "SECOND: asked for, not in place yet: --cache=cold",
        ),
        ("cold", {"cache": COLD | {"done": DONE[:1]}}, "SECOND: dentries and inodes: not done"),
        ("cold", {"cache": REFUSED}, "SECOND: refused: CVMFS cache: no repository is mounted"),
        ("cold:cvmfs=300", {"cache": LIMITED}, "FIRST: CVMFS limit 300 MB: not done"),
        ("warm", {"cache": None}, "FIRST: they were dropped"),
    ],
)
def test_caches_that_are_not_as_the_level_says(
    tmp_path: Any, level: str, second: dict[str, Any] | None, reason: str
) -> None:
    expected = f"cache={level} was requested: {reason}"
    assert validity(tmp_path, level, second) == (False, expected)


def test_a_second_try_finds_warm_caches(tmp_path: Any) -> None:
    tries = [{"state": "failed", "reason": "x"}]
    assert validity(tmp_path, "cold", {"cache": COLD}, tries=tries) == (
        False,
        "cache=cold was requested: the run was begun 2 times in one job, which drops them once",
    )
