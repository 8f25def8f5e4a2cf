"""Studies that repeat until their intervals are narrow enough."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from steelyard.analysis.stats.basics import mean_interval
from steelyard.analysis.stats.planning import FIRST_LOOK, STOPPING_CONFIDENCE
from steelyard.analysis.summary import stopping
from steelyard.wrappers.commands import cli

Write = Callable[..., Path]
TOML = """
[study]
name = "narrow"
repeat = {repeat}
blocks = 2
stop = {{ half_width = "{width}", max_repeat = {most} }}
[[benchmark]]
use = "filesystem"
size = "64KiB"
iterations = 1
"""


def submit(write_study: Write, **settings: Any) -> Path:
    values = {"repeat": 4, "width": "90%", "most": 20} | settings
    path = write_study(text=TOML.format(**values))
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    return path


NUMBERS = itertools.count()


def row(values: list[float], runs_a_job: int = 1, runs_a_block: int = 1) -> Any:
    jobs = {f"r{number}": str(number // runs_a_job) for number in range(len(values))}
    return SimpleNamespace(
        metric=SimpleNamespace(is_primary=True),
        run_ids=tuple(jobs),
        group=SimpleNamespace(
            variant="x",
            label=f"n={next(NUMBERS)}",
            runs=tuple(jobs),
            jobs=jobs,
            blocks={run: n // runs_a_block for n, run in enumerate(jobs)},
        ),
        values=tuple(values),
        n=len(values),
        interval=mean_interval(values) if values else None,
    )


def summary(*series: list[float]) -> Any:
    return of_rows(*(row(values) for values in series))


def of_rows(*rows: Any) -> Any:
    return SimpleNamespace(rows=list(rows), groups=[one.group for one in rows])


def steady(n: int, sd: float = 0.02) -> list[float]:
    return (1 + sd * np.random.default_rng(1).standard_normal(n)).tolist()


def test_no_look_before_the_fifteenth_run() -> None:
    assert stopping.compute_need(summary(steady(8, 1e-6)), 0.01).repeats == FIRST_LOOK - 8
    assert stopping.compute_need(summary(steady(15, 1e-6)), 0.01).repeats == 0


def test_the_widest_decides() -> None:
    need = stopping.compute_need(summary(steady(40, 1e-6), steady(40, 0.05)), 0.01)
    assert (need.judged, need.too_wide) == (2, 1) and 20 < need.repeats <= 40


def test_a_study_at_most_doubles() -> None:
    assert stopping.compute_need(summary(steady(20, 0.5)), 1e-6).repeats == 20


def test_runs_of_one_job_or_block_are_one_look_at_it() -> None:
    """60 runs in 12 jobs, each with its own luck: 12 values, and those are not enough."""
    chance = np.random.default_rng(4)
    values = [(1 + luck) for luck in 0.01 * chance.standard_normal(12) for _ in range(5)]
    rows = row(values), row(values, 5, 5), row(values, 1, 5)  # alone, of one job, of one block
    alone, by_job, by_block = (of_rows(one) for one in rows)
    assert stopping.compute_need(alone, 0.01).repeats == 0
    for shared in (by_job, by_block):
        assert stopping.compute_need(shared, 0.01).repeats == 5 * (FIRST_LOOK - 12)


def test_what_has_no_mean_does_not_count() -> None:
    need = stopping.compute_need(summary([], [0.0] * 20, steady(20, 1e-6)), 0.01)
    assert (need.judged, need.repeats) == (1, 0)


@pytest.mark.parametrize("survivors", [0, 1, 7])
def test_conditions_whose_runs_fail_let_nothing_grow_and_are_named(survivors: int) -> None:
    """15 runs, most without a value: neither "enough" for all, nor more runs that fail at each submit."""
    failing = row(steady(survivors, 0.5))
    failing.group.runs = tuple(f"r{number}" for number in range(15))
    need = stopping.compute_need(of_rows(row(steady(20, 1e-6)), failing), 0.01)
    assert (need.judged, need.too_wide, need.repeats) == (1, 0, 0)
    assert need.failing == (f"x · {failing.group.label}",)


def test_a_condition_half_of_whose_runs_gave_a_value_is_judged() -> None:
    half = row(steady(8, 0.5))
    half.group.runs = tuple(f"r{number}" for number in range(16))
    need = stopping.compute_need(of_rows(half), 0.01)
    assert (need.judged, need.repeats, need.failing) == (1, 8, ())


def test_the_estimate_reaches_the_width() -> None:
    values = steady(300, 0.05)
    n = 20
    for _ in range(6):
        need = stopping.compute_need(summary(values[:n]), 0.01)
        n += need.repeats
    assert need.repeats == 0
    found = mean_interval(values[:n], STOPPING_CONFIDENCE)
    assert found.half_width is not None and found.half_width <= 0.01 * found.mean
    assert replace(found, n=n) == found


@pytest.mark.parametrize(
    ("stop", "words"),
    [
        ('{ half_width = "1%", max_repeat = 3 }', "at least repeat = 4"),
        ('{ half_width = "0%" }', "a share of the mean above zero"),
        ('{ half_width = "1%", maximum = 3 }', "unknown key"),
        ('{ max_repeat = 30 }', "a share of the mean above zero"),
        ('"1%"', "a table"),
    ],
)  # fmt: skip
def test_a_stop_that_is_wrong(
    write_study: Write, capsys: pytest.CaptureFixture[str], stop: str, words: str
) -> None:
    path = write_study(
        text=f'[study]\nrepeat = 4\nstop = {stop}\n[[benchmark]]\nuse = "filesystem"\n'
    )
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 2
    assert words in capsys.readouterr().err
