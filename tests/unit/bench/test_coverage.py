"""bench/coverage.py runs, and its promises can be broken."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCH = Path(__file__).parents[3] / "bench" / "coverage.py"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], SimpleNamespace]:
    """A module of bench/."""
    monkeypatch.syspath_prepend(str(BENCH.parent))
    return lambda name: SimpleNamespace(**runpy.run_path(str(BENCH.with_name(name))))


def test_an_interval_beside_the_truth_is_no_hit(bench: Callable[[str], SimpleNamespace]) -> None:
    draws, studies = bench("coverage_draws.py"), bench("coverage_intervals.py")
    assert draws.held(0.9, 1.1, 1.0)
    assert not draws.held(1.05, 1.1, 1.0)
    assert draws.held(None, None, 1.0) is None  # none is told
    shifted = studies.mean_study(lambda chance, n: draws.normal(chance, n, mean=11.0), 35)
    chance = np.random.default_rng(1)
    assert not any(shifted(chance, False)[0] for _ in range(50))


def test_what_is_close_to_a_promise_is_decided_by_more(
    bench: Callable[[str], SimpleNamespace],
) -> None:
    coverage = bench("coverage.py")
    alarm, interval = (next(iter(names)) for names in (coverage.ALARMS, coverage.INTERVALS))
    for name, hits, is_close in (
        (alarm, 470, True), (alarm, 530, True), (alarm, 400, False), (alarm, 600, False),
        (interval, 9500, False), (interval, 9330, True), (interval, 9660, True),
    ):  # fmt: skip
        assert coverage.is_close(name, coverage.Tally(10_000, hits)) is is_close


def test_a_setting_draws_the_same_wherever_it_stands(
    bench: Callable[[str], SimpleNamespace],
) -> None:
    coverage = bench("coverage.py")
    job = ("mean, normal, n = 5", 0, 300)
    first = coverage.simulate(job)
    for name in list(coverage.SETTINGS)[:3]:
        coverage.SETTINGS[name] = coverage.SETTINGS.pop(name)
    assert coverage.simulate(job) == first
    assert coverage.simulate((job[0], 1, 300))[1] != first[1]
