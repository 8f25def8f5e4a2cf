"""`steelyard status --watch`: the whole screen of a terminal, lines elsewhere, and when it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from steelyard.wrappers.commands import cli
from steelyard.wrappers.schedulers.slurm import task_states as slurm_task_states
from steelyard.wrappers.study import plan
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.submit import status, status_watch
from steelyard.wrappers.submit.run_state import RunState
from steelyard.wrappers.submit.status import Counts, Failure, Progress

Finish = Callable[..., None]


@pytest.fixture
def study(submitted: StudyDir) -> StudyDir:
    return submitted


def progress(**changed: Any) -> Progress:
    found: dict[str, Any] = {
        "study": "demo", "study_dir": "/s", "unix_s": 0.0, "total": 40, "done": 12, "running": 4,
        "waiting": 22, "failed": 2, "planned": 0, "time_left_s": 80.0, "note": None,
        "conditions": [
            Counts("v", f"clients={n}", 4, 4 if n < 3 else 1, 0, 3 if n >= 3 else 0, 0, 0, 0)
            for n in range(10)
        ],
        "failures": [
            Failure(f"r{n}", "v", "clients=2", "failed", f"exit code {n}", f"/s/runs/r{n}/7.0", n)
            for n in range(9)
        ],
        "runs_per_hour": 120.0,
    }  # fmt: skip
    return Progress(**(found | changed))


def drawn(found: Progress, width: int, height: int) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=width, height=height).print(status_watch.render_screen(found, height))
    return [line.rstrip() for line in file.getvalue().splitlines()]


@pytest.mark.parametrize(("width", "height"), [(120, 40), (80, 24), (40, 24)])
def test_a_screen_has_room_for_all_of_it(width: int, height: int) -> None:
    lines = drawn(progress(), width, height)
    assert len(lines) <= height and all(len(line) <= width for line in lines)
    text = "\n".join(lines)
    assert "demo  12 of 40 done" in text
    assert "120 runs an hour" in text and "80 s left" in text
    assert "clients=9" in text
    assert "failed: r8" in text and "exit code 8" in text and "runs/r8/7.0" in text
    assert text.count("failed: r") == (5 if height == 40 else 2)


def test_where_there_is_no_room_what_is_done_goes_first() -> None:
    lines = drawn(progress(failures=[]), 80, 17)
    text = "\n".join(lines)
    assert [f"clients={n}" in text for n in range(10)] == [False] * 3 + [True] * 7
    assert "… and 3 more" in text


def test_a_state_that_no_run_is_in_has_no_column() -> None:
    assert "cancelled" not in "\n".join(drawn(progress(), 80, 30))
    one = Counts("v", "clients=1", 4, 1, 0, 0, 0, 3, 0)
    text = "\n".join(drawn(progress(conditions=[one], cancelled=3), 80, 30))
    assert "condition  done  running  waiting  failed  cancelled" in text and "3 cancelled" in text


def test_cancelled_runs_are_not_failed(
    study: StudyDir, slurm: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm.end_jobs("CANCELLED by 0")
    found = status.read_progress(study.path)
    assert (found.failed, found.cancelled, found.failed_runs) == (0, 16, [])
    assert sum(one.cancelled for one in found.conditions) == 16
    capsys.readouterr()
    assert cli.main(["status", str(study.path)]) == 0
    assert "0 failed, 16 cancelled of 16" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("reason", "is_stuck"),
    [
        ("PartitionNodeLimit", True),
        ("PartitionTimeLimit", True),
        ("QOSMaxCpuPerJobLimit", True),
        ("AssocMaxWallDurationPerJobLimit", True),
        ("DependencyNeverSatisfied", True),
        ("JobHeldUser", True),
        ("Priority", False),
        ("Resources", False),
        ("Dependency", False),
        ("AssocMaxJobsLimit", False),
        ("QOSMaxJobsPerUserLimit", False),
        ("BeginTime", False),
        ("JobArrayTaskLimit", False),
        ("ReqNodeNotAvail, UnavailableNodes:n1", False),
        ("None", False),
    ],
)
def test_reasons_that_do_not_go_by_themselves(reason: str, is_stuck: bool) -> None:
    assert (slurm_task_states.STUCK.fullmatch(reason) is not None) is is_stuck


def test_a_study_that_can_never_run_is_not_waited_for(
    study: StudyDir, slurm: Any, finish_run: Finish, capsys: pytest.CaptureFixture[str]
) -> None:
    """The rest has ended; PartitionNodeLimit would be waited for for ever."""
    runs = {run.run_id for run in plan.read_runs(study.plan)}
    entries = [json.loads(line) for line in study.submissions.read_text().splitlines()]
    stuck = set(entries[0]["run_ids"])
    for entry in entries[1:]:
        slurm.set_tasks(entry["job_id"], "COMPLETED")
    slurm.set_tasks(entries[0]["job_id"], "PENDING", "PartitionNodeLimit")
    for run_id in runs - stuck:
        finish_run(study.run(run_id), "1.0")
    capsys.readouterr()
    assert cli.main(["status", str(study.path), "--watch"]) == 3
    out = capsys.readouterr().out
    assert (
        f"{len(stuck)} waiting, 0 failed of 16 (waiting for: {len(stuck)} PartitionNodeLimit)"
        in out
    )
    assert f"{len(stuck)} runs wait for what does not come by itself" in out
    assert "`steelyard cancel`" in out


def test_runs_an_hour() -> None:
    run = Run("id", 1, 1, "b", {}, "v", {}, "no factors", True, 1)
    ended = [RunState(run, "completed", start_unix_s=1000.0 + n, elapsed_s=1.0) for n in range(10)]
    assert status.runs_per_hour(ended, 9e9) == pytest.approx(3600)  # over: until its end
    open_ones = [*ended, RunState(run, "running")]
    assert status.runs_per_hour(open_ones, 1020.0) == pytest.approx(1800)
    assert status.runs_per_hour([RunState(run, "pending")], 1.0) is None
