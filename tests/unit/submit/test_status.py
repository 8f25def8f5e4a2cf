"""The state of every run, from its result, the queue and the accounting; and the remaining time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.sources import sacct, study_files
from steelyard.analysis.sources.study_files import Submission
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers import retries
from steelyard.wrappers.schedulers.slurm import task_states as slurm_task_states
from steelyard.wrappers.study import folder as studydir
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.submit import run_state, status
from steelyard.wrappers.submit.run_state import RunState

Finish = Callable[..., None]


@pytest.fixture
def study(submitted: StudyDir) -> StudyDir:
    return submitted


def runs_of(study: StudyDir) -> list[Run]:
    return plan.read_runs(study.plan)


def states(study: StudyDir) -> dict[str, str]:
    return {entry.run.run_id: entry.state for entry in run_state.read_run_states(study)}


def test_a_fresh_study_waits_with_the_queues_reason(study: StudyDir) -> None:
    found = status.read_progress(study.path)
    assert (found.total, found.waiting, found.ended) == (16, 16, False)
    assert found.waiting_reasons == {"Priority": 16}
    assert found.time_left_s is None


def test_a_result_that_is_written_anew_is_seen_at_the_next_look(
    study: StudyDir, slurm: Any, finish_run: Finish
) -> None:
    run_id = json.loads(first_lines(study, 1)[0])["run_ids"][0]
    slurm.set_tasks("100", "COMPLETED")
    finish_run(study.run(run_id), "1000.0", "completed")
    (file,) = study.run(run_id).glob("*/result.json")
    before = file.stat()
    assert states(study)[run_id] == "completed"
    text = file.read_text(encoding="utf-8")
    # As long as before, and under the same times.
    file.write_text(text.replace('"completed"', '"failed"   '), encoding="utf-8")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert file.stat().st_size == before.st_size
    assert states(study)[run_id] == "failed"


def test_counts_are_of_the_files_and_the_queue(
    study: StudyDir, slurm: Any, finish_run: Finish
) -> None:
    first, second = (json.loads(line)["run_ids"] for line in first_lines(study, 2))
    slurm.set_tasks("100", "COMPLETED")
    slurm.set_tasks("101", "RUNNING")
    for run_id in first:
        finish_run(study.run(run_id), "1000.0", "failed" if run_id == first[0] else "completed")
    finish_run(study.run(second[0]), "101000.0", "started")
    found = status.read_progress(study.path)
    assert (found.done, found.failed, found.running, found.waiting) == (3, 1, 4, 8)
    assert found.time_left_s is not None
    assert found.time_left_s > 0
    assert [failure.run_id for failure in found.failures] == [first[0]]


def first_lines(study: StudyDir, count: int) -> list[str]:
    return study.submissions.read_text().splitlines()[:count]


@pytest.mark.parametrize(
    ("said", "state"),
    [
        ("CANCELLED by 1000", "cancelled"),
        ("TIMEOUT", "timeout"),
        ("NODE_FAIL", "node_fail"),
        ("OUT_OF_MEMORY", "out_of_memory"),
        ("COMPLETED", "lost"),  # the job ended well and left no result: never counted as done
        ("FAILED", "failed"),
    ],
)
def test_a_run_without_a_result_ends_as_sacct_says(
    said: str, state: str, study: StudyDir, slurm: Any
) -> None:
    slurm.end_jobs(said)
    assert set(states(study).values()) == {state}


def test_without_accounting_a_run_that_left_nothing_is_lost(study: StudyDir, slurm: Any) -> None:
    slurm.end_jobs()
    slurm.change(accounting=False)
    found = status.read_progress(study.path)
    assert {failure.state for failure in found.failures} == {"lost"}
    assert found.failures[0].reason == run_state.LOST


def test_a_run_that_was_stopped_is_what_sacct_calls_it(
    study: StudyDir, slurm: Any, finish_run: Finish
) -> None:
    slurm.end_jobs("CANCELLED by 0")
    run_id = runs_of(study)[0].run_id
    finish_run(study.run(run_id), "1.0", "failed", reason="stopped by SIGTERM before its end")
    assert states(study)[run_id] == "cancelled"


def test_a_requeued_run_waits_again_also_without_accounting(
    study: StudyDir, slurm: Any, finish_run: Finish
) -> None:
    slurm.change(accounting=False)
    run_id = json.loads(first_lines(study, 1)[0])["run_ids"][0]
    finish_run(study.run(run_id), "100.0", "failed", reason="stopped by SIGTERM before its end")
    assert states(study)[run_id] == "pending"


def test_a_run_that_just_ended_is_over_although_the_queue_still_has_it(
    study: StudyDir, slurm: Any, finish_run: Finish
) -> None:
    slurm.set_tasks("100", "RUNNING")
    run_id = json.loads(first_lines(study, 1)[0])["run_ids"][0]
    finish_run(study.run(run_id), "100000.0", "completed")
    assert states(study)[run_id] == "completed"


def test_the_last_attempt_counts(study: StudyDir, slurm: Any, finish_run: Finish) -> None:
    slurm.end_jobs()
    run_id = runs_of(study)[0].run_id
    finish_run(study.run(run_id), "9.0", "failed", start_unix_s=5.0)
    finish_run(study.run(run_id), "10.0", "completed", start_unix_s=9.0)
    assert states(study)[run_id] == "completed"


def test_a_result_cut_short_is_not_a_result(study: StudyDir, slurm: Any) -> None:
    slurm.end_jobs("NODE_FAIL")
    run_id = runs_of(study)[0].run_id
    attempt = study.run(run_id) / "1.0"
    attempt.mkdir()
    (attempt / "result.json").write_text('{"format": "steelyard-run", "ver')
    assert states(study)[run_id] == "node_fail"


def test_a_finished_study_needs_no_scheduler(
    study: StudyDir, slurm: Any, finish_run: Finish
) -> None:
    for run in runs_of(study):
        finish_run(study.run(run.run_id), "1.0")
    before = len(slurm.calls("squeue"))
    assert status.read_progress(study.path).done == 16
    assert len(slurm.calls("squeue")) == before


def test_a_scheduler_that_does_not_answer_is_noted(
    study: StudyDir, slurm: Any, finish_run: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "PATIENCE_S", 0)
    finish_run(study.run(runs_of(study)[0].run_id), "1.0")
    finish_run(study.run(runs_of(study)[1].run_id), "2.0", "started")
    slurm.fail("squeue", *["Unable to contact slurm controller"] * 9)
    found = status.read_progress(study.path)
    assert (found.done, found.running, found.waiting) == (1, 1, 14)
    assert found.note is not None
    assert "Unable to contact" in found.note
    with pytest.raises(MissingError):
        status.read_progress(study.path, strict=True)


def test_the_command_prints_counts_and_failures(
    study: StudyDir, slurm: Any, finish_run: Finish, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm.end_jobs()
    failed, *rest = runs_of(study)
    finish_run(study.run(failed.run_id), "1.0", "failed", reason="exit code 3")
    for run in rest:
        finish_run(study.run(run.run_id), "1.0")
    capsys.readouterr()
    assert cli.main(["status", str(study.path), "--watch"]) == 5
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "small: 15 done, 0 running, 0 waiting, 1 failed of 16"
    assert lines[1] == f"failed: {failed.run_id} ({failed.condition_label}): exit code 3"
    assert cli.main(["status", str(study.path), "--json"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert (document["done"], document["failed"], document["time_left_s"]) == (15, 1, 0.0)


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("7", [7]),
        ("[3-5]", [3, 4, 5]),
        ("[0-1,4%2]", [0, 1, 4]),
        ("[0-6:3]", [0, 3, 6]),
        ("N/A", []),
        ("", []),
    ],
)
def test_array_indices_are_expanded(text: str, indices: list[int]) -> None:
    assert list(slurm_task_states.expand_indices(text)) == indices


def test_of_a_requeued_task_the_last_line_counts_and_strangers_are_passed_over() -> None:
    entry = Submission("b001-x", "slurm", None, "12", 0.0, 1, [], ["a", "b", "c"])
    text = (
        "12_0|13|REQUEUED|0:0\n12_0|13|COMPLETED|0:0\n12_[1-2]|12|CANCELLED by 7|0:0\n"
        "99_0|99|FAILED|1:0\n12|12|x|0:0\n"
    )
    asked = ("JobID", "JobIDRaw", "State", "ExitCode")
    rows = sacct.parse_lines(text.replace("|", sacct.DELIMITER).splitlines(keepends=True), asked)
    tasks = slurm_task_states.parse_ended(rows, {"12": entry})
    assert {run: task.state for run, task in tasks.items()} == {
        "a": "completed",
        "b": "cancelled",
        "c": "cancelled",
    }


@pytest.mark.parametrize("start_unix_s", [None, 1000.0])
def test_of_attempts_that_began_at_once_the_later_named_counts(
    tmp_path: Path, start_unix_s: float | None
) -> None:
    """This is a job that is requeued within a clock's tick, or whose starts are not reported."""
    for number, state in enumerate(("failed", "failed", "completed")):
        folder = tmp_path / "runs" / "r" / f"7.{number}"
        folder.mkdir(parents=True)
        result = {"format": "steelyard-run", "version": 1, "state": state}
        result |= {"start_unix_s": start_unix_s}
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    last = study_files.find_last_attempt(study_files.read_run_folders(tmp_path, "r"))
    assert last is not None and last.text("state") == "completed"


def test_squeue_reasons_may_hold_bars() -> None:
    entry = Submission("b001-x", "slurm", None, "12", 0.0, 1, [], ["a", "b"])
    text = "12|0|13|RUNNING|None\n12|1|12|PENDING|Odd|reason\nnoise\n"
    tasks = slurm_task_states.parse_squeue(text, {"12": entry})
    assert (tasks["a"].state, tasks["a"].job_id) == ("running", "13")
    assert (tasks["b"].state, tasks["b"].reason) == ("pending", "Odd|reason")


def made_run(variant: str) -> Run:
    return Run("id", 1, 1, "b", {}, variant, {}, "no factors", True, 1)


def test_time_left_is_the_work_left_over_the_pace() -> None:
    short, long = made_run("short"), made_run("long")
    found = [
        RunState(short, "completed", start_unix_s=1000.0, elapsed_s=10.0),
        RunState(long, "completed", start_unix_s=1000.0, elapsed_s=30.0),
        RunState(short, "pending"),
        RunState(long, "pending"),
        RunState(long, "running"),
    ]
    # 40 s of work in 40 s: one at a time; 10 + 30 + 30 are left.
    assert status.time_left_s(found, 1040.0) == pytest.approx(70.0)
    # In 20 s: two at a time.
    assert status.time_left_s(found, 1020.0) == pytest.approx(35.0)


def test_a_pause_between_two_stretches_of_work_does_not_count() -> None:
    run = made_run("short")
    found = [
        RunState(run, "completed", start_unix_s=0.0, elapsed_s=10.0),
        RunState(run, "completed", start_unix_s=1_000_000.0, elapsed_s=10.0),
        RunState(run, "pending"),
    ]
    assert status.time_left_s(found, 1_000_010.0) == pytest.approx(10.0)


def test_a_study_is_found_by_file_folder_and_name(
    study: StudyDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = study.path
    named_by_its_file = folder.parent / "study"
    for text in (folder, folder.parent / "study.toml", folder.parent / "small", named_by_its_file):
        assert studydir.resolve_study(str(text)) == folder
    monkeypatch.chdir(folder.parent)
    assert studydir.resolve_study(None).absolute() == folder
    assert studydir.resolve_study("small").absolute() == folder


def test_a_study_that_is_not_there_is_told_with_those_that_are(
    study: StudyDir, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert cli.main(["status", str(study.path.parent / "smal")]) == 2
    err = capsys.readouterr().err
    assert "no such study; did you mean 'small'?; studies in" in err
    assert cli.main(["status", str(study.path / "runs")]) == 2
    assert "has no plan.json" in capsys.readouterr().err
