"""Drift over time: found in conditions that take turns, not made up where there is none."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.over_time import DRIFT_LEVEL
from steelyard.analysis.findings.registry import find
from steelyard.analysis.stats.drift import Timed, trend, wander
from steelyard.analysis.summary.summary import summarize

BLOCKS, DRIFT_LEVELS = 8, (1, 2, 3)


def test_one_condition_is_spearmans_test() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0]
    expected = scipy.stats.spearmanr(range(len(values)), values)
    found = trend([Timed(range(len(values)), values)])
    assert found is not None
    assert (found.rho, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert trend([Timed(range(9), values[:9])]) is None
    assert trend([Timed(range(12), [1.0] * 12)]) is None
    rising = trend([Timed(range(12), [float(v) for v in range(12)])])
    assert rising is not None and (rising.rho, rising.p) == (pytest.approx(1.0), pytest.approx(0.0))


def test_the_rank_ratio_has_the_distribution_that_bartels_gives_it() -> None:
    """Mean 2 and variance 4 (n − 2)(5 n² − 2 n − 9) / (5 n (n + 1)(n − 1)²), which 20 / (5 n + 7) is near."""
    n, chance = 12, np.random.default_rng(11)
    exact = 4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    assert 20 / (5 * n + 7) == pytest.approx(exact, rel=0.05)
    found = [wander([Timed(range(n), chance.permutation(n).tolist())]) for _ in range(2000)]
    z = scipy.stats.norm.ppf([p for p in found if p is not None])
    assert abs(z.mean()) < 0.1 and z.var() == pytest.approx(exact * (5 * n + 7) / 20, rel=0.15)
    waves = [math.sin(number / 2) for number in range(40)]
    assert (wander([Timed(range(40), waves)]) or 1.0) < 1e-6
    assert wander([Timed(range(9), waves[:9])]) is None
    assert wander([Timed(range(12), [1.0] * 12)]) is None


def test_levels_of_conditions_are_no_drift() -> None:
    """Conditions that ran one after the other differ, each without a drift of its own."""
    steady = [10.0, 10.1, 9.9, 10.05, 9.95]
    series = [
        Timed(range(10 * c, 10 * c + 5), [v + 5 * c for v in steady[c:] + steady[:c]])
        for c in range(5)
    ]
    found = trend(series)
    assert found is not None and abs(found.rho) < 0.5 and found.p > DRIFT_LEVEL


def study(
    synthetic: ModuleType, folder: Path, factor: Callable[[float], float], **more: Any
) -> dict[str, Finding]:
    """Conditions in turns through a day; `factor` of the share of the day that has passed."""
    maker = synthetic.StudyMaker("day", {"clients": list(DRIFT_LEVELS)}, {"clients": 1})
    chance = random.Random(3)
    for number in range(BLOCKS):
        for level in chance.sample(DRIFT_LEVELS, len(DRIFT_LEVELS)):
            passed = (len(maker.rows["runs"])) / (BLOCKS * len(DRIFT_LEVELS) - 1)
            run = maker.run("x", {}, {"clients": level}, number + 1, elapsed_s=3598.0, **more)
            maker.result(run, "seconds", 10 * level * factor(passed) * chance.gauss(1, 0.01), "s")
    return {finding.kind.code: finding for finding in find(summarize(maker.write(folder)))}


def test_a_drift_of_all_is_found_with_fewer_runs_than_one_condition_needs(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    found = study(synthetic, tmp_path, lambda passed: 1 + 0.05 * passed)["SY16"]
    (place,) = [p for p in found.places if "rising" in p]
    assert place.startswith("x · seconds, all conditions together: rising by ")
    assert "of the mean from the first third of 24 jobs to the last (ρ = 0.78)" in place
    assert place.endswith("within 23 h") and "`blocks = repeat`" in found.kind.advice


def test_a_busy_noon_is_found_though_nothing_rises(synthetic: ModuleType, tmp_path: Path) -> None:
    found = study(synthetic, tmp_path, lambda passed: 1 + 0.08 * math.sin(math.pi * passed))
    (place,) = found["SY16"].places
    assert "not the same at all times" in place
    assert "highest from 2026-09-22 0" in place and "within 23 h" in place


def test_a_steady_day_has_no_drift(synthetic: ModuleType, tmp_path: Path) -> None:
    assert "SY16" not in study(synthetic, tmp_path, lambda _: 1.0)


def test_conditions_that_took_no_turns_are_named(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("sorted", {"clients": [1, 2]}, {"clients": 1})
    chance = random.Random(5)
    for level in (1, 2):
        for number in range(15):
            run = maker.run("x", {}, {"clients": level}, number + 1)
            maker.result(run, "seconds", 10 + number / 20 + chance.gauss(0, 0.01), "s")
    found = {f.kind.code: f for f in find(summarize(maker.write(tmp_path)))}
    assert "1 condition did not run in turns with the baseline" in found["SY16"].text


def test_false_alarms_stay_below_their_level() -> None:
    """300 studies without drift; bench/coverage.py has 10,000 of each kind."""
    chance = np.random.default_rng(7)
    alarms = 0
    for _ in range(300):
        series = [
            Timed((np.arange(8) * 3 + c).tolist(), chance.normal(10 * c, 1, 8).tolist())
            for c in range(3)
        ]
        found = trend(series)
        alarms += found is not None and min(found.p, wander(series) or 1.0) <= DRIFT_LEVEL / 2
    assert alarms <= 10  # 1 % are 3; 10 or fewer in all but one of 2,000 tests
