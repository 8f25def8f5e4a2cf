"""Kommeri et al. 2016 on one machine, in small: run time and joules grow with the delay to the data."""

from __future__ import annotations

import numpy as np
from scipy import stats

from .conftest import PASSED, Papers

REQUESTS = 20 * 4  # one after another, of each run
IDLE_W, BUSY_W = 5.0, 10.0  # of meter.py, a guest of one processor
UNSURE_S = 1.5  # the meter reports four times per second, and is read at a job's begin and end


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
    measured = papers.lab.rows(
        "kommeri2016-local-small",
        "SELECT node, elapsed_s, energy_j FROM records WHERE energy_j IS NOT NULL",
    )
    assert len(measured) > 2 * PASSED
    for _, elapsed_s, energy_j in measured:
        assert IDLE_W * (elapsed_s - UNSURE_S) < energy_j
        assert energy_j < (IDLE_W + BUSY_W) * (elapsed_s + UNSURE_S)
    assert told.claims["Joules grow with run time"] in ("holds", "cannot tell")
    low_w, high_w = slope_w(measured)
    assert low_w > 0
    assert low_w < IDLE_W + BUSY_W and high_w > IDLE_W  # what the meter's law allows


def slope_w(measured: list[tuple[str, float, float]]) -> tuple[float, float]:
    """Joules over seconds of run time: both ends of the slope's 95 % interval. By node, which each has
    its own level: the server's works more than the other."""
    nodes = sorted({node for node, _, _ in measured})
    at = np.array([[node == one for one in nodes] for node, _, _ in measured], dtype=float)
    seconds, joules = (np.array(column) for column in list(zip(*measured, strict=True))[1:])
    # What is left of both once each node's mean is taken off (Frisch and Waugh 1933).
    x, y = (column - at @ (at.T @ column / at.sum(axis=0)) for column in (seconds, joules))
    slope = x @ y / (x @ x)
    free = len(measured) - len(nodes) - 1
    error = np.sqrt(((y - slope * x) ** 2).sum() / free / (x @ x))
    wide = stats.t.ppf(0.975, free) * error
    return slope - wide, slope + wide
