"""The simulated years and the measured series of bench/history.py."""

from __future__ import annotations

import csv
import functools
import importlib.resources
import statistics
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Chance = np.random.Generator
Floats = NDArray[np.float64]
Sessions = list[list[float]]

YEAR, RUNS, LEVEL = 365, 5, 100.0
BETWEEN, WITHIN = 0.01, 0.005  # standard deviations as shares of the level


@dataclass(frozen=True)
class Setting:
    """A kind of year; `promised`: a step of 3 % must be found within 5 sessions in 90 %."""

    name: str
    noise: Callable[[Chance], Floats]  # of a year's sessions, as shares of the level
    runs: Callable[[Chance], Floats] | None = None  # of a session's runs; None: normal
    lost: float = 0.0
    promised: bool = True


def white(chance: Chance) -> Floats:
    return BETWEEN * chance.standard_normal(YEAR)


def following(correlation: float) -> Callable[[Chance], Floats]:
    """Return first-order autoregressive noise with the same standard deviation."""

    def draw(chance: Chance) -> Floats:
        noise = chance.standard_normal(YEAR)
        noise[1:] *= np.sqrt(1 - correlation**2)
        for place in range(1, YEAR):
            noise[place] += correlation * noise[place - 1]
        return BETWEEN * noise

    return draw


def with_outliers(chance: Chance) -> Floats:
    """Return noise in which one night in 50 is 15 % slower."""
    return white(chance) + 0.15 * (chance.random(YEAR) < 0.02)


def drifting(chance: Chance) -> Floats:
    """Return noise with a drift of 5 % per year."""
    return white(chance) + 0.05 * np.arange(YEAR) / YEAR


def bad_nights(chance: Chance) -> Floats:
    """Return noise in which one night in 10 runs completely on a node that is 10 % slower."""
    return white(chance) + 0.1 * (chance.random(YEAR) < 0.1)


def on_bad_node(chance: Chance) -> Floats:
    """Return noise in which one run in 8 is on a node that is 10 % slower."""
    return WITHIN * chance.standard_normal(RUNS) + 0.1 * (chance.random(RUNS) < 1 / 8)


SETTINGS = (
    Setting("white noise", white),
    Setting("AR(1) noise, 0.3", following(0.3), promised=False),
    Setting("outliers: 2 % of nights", with_outliers),
    Setting("lost nights: 10 %", white, lost=0.1),
    Setting("slow drift: 5 % a year", drifting),
    Setting("one bad node of 8, runs", white, on_bad_node, promised=False),
    Setting("one bad node, whole nights", bad_nights, promised=False),
    Setting("AR(1) noise, 0.6", following(0.6), promised=False),
)


def year(setting: Setting, chance: Chance, step: int | None = None, size: float = 1.0) -> Sessions:
    """Return a year of nights with RUNS runs each; from session `step` on they are times `size`."""
    sessions: Sessions = []
    for place, noise in enumerate(setting.noise(chance).tolist()):
        if setting.runs is None:
            within = WITHIN * chance.standard_normal(RUNS)
        else:
            within = setting.runs(chance)
        level = LEVEL * (size if step is not None and place >= step else 1.0)
        lost = chance.random() < setting.lost
        sessions.append([] if lost else (level * (1 + noise + within)).tolist())
    return sessions


@functools.cache
def measured_series() -> tuple[tuple[float, ...], ...]:
    """Return the 6,581 measurements of Jungels (2012): one series per figure and node type.

    They are in appendices B to D.
    """
    folder = importlib.resources.files("steelyard.analysis.papers.jungels2012")
    series: dict[tuple[str, ...], list[float]] = {}
    for name, keys, value in (
        ("filesystem.csv", ("figure", "node_index"), "seconds"),
        ("hpc.csv", ("figure", "node_type"), "total"),
    ):
        with (folder / name).open(encoding="utf-8") as file:
            for row in csv.DictReader(file):
                series.setdefault(tuple(row[key] for key in keys), []).append(float(row[value]))
    return tuple(tuple(values) for values in series.values())


def scaled_step(values: list[float], place: int) -> list[float]:
    """Slow the series down from `place` on, by 3 of its robust standard deviations."""
    middle = statistics.median(values)
    sd = statistics.median(abs(value - middle) for value in values) / 0.6745
    return [value + (3 * sd if at >= place else 0.0) for at, value in enumerate(values)]
