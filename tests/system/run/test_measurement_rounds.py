"""The order of several commands' runs, what is done around each, and when it ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.run.test_measurement_rounds import course, one

from steelyard.wrappers.run.measurement import Measurement
from steelyard.wrappers.run.run_plan import Hooks, Plan


def log(path: Path) -> Hooks:
    return Hooks(*(f"echo {name} >>{path}" for name in ("setup", "prepare", "conclude", "cleanup")))


def test_what_is_done_around_runs_is_done_in_its_place(tmp_path: Path) -> None:
    path = tmp_path / "log"

    def measure(place: int, number: int, warm_up: bool) -> Measurement:
        with path.open("a") as out:
            out.write(f"{'warm' if warm_up else 'run'} {place} {number}\n")
        return one(number, 1.0)

    found = course(Plan(repeat=1, warm_up=1, interleaved=False), 2, log(path), measure)
    assert path.read_text().splitlines() == [
        line
        for place in (0, 1)
        for line in (
            *("setup", "prepare", f"warm {place} 1", "conclude"),
            *("prepare", f"run {place} 1", "conclude", "cleanup"),
        )
    ]
    assert [len(runs) for runs in found.runs] == [1, 1]


@pytest.mark.parametrize("continue_on_failure", [False, True])
def test_the_first_failure_ends_it_unless_it_is_to_go_on(
    continue_on_failure: bool, tmp_path: Path
) -> None:
    path = tmp_path / "log"
    plan = Plan(repeat=3, continue_on_failure=continue_on_failure)
    found = course(plan, 1, log(path), lambda _, n, __: one(n, 1.0, code=3 if n == 2 else 0))
    assert [run.failed for run in found.runs[0]] == [False, True, False][
        : 3 if continue_on_failure else 2
    ]
    assert path.read_text().splitlines()[-1] == "cleanup"
    if continue_on_failure:
        assert found.ended is None
    else:
        assert found.ended is not None
        assert (found.ended.exit_code, found.ended.text) == (
            3, "run 2 of true 0 failed (exit code 3)",
        )  # fmt: skip


def test_ctrl_c_keeps_what_is_known_and_cleans_up(tmp_path: Path) -> None:
    def measure(place: int, number: int, warm_up: bool) -> Measurement:
        if number == 3:
            raise KeyboardInterrupt
        return one(number, 1.0)

    found = course(Plan(repeat=9), 2, log(tmp_path / "log"), measure)
    assert found.ended is not None
    assert found.ended.exit_code == 130
    assert [len(runs) for runs in found.runs] == [2, 2]
    assert (tmp_path / "log").read_text().splitlines().count("cleanup") == 2


@pytest.mark.parametrize("name", ["setup", "prepare", "conclude", "cleanup"])
def test_a_hook_that_fails_ends_it_with_its_last_words(name: str) -> None:
    hooks = replace(Hooks(), **{name: "echo first >&2; echo oops >&2; exit 4"})
    found = course(Plan(repeat=2), 1, hooks)
    assert found.ended is not None
    assert found.ended.exit_code == 5
    assert found.ended.text.endswith("failed (exit code 4): oops")
    assert found.ended.text.startswith(f"--{name} '")
