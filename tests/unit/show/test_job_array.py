"""An array: what its tasks used together, and advice that holds for each of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.job import job_array
from steelyard.analysis.job.job_view import JobView
from steelyard.wrappers.show import job_document, job_table

from .test_advice import GIB, HELD, view

PART = dataclasses.replace(HELD, shares_request=True, cpu_s=None, resident_high_bytes=None)


def tasks(folder: Path, *changed: dict[str, Any]) -> list[JobView]:
    """Of 8 CPUs, 64 GiB and 8 hours each; each used 3600 s of CPU, 3 GiB, an hour, if not changed."""
    views = []
    for number, fields in enumerate(changed):
        held = dataclasses.replace(PART, **fields.pop("held", {}))
        one = view(folder / str(number), held, **fields)
        one.job_id = f"7_{number}"
        views.append(one)
    return views


def test_sums_and_the_largest(tmp_path: Path) -> None:
    big = {"record": {"memory": {"max_memory_bytes": 5 * GIB}, "cpu": {"cpu_s": 7200.0}}}
    found = job_array.summarize_tasks(tasks(tmp_path, {}, big, {"elapsed_s": 7200}))
    assert found.states == {"completed": 3}
    assert (found.cpu.used, found.cpu.allocated) == (14400.0, 8 * (3600 + 3600 + 7200))
    assert (found.memory.used, found.time.used) == (5 * GIB, 7200)
    advice = {one.about: one.text for one in found.advice}
    # Half as much again of the largest, twice the longest.
    assert "7680 MiB would have" in advice["memory"] and "(7_1 took most)" in advice["memory"]
    assert "4:00:00 has as much again" in advice["time"] and "(7_2 took most)" in advice["time"]
    assert "cpus" not in advice


@pytest.mark.parametrize(
    ("changed", "about", "why"),
    [
        ({"record": {"memory": {"max_memory_bytes": 40 * GIB}}}, {"time"}, None),  # one needs it
        ({"elapsed_s": 7 * 3600}, {"memory"}, None),
        ({"state": "failed"}, set(), "7_1: the job is failed: only one that ended well shows"),
        ({"state": "running"}, set(), "7_1: the job is running"),
        ({"elapsed_s": 5}, set(), "7_1: it took less than 60 s"),
    ],
)
def test_what_one_task_needs_is_advised_to_none(
    tmp_path: Path, changed: dict[str, Any], about: set[str], why: str | None
) -> None:
    found = job_array.summarize_tasks(tasks(tmp_path, {}, changed))
    assert {one.about for one in found.advice} == about
    assert (found.no_advice or "").startswith(why or "")


def test_what_is_not_known_of_a_task_is_at_least(tmp_path: Path) -> None:
    views = tasks(tmp_path, {}, {})
    views[1].nodes.clear()
    found = job_array.summarize_tasks(views)
    assert (found.cpu.used, found.cpu.is_least, found.energy_j) == (3600.0, True, None)


def test_the_table_ends_with_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Observed: "ask for one of 5_1, 5_2, 5_3" where users expect the array's table and sum."""
    views = tasks(tmp_path, {}, {"state": "running"})
    job_table.print_jobs(views, is_array=True)
    out = capsys.readouterr().out
    assert "7_0" in out and "7_1" in out and "all 2" in out and "1 completed, 1 running" in out
    assert (
        "CPU of all tasks: 2.00 h of 16.0 h held" in out.replace("\u202f", " ")
        or "CPU of all" in out
    )
    assert "CPU of all tasks: " in out
    whole: Any = job_document.array_json(views)
    assert (whole["tasks"], whole["cpu"]["used"]) == (2, 7200.0)
    assert whole["advice_missing"].startswith("7_1: the job is running")
