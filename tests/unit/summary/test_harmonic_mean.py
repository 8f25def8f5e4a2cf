"""Rates: the harmonic mean, and comparisons that agree with the seconds of the same runs."""

from __future__ import annotations

import statistics
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import numpy as np
import pytest

from steelyard.analysis.stats.basics import (
    is_rate,
    mean_by_kind,
    mean_interval,
    rate_interval,
    to_costs,
)
from steelyard.analysis.store import export
from steelyard.analysis.summary import parquet_summary, sampling_units
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary, summarize

WORK = 1e9  # bytes of each run


def study(synthetic: ModuleType, folder: Path, seconds: dict[int, list[float]]) -> Any:
    """Seconds of a run by the number of clients, and the throughput of the same bytes."""
    maker = synthetic.StudyMaker("rates", {"clients": [1, 2]}, {"clients": 1})
    for number, pair in enumerate(zip(*seconds.values(), strict=True)):
        for clients, value in zip(seconds, pair, strict=True):
            run = maker.run("x", {}, {"clients": clients}, number + 1)
            maker.result(run, "seconds", value, "s")
            maker.result(run, "throughput", WORK / value, "bytes_per_s", "higher", False)
    return maker.write(folder)


def rows_of(summary: Summary, clients: int) -> tuple[Row, Row]:
    found = [summary.row("x", f"clients={clients}", name) for name in ("seconds", "throughput")]
    assert found[0] is not None and found[1] is not None
    return found[0], found[1]


@pytest.mark.parametrize("n", [8, 36])
def test_throughput_and_seconds_of_the_same_runs_agree(
    synthetic: ModuleType, tmp_path: Path, n: int
) -> None:
    """Half of the runs hit a cache: slower by 100 %, and arithmetic means of the rates 120 % higher."""
    chance = np.random.default_rng(1)
    noise = 1 + 0.02 * chance.standard_normal((2, n))
    values = {1: 4.0 * noise[0], 2: np.where(np.arange(n) % 2, 1.0, 15.0) * noise[1]}
    summary = summarize(study(synthetic, tmp_path, {k: v.tolist() for k, v in values.items()}))
    seconds, rate = rows_of(summary, 2)
    _, base_rate = rows_of(summary, 1)
    assert seconds.overhead is not None and rate.overhead is not None
    assert seconds.overhead.value is not None and rate.overhead.value is not None
    assert 1 + rate.overhead.value == pytest.approx(1 / (1 + seconds.overhead.value))
    assert rate.interval is not None and base_rate.interval is not None
    ratio = rate.interval.mean / base_rate.interval.mean
    assert 1 + rate.overhead.value == pytest.approx(ratio)
    if seconds.overhead.low is not None and seconds.overhead.high is not None:
        ends = (1 / (1 + seconds.overhead.high) - 1, 1 / (1 + seconds.overhead.low) - 1)
        assert (rate.overhead.low, rate.overhead.high) == pytest.approx(ends)
    assert seconds.verdict is not None and rate.verdict is not None
    assert seconds.verdict.direction == rate.verdict.direction
    assert seconds.effect is not None and rate.effect is not None
    assert rate.effect.value == pytest.approx(-seconds.effect.value)
    assert rate.overhead.design == seconds.overhead.design


def test_the_mean_of_a_rate_is_harmonic(synthetic: ModuleType, tmp_path: Path) -> None:
    values = {1: [1.0, 2.0, 4.0], 2: [2.0, 2.5, 3.0]}
    summary = summarize(study(synthetic, tmp_path, values))
    for clients, seconds in values.items():
        _, rate = rows_of(summary, clients)
        assert rate.interval is not None
        expected = statistics.harmonic_mean([WORK / value for value in seconds])
        assert rate.interval.mean == pytest.approx(expected)
        assert rate.interval.mean == pytest.approx(WORK / statistics.fmean(seconds))


def test_iterations_of_a_rate_are_work_by_time(synthetic: ModuleType, tmp_path: Path) -> None:
    """100 bytes in 1 s and in 4 s are 200 bytes in 5 s."""
    maker = synthetic.StudyMaker("rates", {"clients": [1]}, {"clients": 1})
    run = maker.run("x", {}, {"clients": 1}, 1)
    for iteration, value in enumerate((100.0, 25.0), start=1):
        maker.result(run, "rate", value, "bytes_per_s", "higher", iteration=iteration)
        maker.result(run, "other", value, "bytes", "higher", iteration=iteration)
        maker.result(run, "still", value * (iteration - 1), "1/s", "higher", iteration=iteration)
    summary = summarize(maker.write(tmp_path))
    means = {row.metric.name: row.interval and row.interval.mean for row in summary.rows}
    assert (means["rate"], means["other"]) == pytest.approx((40.0, 62.5))
    assert means["still"] == 12.5  # a rate of 0 has no cost: the plain mean


def test_the_interval_of_a_rate_holds_as_often_as_it_says() -> None:
    """2,000 samples of 10 runs: the work by the true mean time is inside 95 % of intervals."""
    chance, held = np.random.default_rng(3), 0
    for _ in range(2000):
        rates = 1 / chance.normal(10.0, 1.0, 10)
        found = rate_interval(mean_interval(to_costs(rates.tolist()), never_negative=True))
        assert found.low is not None and found.high is not None
        held += found.low <= 1 / 10.0 <= found.high
    assert 0.935 * 2000 <= held <= 0.965 * 2000


def test_a_cost_that_may_be_nothing_leaves_the_rate_without_an_upper_end() -> None:
    found = rate_interval(mean_interval([0.1, 5.0], never_negative=True))
    assert (found.mean, found.low, found.high) == (pytest.approx(1 / 2.55), None, None)


def test_a_margin_is_of_the_rates(synthetic: ModuleType, tmp_path: Path) -> None:
    """Within ± 2 % of the rate: TOST of the ratio of the times, 1 / 1.02 to 1 / 0.98."""
    from steelyard.analysis.stats.hypothesis_tests import compute_beyond_p

    chance = np.random.default_rng(4)
    values = {k: (10 * (1 + 0.01 * chance.standard_normal(12))).tolist() for k in (1, 2)}
    summary = summarize(study(synthetic, tmp_path, values))
    (seconds, rate), (base_seconds, base_rate) = rows_of(summary, 2), rows_of(summary, 1)
    sides = sampling_units.build_sides(seconds, base_seconds)
    assert sides is not None
    upper, lower = compute_beyond_p(sides, 1 / 0.98, 1), compute_beyond_p(sides, 1 / 1.02, -1)
    assert upper is not None and lower is not None
    found = sampling_units.compute_equivalence_p(rate, base_rate, 0.02)
    assert found == pytest.approx(max(upper, lower))
    assert sampling_units.compute_non_inferiority_p(rate, base_rate, 0.02) == pytest.approx(upper)
    p = sampling_units.compute_means_p(seconds, base_seconds)
    assert sampling_units.compute_means_p(rate, base_rate) == pytest.approx(p)


def test_the_summary_of_parquet_has_the_reports_rates(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    values = {1: [10.0, 11.0, 12.0, 10.5], 2: [9.0, 12.0, 13.0, 10.0]}
    folder = study(synthetic, tmp_path, values)
    with duckdb.connect(str(folder / "study.duckdb")) as connection:
        mark = export.compute_mark(connection)
        assert mark is not None
        export.export(connection, folder / "parquet", mark, lambda *_: None)
    summary = summarize(folder)
    lines = [
        one for one in parquet_summary.summarize(folder, "duckdb") if one.metric == "throughput"
    ]
    assert len(lines) == 2
    for line in lines:
        row = summary.row(line.variant, line.condition, line.metric)
        assert row is not None and row.interval is not None
        expected = (row.interval.mean, row.interval.low, row.interval.high)
        assert (line.mean, line.low, line.high) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("unit", "better", "rate"),
    [
        ("bytes_per_s", "higher", True),
        ("Gflop/s", "higher", True),
        ("1/s", "lower", False),
        ("1/s", None, False),
        ("s", "lower", False),
        (None, "higher", False),
    ],
)
def test_what_is_a_rate(unit: str | None, better: str | None, rate: bool) -> None:
    assert is_rate(unit, better) is rate


def test_a_benchmark_of_steelyard_run_has_the_same_mean() -> None:
    from steelyard.wrappers.run.measurement import Measurement, summarize_metric

    runs = [
        Measurement(n, 0, None, {"rate": WORK / s}, {}) for n, s in enumerate((1.0, 2.0, 4.0), 1)
    ]
    rate, plain = (
        summarize_metric("rate", "bytes_per_s", runs, rate=rate) for rate in (True, False)
    )
    assert rate.mean == pytest.approx(WORK / statistics.fmean((1.0, 2.0, 4.0)))
    assert plain.mean == pytest.approx(WORK * (1 + 0.5 + 0.25) / 3)
    assert mean_by_kind([100.0, 25.0], rate=True) == pytest.approx(40)
    assert mean_by_kind([100.0, 0.0], rate=True) == mean_by_kind([100.0, 0.0], rate=False) == 50
