"""A status with cached results equals one without a cache, whatever was changed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base import file_changes
from steelyard.analysis.sources import study_files
from steelyard.wrappers.submit import run_state
from steelyard.wrappers.submit.run_state import RunState

from .ended_study import FIRST, RUNS, planned, settle, told

Finish = Callable[..., None]


@pytest.fixture
def study(ended_study: Path) -> Path:
    return ended_study


def from_the_start(study: Path) -> dict[str, Any]:
    """Return the status without a cache."""
    file = study / run_state.CACHE_FILE
    file.rename(study.parent / "aside")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_state, "FEWEST", 1_000_000)
            return told(study)
    finally:
        (study.parent / "aside").rename(file)


def test_a_second_look_reads_no_result_and_says_the_same(
    study: Path, results_read: list[str]
) -> None:
    first = told(study)
    assert (first["done"], first["failed"], len(results_read)) == (RUNS - 2, 2, RUNS + 1)
    assert [one["reason"] for one in first["failures"]] == [None, "exit code 3"]
    results_read.clear()
    assert told(study) == first
    assert results_read == []


def test_what_a_look_tells_of_a_run_is_the_same(study: Path) -> None:
    def states() -> list[RunState]:
        with run_state.StateCache(study) as looks:
            runs = study_files.read_plan(study).runs
            return [
                run_state.decide_state(run, looks.last_attempt(run.run_id), None) for run in runs
            ]

    first = states()
    again = states()
    assert again == first
    for old, new in zip(first, again, strict=True):
        assert old.folder and new.folder
        assert new.folder.path == old.folder.path
        for name in run_state.KEPT:
            assert (new.folder.result or {})[name] == (old.folder.result or {})[name]


def attempt(study: Path) -> Path:
    """Return the attempt of the first run."""
    return study / "runs" / FIRST / "1.0"


def write(path: Path, **fields: object) -> None:
    """Overwrite a result with other fields, in place."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def begun_again(study: Path) -> None:
    shutil.copytree(attempt(study), study / "runs" / FIRST / "1.1")
    write(study / "runs" / FIRST / "1.1" / "result.json", state="started", start_unix_s=3000.0)


def retried(study: Path) -> None:
    """--retry-failed: the failed run is completed by another job."""
    runs = study / "runs"
    shutil.copytree(attempt(study), runs / "b-00000000-002" / "7.0")
    write(runs / "b-00000000-002" / "7.0" / "result.json", start_unix_s=3000.0)


def one_letter(study: Path) -> None:
    """Of the same size, under the times that it had."""
    path = attempt(study) / "result.json"
    times, text = path.stat(), path.read_text()
    path.write_text(text.replace('"completed"', '"timeout"  '))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size


def another_in_its_place(study: Path) -> None:
    """Written whole, as the job's script does it, under the times that the old one had."""
    path = attempt(study) / "result.json"
    times, new = path.stat(), path.with_name("new")
    new.write_text(path.read_text().replace('"completed"', '"timeout"  '))
    os.utime(new, ns=(times.st_atime_ns, times.st_mtime_ns))
    new.rename(path)


def no_json(study: Path) -> None:
    (attempt(study) / "result.json").write_text("{")


def result_gone(study: Path) -> None:
    (attempt(study) / "result.json").unlink()


def result_aside(study: Path) -> None:
    (attempt(study) / "result.json").rename(attempt(study) / "result.old")


def a_fifo(study: Path) -> None:
    result_gone(study)
    os.mkfifo(attempt(study) / "result.json")


def attempt_gone(study: Path) -> None:
    shutil.rmtree(attempt(study))


def attempt_hidden(study: Path) -> None:
    attempt(study).rename(attempt(study).with_name(".1.0"))


def run_gone(study: Path) -> None:
    shutil.rmtree(attempt(study).parent)


def runs_gone(study: Path) -> None:
    shutil.rmtree(study / "runs")


def runs_exchanged(study: Path) -> None:
    """Exchange two runs; each keeps its inode and its times."""
    runs = study / "runs"
    (runs / FIRST).rename(runs / "x")
    (runs / "b-00000000-002").rename(runs / FIRST)
    (runs / "x").rename(runs / "b-00000000-002")


def restored(study: Path) -> None:
    """The whole study from a copy with its times, and one result in it another."""
    copy = study.with_name("copy")
    shutil.copytree(study, copy)
    one_letter(copy)
    shutil.rmtree(study)
    copy.rename(study)


def the_earlier_attempt(study: Path) -> None:
    """Return the earlier of two attempts, which began later than reported."""
    write(study / "runs" / "b-00000000-003" / "1.0" / "result.json", start_unix_s=5000.0)


def grown(study: Path) -> None:
    """Extend the files of an ended run."""
    plan = json.loads((study / "plan.json").read_text())
    plan["runs"].append(planned(RUNS + 1))
    (study / "plan.json").write_text(json.dumps(plan))
    shutil.copytree(attempt(study).parent, study / "runs" / f"b-00000000-{RUNS + 1:03}")


CHANGES = (
    begun_again, retried, one_letter, another_in_its_place, no_json, result_gone,
    result_aside, a_fifo, attempt_gone, attempt_hidden, run_gone, runs_gone, runs_exchanged,
    restored, the_earlier_attempt, grown,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_change_is_told_at_the_next_look(study: Path, change: Callable[[Path], None]) -> None:
    before = told(study)
    change(study)
    found = told(study)
    assert found == from_the_start(study)
    assert found != before
    settle()
    assert told(study) == found  # of a file written since
    assert told(study) == found


def test_a_result_that_comes_after_its_folder_is_told(study: Path) -> None:
    """A run that is begun again: looked at before, between and behind."""
    before = told(study)
    (study / "runs" / FIRST / "1.1").mkdir()
    settle()
    assert told(study) == told(study) == before
    shutil.copy(attempt(study) / "result.json", study / "runs" / FIRST / "1.1")
    write(study / "runs" / FIRST / "1.1" / "result.json", state="failed", start_unix_s=3000.0)
    assert told(study)["done"] == before["done"] - 1


def test_another_name_of_an_attempt_is_told(study: Path) -> None:
    """No count shows it, but the last failure's folder does."""
    failed = study / "runs" / "b-00000000-002" / "1.0"
    told(study)
    failed.rename(failed.with_name("2.0"))
    assert told(study)["failures"][0]["folder"] == str(failed.with_name("2.0"))


def test_what_lies_behind_a_link_is_read_each_time(study: Path) -> None:
    away = study.parent / "scratch"
    attempt(study).rename(away)
    attempt(study).symlink_to(away)
    settle()
    assert told(study)["done"] == RUNS - 2
    away.rename(study.parent / "moved")
    shutil.copytree(study.parent / "moved", away)
    write(away / "result.json", state="failed")
    assert told(study)["done"] == RUNS - 3


def test_a_link_that_leads_nowhere_may_lead_somewhere_later(study: Path) -> None:
    away = study.parent / "scratch"
    (study / "runs" / FIRST / "1.1").symlink_to(away)
    settle()
    assert told(study)["done"] == RUNS - 2
    shutil.copytree(attempt(study), away)
    write(away / "result.json", state="failed", start_unix_s=9000.0)
    assert told(study)["done"] == RUNS - 3


def test_what_was_written_a_moment_ago_is_read_again(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be written once more under the same times."""
    monkeypatch.setattr(file_changes, "RACE_NS", 2_000_000_000)
    told(study)
    assert not (study / run_state.CACHE_FILE).exists()
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]


def test_a_small_study_gets_no_file(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_state, "FEWEST", RUNS + 1)
    told(study)
    assert not (study / run_state.CACHE_FILE).exists()


def test_what_runs_is_not_noted(study: Path, finish_run: Finish, results_read: list[str]) -> None:
    write(attempt(study) / "result.json", state="started")
    (study / "runs" / "b-00000000-004" / "1.0" / "result.json").unlink()
    settle()
    told(study)
    results_read.clear()
    told(study)
    assert {*results_read} == {FIRST, "b-00000000-004"}
