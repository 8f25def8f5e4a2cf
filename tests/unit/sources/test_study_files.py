"""plan.json, submissions.jsonl and result.json: one reader each, for collect and for status."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources import study_files
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.submit import run_state
from steelyard.wrappers.submit.run_state import RunState

RUN: Mapping[str, Any] = {
    "run_id": "b-1-001", "block": 1, "position": 1, "benchmark": "b", "parameters": {},
    "variant": "b", "condition": {"clients": 1}, "condition_label": "clients=1",
    "is_baseline": True, "repeat": 1,
}  # fmt: skip
PLAN = {"format": "steelyard-plan", "version": 1, "study": {"name": "s"}, "runs": [RUN]}
LINE: Mapping[str, Any] = {
    "submission_id": "b001-x", "scheduler": "slurm", "cluster": "c", "job_id": "12",
    "submitted_unix_s": 1.5, "block": 1, "options": [], "run_ids": ["b-1-001"],
}  # fmt: skip
RESULT = {
    "format": "steelyard-run", "version": 1, "run_id": "b-1-001", "attempt": "12.0",
    "job_id": "12", "state": "completed", "start_unix_s": 10.0, "end_unix_s": 12.0,
    "elapsed_s": 1.5,
}  # fmt: skip


def write(study_dir: Path, **changed: Any) -> Path:
    """A study of one run that is over; `changed`: of its result.json."""
    folder = study_dir / "runs" / "b-1-001" / "12.0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "result.json").write_text(json.dumps(RESULT | changed), encoding="utf-8")
    (study_dir / "plan.json").write_text(json.dumps(PLAN), encoding="utf-8")
    return study_dir


def state(study_dir: Path) -> RunState:
    (found,) = run_state.read_run_states(StudyDir(study_dir))
    return found


@pytest.mark.parametrize("changed", [{"format": "other"}, {"version": 2}, {"version": None}])
def test_a_result_of_another_version_is_nobodys(tmp_path: Path, changed: dict[str, Any]) -> None:
    """Its content may have another meaning: the job existed, and no more is known."""
    assert state(write(tmp_path)).state == "completed"
    write(tmp_path, **changed)
    assert state(tmp_path).state == "lost"
    (folder,) = study_files.read_run_folders(tmp_path, "b-1-001")
    assert folder.result is None and str(tmp_path) in str(folder.problem)


def test_true_is_no_number_of_a_result(tmp_path: Path) -> None:
    found = state(write(tmp_path, elapsed_s=True, start_unix_s=True))
    assert (found.state, found.elapsed_s, found.start_unix_s) == ("completed", None, None)


@pytest.mark.parametrize("key", RUN)
@pytest.mark.parametrize("value", [None, True, 7, "x", [], {}])
def test_a_run_of_the_plan_has_what_it_needs_or_is_one_line(
    tmp_path: Path, key: str, value: object
) -> None:
    if type(value) is type(RUN[key]):
        return
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN | {"runs": [{**RUN, key: value}]}), encoding="utf-8")
    with pytest.raises(UsageError, match=rf"plan\.json: .*'{key}'") as caught:
        plan.read_runs(path)
    assert "\n" not in str(caught.value)


def test_what_a_later_version_adds_to_a_run_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(PLAN | {"runs": [{**RUN, "more": 1}]}), encoding="utf-8")
    (run,) = plan.read_runs(path)
    assert vars(run) == RUN


def test_lines_may_follow_one_that_was_cut_short(tmp_path: Path) -> None:
    """Whoever appends ends it first; collect and status then read what came before and after."""
    whole = json.dumps(LINE | {"options": ["--comment=ü"]}, ensure_ascii=False).encode()
    cut = whole[: whole.index("ü".encode()) + 1]  # in the middle of a letter
    (tmp_path / "submissions.jsonl").write_bytes(whole + b"\n" + cut + b"\n" + whole + b"\n")
    found = study_files.read_submissions(tmp_path)
    assert [entry.job_id for entry in found] == ["12", "12"]
    assert ledger.read_submissions(StudyDir(tmp_path)) == found


@pytest.mark.parametrize(
    ("key", "value"),
    [("submitted_unix_s", True), ("run_ids", "ab"), ("job_id", 12), ("block", "1")],
)
def test_a_submission_that_is_none_is_told_with_its_line(
    tmp_path: Path, key: str, value: object
) -> None:
    text = json.dumps(LINE) + "\n" + json.dumps({**LINE, key: value}) + "\n"
    (tmp_path / "submissions.jsonl").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=f"line 2 is not understood: .*'{key}'"):
        study_files.read_submissions(tmp_path)
