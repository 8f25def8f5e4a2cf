"""Statistics against scipy, published tables and the data of a thesis."""

from __future__ import annotations

import csv
import importlib.resources
import math
import statistics
from pathlib import Path

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.stats.basics import Interval, find_outliers, mean_interval, median, spread

DATA = Path(str(importlib.resources.files("steelyard.analysis.papers"))) / "jungels2012"


def figure(name: str) -> list[float]:
    """Return one series of the thesis, by its own number."""
    with (DATA / "filesystem.csv").open(newline="", encoding="utf-8") as lines:
        return [float(row["seconds"]) for row in csv.DictReader(lines) if row["figure"] == name]


# Student's t for 95 %, two-sided: NIST/SEMATECH e-Handbook, table 1.3.6.7.2.
@pytest.mark.parametrize(("n", "t"), [(2, 12.706), (5, 2.776), (10, 2.262), (31, 2.042)])
def test_half_width_is_students_t_of_the_published_table(n: int, t: float) -> None:
    values = [float(i) for i in range(n)]
    interval = mean_interval(values)
    expected = t * statistics.stdev(values) / math.sqrt(n)
    assert interval.half_width == pytest.approx(expected, rel=5e-4)


# docs/report.md and FACTS: half of a 95 % interval in standard deviations.
@pytest.mark.parametrize(("n", "share"), [(5, 1.24), (10, 0.72), (20, 0.47), (35, 0.34)])
def test_half_width_in_standard_deviations(n: int, share: float) -> None:
    values = [(-1.0) ** i * (1 + i / n) for i in range(n)]
    half = mean_interval(values).half_width
    assert half is not None
    assert half / statistics.stdev(values) == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99])
def test_interval_agrees_with_scipy_on_the_thesis_data(confidence: float) -> None:
    values = figure("B1")
    assert len(values) == 32
    interval = mean_interval(values, confidence)
    low, high = scipy.stats.t.interval(
        confidence, len(values) - 1, np.mean(values), scipy.stats.sem(values)
    )
    assert (interval.low, interval.high) == pytest.approx((low, high))
    assert interval.mean == pytest.approx(np.mean(values))
    assert interval.n == 32


def test_one_value_has_no_interval_and_no_standard_deviation() -> None:
    interval = mean_interval([4.2])
    assert (interval.mean, interval.low, interval.high, interval.n) == (4.2, None, None, 1)
    assert interval.half_width is None
    assert spread([4.2]).sd is None


@pytest.mark.parametrize("function", [mean_interval, median, spread, find_outliers])
@pytest.mark.parametrize("values", [[], [1.0, math.nan], [math.inf, 1.0]])
def test_nothing_and_what_is_no_number_is_refused(function: object, values: list[float]) -> None:
    with pytest.raises(ValueError, match="values"):
        function(values)  # type: ignore[operator]


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95.0])
def test_confidence_outside_of_0_and_1_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        mean_interval([1.0, 2.0], confidence)


# The naive formula gives 16.0 here where 0.1 is right.
@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, 1e12, -1e9])
def test_spread_does_not_suffer_from_a_large_offset(offset: float) -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        values = (rng.integers(0, 1000, 20) / 8).tolist()  # exact next to the offset
        shifted = [value + offset for value in values]
        assert spread(shifted).sd == pytest.approx(spread(values).sd, rel=1e-12)
        assert spread(shifted).mad == spread(values).mad
        plain, moved = mean_interval(values), mean_interval(shifted)
        assert moved.half_width == pytest.approx(plain.half_width, rel=1e-4 if offset else 0)


def test_the_textbook_case_of_cancellation() -> None:
    assert spread([1e9 + 0.1, 1e9 + 0.2, 1e9 + 0.3]).sd == pytest.approx(0.1, rel=1e-6)


def test_median_and_spread_agree_with_numpy_and_scipy() -> None:
    values = figure("B66")
    assert median(values) == np.median(values)
    assert spread(values).sd == pytest.approx(np.std(values, ddof=1))
    assert spread(values).mad == scipy.stats.median_abs_deviation(values)


def test_outliers_are_those_whose_modified_z_score_exceeds_3_5() -> None:
    values = figure("C4")
    middle, mad = np.median(values), scipy.stats.median_abs_deviation(values)
    expected = [i for i, x in enumerate(values) if abs(0.6745 * (x - middle) / mad) > 3.5]
    assert mad > 0
    assert list(find_outliers(values).indices) == expected


def test_a_value_just_inside_of_the_limit_is_no_outlier() -> None:
    # median 0, MAD 1: the limit is 3.5 / 0.6745 = 5.189
    values = [-1.0, -1.0, -1.0, 0.0, 1.0, 1.0, 1.0]
    assert find_outliers([*values, 5.18, -1.0]).indices == ()
    assert find_outliers([*values, 5.20, -1.0]).indices == (7,)


def test_where_most_values_are_equal_the_mean_deviation_judges_and_says_so() -> None:
    found = find_outliers([44.0] * 20 + [45.0, 60.0])
    assert found.indices == (21,)
    assert found.note is not None
    assert "mean absolute deviation" in found.note


def test_equal_values_and_few_values_have_no_outliers() -> None:
    assert find_outliers([3.0] * 9).note == "all values are equal"
    few = find_outliers([1.0, 1.0, 1.0, 99.0])
    assert few.indices == ()
    assert few.note == "not looked for: fewer than 5 values"


def test_what_cannot_be_negative_has_no_negative_bound() -> None:
    """383 kB read: -681 kB … 1.45 MB was reported."""
    plain, found = (mean_interval([299e3, 467e3], never_negative=cut) for cut in (False, True))
    assert plain.low is not None and plain.low < 0
    assert (found.mean, found.low, found.high) == (plain.mean, 0.0, plain.high)
    assert mean_interval([0.0, 0.0, 0.0], never_negative=True) == Interval(0.0, 0.0, 0.0, 3)
    steady = [10.0, 10.1, 9.9, 10.05]
    low, high = (getattr(mean_interval(steady), end) for end in ("low", "high"))
    leaning = mean_interval(steady, never_negative=True)
    assert leaning.low == low and high < (leaning.high or 0.0) < high + 0.001


@pytest.mark.parametrize("n", [3, 5, 10, 35])
def test_means_of_what_has_a_tail_hold_95_percent(n: int) -> None:
    """Log-normal, sigma 0.5: Student's alone held 91.4 to 93.6 %."""
    chance, held = np.random.default_rng(3), {True: 0, False: 0}
    for values in 10 * np.exp(0.5 * chance.standard_normal((4000, n)) - 0.125):
        for cut in held:
            found = mean_interval(values.tolist(), never_negative=cut)
            held[cut] += (found.low or 0.0) <= 10 <= (found.high or 0.0)
    assert held[False] < held[True] and 0.935 <= held[True] / 4000 <= 0.965
