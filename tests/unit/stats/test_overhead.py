"""Overheads: the interval against scipy and by its coverage, and the words."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.stats.overhead import Overhead, compute_overhead, find_resolution
from steelyard.analysis.stats.overhead_verdict import Direction, make_verdict


def samples(n: int, m: int, seed: int = 3) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(seed)
    return (11 * rng.lognormal(0, 0.2, n)).tolist(), (10 * rng.lognormal(0, 0.2, m)).tolist()


@pytest.mark.parametrize(("n", "m"), [(3, 3), (5, 5), (4, 30), (30, 9), (35, 35), (600, 700)])
def test_the_interval_is_fiellers(n: int, m: int) -> None:
    """At both ends r of the ratio, mean − r · baseline's mean is just t standard errors from 0."""
    condition, baseline = samples(n, m)
    found = compute_overhead(condition, baseline)
    assert found.method == "Fieller" and found.value is not None
    errors = [np.var(side, ddof=1) / len(side) for side in (condition, baseline)]
    ratio = 1 + found.value
    parts = [errors[0], ratio**2 * errors[1]]
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / (n - 1) + parts[1] ** 2 / (m - 1))
    t = scipy.stats.t.ppf(0.975, degrees)
    for end, sign in ((found.low, 1), (found.high, -1)):
        r = 1 + (end or 0.0)
        away = np.mean(condition) - r * np.mean(baseline)
        assert sign * away == pytest.approx(t * math.sqrt(errors[0] + r * r * errors[1]))


def test_fiellers_interval_is_welchs_where_the_baseline_is_known() -> None:
    """Of 1,000 equal values nothing varies: the ratio's interval is Student's of the condition."""
    condition = [10.0, 11.5, 12.0, 10.5]
    found = compute_overhead(condition, [10.0] * 1000)
    low, high = scipy.stats.t.interval(0.95, 3, np.mean(condition), scipy.stats.sem(condition))
    assert (found.low, found.high) == pytest.approx((low / 10 - 1, high / 10 - 1))


def share_held(draw: Callable[[float, int], list[float]], n: int, studies: int = 400) -> float:
    """Return how many intervals contain a true overhead of 10 %."""
    held = 0
    for _ in range(studies):
        found = compute_overhead(draw(11.0, n), draw(10.0, n))
        held += found.low is not None and found.low <= 0.1 <= (found.high or 0.0)
    return held / studies


def test_where_few_runs_are_delayed_the_interval_holds() -> None:
    """One run in 20 takes three times as long: BCa held 83 to 90 % of 10 to 35 runs a side."""
    rng = np.random.default_rng(9)

    def delayed(mean: float, n: int) -> list[float]:
        late = np.where(rng.random(n) < 0.05, 3.0, 1.0)
        return (mean / 1.1 * rng.normal(1, 0.05, n) * late).tolist()

    assert all(share_held(delayed, n) >= 0.935 for n in (10, 20, 35))


def test_of_few_runs_it_holds_in_about_95_percent() -> None:
    rng = np.random.default_rng(9)
    assert 0.92 <= share_held(lambda mean, n: rng.normal(mean, 0.5, n).tolist(), 5) <= 0.98


@pytest.mark.parametrize("n", [5, 15])
def test_a_condition_around_0_is_judged(n: int) -> None:
    """A ratio's error is the condition's own then, and not a share of a mean of 0."""
    baseline = [10.0 + number / n for number in range(n)]
    centred = [number - (n - 1) / 2 for number in range(n)]
    found = compute_overhead(centred, baseline)
    assert found.value == -1 and found.low is not None and found.high is not None
    assert found.low < -1 < found.high
    nothing = compute_overhead([0.0] * n, baseline)
    assert (nothing.low, nothing.high) == (-1, -1)


def test_the_unit_does_not_matter() -> None:
    condition, baseline = samples(9, 9)
    big = compute_overhead([x * 1e9 for x in condition], [x * 1e9 for x in baseline])
    plain = compute_overhead(condition, baseline)
    assert (big.low, big.high) == pytest.approx((plain.low, plain.high))


def test_one_or_two_runs_cannot_be_judged() -> None:
    many = [1.0, 1.1, 1.2]
    texts = [
        make_verdict(compute_overhead(condition, baseline), "s", "lower").text
        for condition, baseline in (
            ([1.0], many),
            (many, [1.0]),
            ([1.0], [2.0]),
            ([1.0, 2.0], many),
        )
    ]
    assert texts == [
        "cannot be judged: 1 run",
        "cannot be judged: 1 run of the baseline",
        "cannot be judged: 1 run each",
        "cannot be judged: 2 runs",
    ]


@pytest.mark.parametrize("baseline", [[0.0, 0.0, 0.0], [-1.0, -2.0, -3.0]])
def test_a_baseline_not_above_0_has_no_overhead(baseline: list[float]) -> None:
    result = compute_overhead([1.0, 2.0, 3.0], baseline)
    assert (result.value, result.low, result.high) == (None, None, None)
    text = make_verdict(result, "bytes", "lower").text
    assert text == "cannot be judged: the baseline's mean is not above 0"


def test_a_baseline_that_reaches_0_has_no_interval() -> None:
    result = compute_overhead([5.0, 6.0, 7.0], [0.0, 0.0, 9.0])
    assert result.low is None
    assert result.reason == "the baseline is too close to 0"


def test_without_any_spread_nothing_is_judged() -> None:
    found = compute_overhead([2.2] * 5, [2.0] * 5)
    assert (found.value, found.low, found.high) == (None, None, None)
    words = make_verdict(found, "s", "lower")
    assert words.direction is Direction.UNKNOWN and "the resolution is 0.1," in words.text


@pytest.mark.parametrize(
    ("values", "step"),
    [([0.01, 2.5], "0.01"), ([15.0], "1"), ([1e-5], "0.00001"), ([1 / 3], None), ([0.0], "1")],
)
def test_the_resolution_is_that_of_the_last_decimal(values: list[float], step: str | None) -> None:
    found = find_resolution(values)
    assert (None if found is None else f"{found:f}") == step


def test_one_side_without_spread_still_has_an_interval() -> None:
    result = compute_overhead([2.0, 2.1, 2.2, 2.3], [2.0] * 4)
    assert result.low is not None and result.high is not None
    assert result.low < result.high


def result(low: float, value: float, high: float) -> Overhead:
    return Overhead(value, low, high, 35, 34, "BCa")


@pytest.mark.parametrize(
    ("given", "unit", "better", "metric", "words", "direction"),
    [
        ((0.113, 0.121, 0.129), "s", "lower", "seconds",
         "slower by 12.1 % (11.3 … 12.9), n = 35 + 34", Direction.WORSE),
        ((-0.129, -0.121, -0.113), "s", "lower", "seconds",
         "faster by 12.1 % (11.3 … 12.9), n = 35 + 34", Direction.BETTER),
        ((-0.129, -0.121, -0.113), "Gflop/s", "higher", "gflops",
         "lower by 12.1 % (11.3 … 12.9), n = 35 + 34", Direction.WORSE),
        ((0.113, 0.121, 0.129), "Gflop/s", "higher", "gflops",
         "higher by 12.1 % (11.3 … 12.9), n = 35 + 34", Direction.BETTER),
        ((0.113, 0.121, 0.129), "J", "lower", "energy_j",
         "higher by 12.1 % (11.3 … 12.9), n = 35 + 34", Direction.WORSE),
        ((0.113, 0.121, 0.129), "s", "lower", "cpu_s",
         "higher by 12.1 % (11.3 … 12.9), n = 35 + 34", Direction.WORSE),
        ((0.113, 0.121, 0.129), "1", None, "count",
         "higher by 12.1 % (11.3 … 12.9), n = 35 + 34", Direction.DIFFERENT),
        ((-0.004, 0.002, 0.009), "s", "lower", "seconds",
         "not shown to differ (−0.4 … 0.9 %), n = 35 + 34", Direction.NOT_SHOWN),
        ((0.0004, 0.06, 0.12), "s", "lower", "seconds",  # an end beside 0 is not told as 0
         "slower by 6.00 % (0.04 … 12.00), n = 35 + 34", Direction.WORSE),
        ((1e-9, 2e-9, 3e-9), "s", "lower", "seconds",
         "slower by 0.00000020 % (0.00000010 … 0.00000030), n = 35 + 34", Direction.WORSE),
        ((-1e-9, 2e-9, 3e-9), "s", "lower", "seconds",
         "not shown to differ (−0.00000010 … 0.00000030 %), n = 35 + 34", Direction.NOT_SHOWN),
        ((3e-6, 3e-6, 3e-6), "s", "lower", "seconds",
         "slower by 0.000300 %, no spread seen, n = 35 + 34", Direction.WORSE),
        ((5e8, 1.3333e9, 3e9), "s", "lower", "seconds",
         "1.3e+09 times as long (5e+08 … 3e+09), n = 35 + 34", Direction.WORSE),
        ((7.69, 18.61, 29.57), "s", "lower", "seconds",
         "20 times as long (9 … 31), n = 35 + 34", Direction.WORSE),
        ((1.39, 1.94, 2.5), "J", "lower", "energy_j",
         "2.9 times as high (2.4 … 3.5), n = 35 + 34", Direction.WORSE),
        ((0.02, 1.01, 2.0), "Gflop/s", "higher", "gflops",
         "2.0 times as high (1.02 … 3.0), n = 35 + 34", Direction.BETTER),
        ((2.0, 2.0, 2.0), "s", "lower", "seconds",
         "3 times as long, no spread seen, n = 35 + 34", Direction.WORSE),
        ((-0.49, 0.9, 3.1), "s", "lower", "seconds",
         "not shown to differ (0.5 … 4.1 times), n = 35 + 34", Direction.NOT_SHOWN),
        ((-1.0, 0.9, 200.0), "s", "lower", "seconds",
         "not shown to differ (0 … 200 times), n = 35 + 34", Direction.NOT_SHOWN),
        ((0.2, 0.8, 1.6), "s", "lower", "seconds",
         "slower by 80 % (20 … 160), n = 35 + 34", Direction.WORSE),
    ],
)  # fmt: skip
def test_words(
    given: tuple[float, float, float],
    unit: str,
    better: str | None,
    metric: str,
    words: str,
    direction: Direction,
) -> None:
    found = make_verdict(result(*given), unit, better, metric)
    assert found.text == words
    assert found.direction is direction


@pytest.mark.parametrize("n", [4, 12])
@pytest.mark.parametrize("baseline", [1e-9, 1.0, 1e9])
def test_words_never_say_0_where_there_is_something(n: int, baseline: float) -> None:
    chance = np.random.default_rng(n)
    for _ in range(100):
        base = (baseline * (1 + 10 ** chance.uniform(-9, 0) * chance.random(n))).tolist()
        more = 10 ** chance.uniform(-9, 12)
        found = compute_overhead([value * (1 + more) for value in base], base)
        words = make_verdict(found, "s", "lower")
        assert "same" not in words.text
        assert len(words.text) < 110
        if words.direction is Direction.WORSE:
            numbers = re.findall(r"[\d.]+(?:e\+\d+)?", words.text.partition(", n =")[0])
            assert len(numbers) == 3 and all(float(number) > 0 for number in numbers), words.text


def test_nothing_is_ever_called_the_same() -> None:
    condition, _ = samples(9, 9)
    text = make_verdict(compute_overhead(condition, condition), "s", "lower").text
    assert text.startswith("not shown to differ (")
    assert "same" not in text
