"""collect() while runs run: what has just begun is running, one attempt, and no gap."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.unit.collect import study as HELP

from steelyard.wrappers.study.folder import StudyDir, lock_study

query, run_id = HELP.query, HELP.run_id


@pytest.fixture
def study(tmp_path: Path) -> Any:
    study = HELP.Study(tmp_path)
    study.everything()
    return study


def begun(study: Any, run: str, attempt: str, s_ago: float) -> Path:
    """A folder whose run has not written its result.json yet."""
    folder = Path(study.dir / "runs" / run / attempt)
    folder.mkdir(parents=True)
    os.utime(folder, (study.now_unix_s - s_ago,) * 2)
    return folder


def attempts(study: Any, run: str) -> list[tuple[str, str]]:
    return query(study, f"SELECT attempt, state FROM attempts WHERE run_id = '{run}' ORDER BY ALL")


def gaps(study: Any, attempt: str) -> list[str]:
    rows = query(study, f"SELECT kind FROM gaps WHERE attempt = '{attempt}'")
    return [kind for (kind,) in rows]


def test_a_run_that_has_just_begun_is_one_attempt(study: Any) -> None:
    """Its task still waits in sacct's list, and its folder is empty."""
    run = run_id("waiting", 2)
    begun(study, run, "24.0", 5)
    study.collect()
    assert attempts(study, run) == [("24.0", "running")]
    assert gaps(study, "24.0") == []
    assert query(study, f"SELECT state, attempts FROM runs WHERE run_id = '{run}'") == [
        ("running", 1)
    ]


def test_a_job_that_runs_may_still_write_its_result(study: Any) -> None:
    begun(study, run_id("running"), "21.0", 600)
    study.collect()
    assert attempts(study, run_id("running")) == [("21.0", "running")]
    assert gaps(study, "21.0") == []


def test_without_accounting_what_began_is_running(study: Any) -> None:
    run = run_id("waiting", 2)
    study.now_unix_s += 3600
    begun(study, run, "24.0", 600)
    study.accounting.is_away = True
    study.collect()
    assert attempts(study, run) == [("24.0", "running")]


def test_a_folder_of_the_users_is_no_attempt(study: Any) -> None:
    study.collect()
    right = query(study, "SELECT run_id, attempt, state FROM attempts ORDER BY ALL")
    folder = study.dir / "runs" / run_id("twonodes")
    for name in ("plots", "tmp.d", "old.11.0", "11.0.bak", ".cache"):
        (folder / name).mkdir()
    study.collect()
    assert query(study, "SELECT run_id, attempt, state FROM attempts ORDER BY ALL") == right
    run = f"SELECT state, attempt FROM runs WHERE run_id = '{run_id('twonodes')}'"
    assert query(study, run) == [("completed", "11.0")]


def test_what_began_long_ago_and_left_nothing_is_lost(study: Any) -> None:
    """By now the accounting must have reported it."""
    run = run_id("unknown")
    study.now_unix_s += 3600
    begun(study, run, "24.0", 600)
    study.collect()
    assert attempts(study, run) == [("24.0", "lost")]
    assert gaps(study, "24.0") == ["result"]


def local_run(study: Any) -> str:
    """One that began long ago, of the last submission."""
    run = run_id("held")
    line = {
        "submission_id": "here", "scheduler": "local", "cluster": None, "job_id": None,
        "submitted_unix_s": study.now_unix_s - 700, "block": 0, "options": [], "run_ids": [run],
    }  # fmt: skip
    with (study.dir / "submissions.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    row = study.row("11")
    folder = study.attempt(
        run, row, state="started", scheduler="local", start_unix_s=study.now_unix_s - 600,
        end_unix_s=None,
    )  # fmt: skip
    folder.rename(folder.with_name("local.1"))
    return str(run)


def test_a_local_run_runs_as_long_as_its_submit_does(study: Any) -> None:
    run = local_run(study)
    with lock_study(StudyDir(study.dir)):
        study.collect()
    assert ("local.1", "running") in attempts(study, run)
    study.collect()
    assert ("local.1", "lost") in attempts(study, run)
