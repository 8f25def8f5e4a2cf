"""Kommeri et al. 2016 on one machine, in small: run time and joules grow with the delay to the data."""

from __future__ import annotations

import pytest
from scipy import stats

from .conftest import PASSED, Papers

pytestmark = pytest.mark.lab
REQUESTS = 20 * 4  # one after another, of each run
IDLE_W, BUSY_W = 5.0, 10.0  # of meter.py, a guest of one processor
UNSURE_S = 1.5  # the meter tells four times a second, and is asked at a job's begin and end


def test_time_and_joules_grow_with_the_delay(papers: Papers) -> None:
    """A ms of delay is 2 ms there and back, for each request at least."""
    told = papers.run("kommeri2016-local-small", "kommeri2016")
    (slope,) = [one for one in told.slopes if one["metric"] == "seconds"]
    assert slope["per"] == "ms of delay" and slope["low"] > 0
    assert slope["high"] > REQUESTS * 2e-3
    assert slope["low"] < 2 * REQUESTS * 2e-3
    assert told.claims["Run time grows with the delay to the data"] == "holds"
    for row in told.rows:
        if row["metric"] == "seconds":
            assert row["n"] + row["invalid"] + row["failed"] == PASSED
    weighed = papers.lab.rows(
        "kommeri2016-local-small",
        "SELECT elapsed_s, energy_j FROM records WHERE energy_j IS NOT NULL",
    )
    assert len(weighed) > 2 * PASSED
    for elapsed_s, energy_j in weighed:
        assert IDLE_W * (elapsed_s - UNSURE_S) < energy_j
        assert energy_j < (IDLE_W + BUSY_W) * (elapsed_s + UNSURE_S)
    assert told.claims["Joules grow with run time"] in ("holds", "cannot tell")
    low_w, high_w = slope_w(weighed)
    assert low_w > 0
    assert low_w < IDLE_W + BUSY_W and high_w > IDLE_W  # what the meter's law allows


def slope_w(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Joules over seconds of run time: both ends of the slope's 95 % interval."""
    found = stats.linregress(*zip(*points, strict=True))
    wide = stats.t.ppf(0.975, len(points) - 2) * found.stderr
    return found.slope - wide, found.slope + wide
