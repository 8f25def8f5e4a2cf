"""A node's wall clock that is set while a job is sampled: nothing that is counted moves with it."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import pytest
from tests.system import set_clock


def measured(
    sampler: Any, waiting: Any, tmp_path: Path, *offs: int
) -> tuple[Any, tuple[float, float]]:
    """A sampler whose wall clock is set to each of these in turn; how long it was at work, at least
    and at most, by a clock of our own."""
    clock = set_clock.make(tmp_path)
    before = time.monotonic()
    attached = sampler.attach("--rate", "50", prefix=clock.prefix)
    begun = time.monotonic()
    for off in (0, *offs):
        clock.set_off(off)
        seen = len(attached.samples)
        waiting("samples", lambda: len(attached.samples) > seen + 50)  # noqa: B023
    ended = time.monotonic()
    attached.end()
    return attached, (ended - begun, time.monotonic() - before)


@pytest.mark.parametrize(
    ("offs", "steps", "step_s"),
    [
        ((), 0, 0),
        ((-3600,), 1, -3600),
        ((3600,), 1, 3600),
        ((-3600, 0), 2, 0),
        ((86400,), 1, 86400),
    ],
    ids=["left alone", "back", "forward", "back and forth", "a day"],
)
def test_a_clock_that_is_set_moves_no_sample(
    sampler: Any,
    waiting: Any,
    tmp_path: Path,
    offs: tuple[int, ...],
    steps: int,
    step_s: int,
) -> None:
    now = time.time()
    attached, (least_s, most_s) = measured(sampler, waiting, tmp_path, *offs)
    record = attached.record
    assert record["complete"] is True
    assert record["clock"]["steps"] == steps
    assert record["clock"]["step_s"] == pytest.approx(step_s, abs=0.2)
    assert least_s <= record["elapsed_s"] <= most_s
    times = attached.column("unix_s")
    assert all(0 <= b - a < 60 for a, b in itertools.pairwise(times))
    assert now - 1 <= record["start_unix_s"] <= time.time()
    # The first may be told as of the end of START's second.
    # The two clocks are read one after the other, and a busy machine may do something in between.
    took = record["end_unix_s"] - record["start_unix_s"]
    assert record["elapsed_s"] - 0.02 <= took <= record["elapsed_s"] + 1
    assert int(record["start_unix_s"]) == int(attached.record_path.name.split(".")[-2])


def test_a_killed_sampler_does_not_know_it(sampler: Any, waiting: Any) -> None:
    attached = sampler.attach("--rate", "50")
    started = attached.record
    assert (started["clock"]["steps"], started["clock"]["step_s"]) == (None, None)
    assert started["missing"]["clock.steps"].startswith("not known yet")
