"""Tests, corrections, effects, slopes, warm-up, humps, planning: against scipy or a table."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.stats.basics import mean_interval
from steelyard.analysis.stats.bimodality import find_two_humps
from steelyard.analysis.stats.drift_and_warm_up import find_warm_up, highest_p
from steelyard.analysis.stats.effect_size import FAR, format_effect, hedges, noncentral_limits
from steelyard.analysis.stats.hypothesis_tests import holm, kruskal, welch
from steelyard.analysis.stats.overhead import compute_overhead
from steelyard.analysis.stats.planning import (
    FIRST_LOOK,
    STOPPING_CONFIDENCE,
    can_stop,
    repeats_assured,
    repeats_needed,
)
from steelyard.analysis.stats.slope import (
    COARSE,
    Slope,
    fit_slope,
    line_break,
    line_slope,
    slope_by_block,
)


@pytest.fixture
def chance() -> np.random.Generator:
    return np.random.default_rng(20121129)


@pytest.mark.parametrize(("n", "m"), [(2, 2), (5, 9), (35, 35)])
def test_welch_agrees_with_scipy(chance: np.random.Generator, n: int, m: int) -> None:
    a, b = chance.normal(10, 1, n) + 1e9, chance.normal(10.5, 3, m) + 1e9
    expected = scipy.stats.ttest_ind(a - 1e9, b - 1e9, equal_var=False).pvalue
    assert welch(a.tolist(), b.tolist()) == pytest.approx(expected, rel=1e-5)


def test_no_test_is_no_significance() -> None:
    assert welch([1.0], [1.0, 2.0]) is None
    assert welch([1.0, 1.0], [2.0, 2.0]) is None
    assert hedges([1.0, 1.0], [2.0, 2.0]) is None
    assert hedges([1.0], [2.0, 3.0]) is None


def test_holm_as_in_r() -> None:
    """p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm") of R: 0.03, 0.06, 0.06, 0.02."""
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1.0, 1.0]
    assert holm([]) == []


def test_hedges_g_of_the_handbook() -> None:
    """Borenstein et al. (2009), "Introduction to Meta-Analysis", chapter 4: means 103 and 100, sd
    5.5 and 4.5, 50 each: g = 0.5924."""

    def sample(mean: float, sd: float) -> list[float]:
        raw = np.linspace(-1, 1, 50)
        return [float(v) for v in mean + sd * raw / raw.std(ddof=1)]

    found = hedges(sample(103, 5.5), sample(100, 4.5))
    assert found is not None
    assert found.value == pytest.approx(0.5924, abs=1e-4)
    assert format_effect(found) == "medium (g = 0.59)"


def test_the_interval_of_an_effect_is_rs() -> None:
    """MBESS of R: ci.smd(smd = 0.3062566, n.1 = 50, n.2 = 26) gives -0.1712149 … 0.7816834."""
    ends = noncentral_limits(0.3062566, math.sqrt(1 / 50 + 1 / 26), 74)
    assert ends == pytest.approx((-0.1712149, 0.7816834), abs=1e-6)


@pytest.mark.parametrize(("n", "m", "d"), [(3, 3, 12.0), (5, 40, -3.0), (35, 35, 0.0)])
def test_the_interval_of_an_effect_inverts_scipys_noncentral_t(n: int, m: int, d: float) -> None:
    error = math.sqrt(1 / n + 1 / m)
    low, high = noncentral_limits(d, error, n + m - 2)
    for end, tail in ((low, 0.975), (high, 0.025)):
        found = scipy.stats.nct.cdf(d / error, n + m - 2, end / error)
        assert found == pytest.approx(tail, abs=1e-5)


@pytest.mark.parametrize("sign", [-1, 1])
def test_far_effects_go_on_where_the_noncentral_t_ends(sign: int) -> None:
    near, far = (noncentral_limits(sign * d, 1.0, 8) for d in (FAR - 1e-6, FAR))
    assert near == pytest.approx(far, rel=1e-3)
    assert (
        noncentral_limits(sign * 1e12, 1.0, 8)[0]
        < sign * 1e12
        < noncentral_limits(sign * 1e12, 1.0, 8)[1]
    )


def test_slope_is_scipys_and_hc3_is_the_papers(chance: np.random.Generator) -> None:
    x = np.repeat([0.0, 0.05, 0.1], 4)
    y = 10 + 12 * x + chance.normal(0, 0.2, 12)
    found = line_slope(x.tolist(), y.tolist())
    assert found is not None
    expected = scipy.stats.linregress(x, y)
    assert found.value == pytest.approx(expected.slope)
    assert found.intercept == pytest.approx(expected.intercept)
    # The sandwich written out: (X'X)^-1 X' diag(e^2 / (1 - h)^2) X (X'X)^-1.
    design = np.column_stack([np.ones(12), x])
    inverse = np.linalg.inv(design.T @ design)
    hat = np.diag(design @ inverse @ design.T)
    weights = ((y - expected.intercept - expected.slope * x) / (1 - hat)) ** 2
    covariance = inverse @ design.T @ np.diag(weights) @ design @ inverse
    half = scipy.stats.t.ppf(0.975, 10) * math.sqrt(covariance[1, 1])
    assert found.high - found.value == pytest.approx(half)


def test_the_p_of_a_slope_is_the_larger_of_two(chance: np.random.Generator) -> None:
    """Noise at the ends makes HC3's the larger, noise in the middle that of one spread for all."""
    x = np.repeat([0.0, 1.0, 2.0], 4)
    for spread, is_robust in ((x != 1, True), (x == 1, False)):
        y = 0.3 * x + chance.normal(0, 0.5, 12) * (0.05 + spread)
        found = line_slope(x.tolist(), y.tolist())
        assert found is not None
        error = (found.high - found.low) / 2 / scipy.stats.t.ppf(0.975, 10)
        robust = 2 * scipy.stats.t.sf(abs(found.value) / error, 10)
        common = scipy.stats.linregress(x, y).pvalue
        assert (robust > common) == is_robust
        assert found.p == pytest.approx(max(robust, common))
    for values in ([3.0] * 12, x.tolist()):  # without a spread there is no test
        found = line_slope(x.tolist(), values)
        assert found is not None and found.reason == COARSE
        assert (found.low, found.high, found.p) == (None, None, 1.0)


def test_slopes_of_blocks_are_students_of_each_blocks_own(chance: np.random.Generator) -> None:
    x = np.tile([0.0, 25.0, 50.0, 100.0], (12, 1))
    luck = chance.normal(0, 5, (12, 1))
    y = 10 + luck + 0.012 * x + chance.normal(0, 0.1, x.shape)
    blocks = [
        {place: [value] for place, value in zip(a, b, strict=True)}
        for a, b in zip(x.tolist(), y.tolist(), strict=True)
    ]
    found, plain = slope_by_block(blocks), line_slope(x.ravel().tolist(), y.ravel().tolist())
    slopes = [np.polyfit(a, b, 1)[0] for a, b in zip(x, y, strict=True)]
    expected = scipy.stats.ttest_1samp(slopes, 0)
    assert found is not None and plain is not None
    assert (found.value, found.intercept) == pytest.approx((plain.value, plain.intercept))
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.p == pytest.approx(expected.pvalue)
    assert found.high - found.low < (plain.high - plain.low) / 10
    assert (found.n, found.levels, found.blocks) == (48, 4, 12)
    part = {0.0: [1.0], 25.0: [2.0]}
    assert slope_by_block([*blocks, part]) == replace(found, all_blocks=13)
    assert slope_by_block([*blocks[:9], part]) is None  # 9 blocks hold every level


def test_a_failed_run_leaves_the_other_blocks_slopes(chance: np.random.Generator) -> None:
    """20 blocks of 3 levels, each with its own luck: one of 60 runs failed."""
    places, block_numbers = [1.0, 2.0, 4.0] * 20, [n // 3 for n in range(60)]
    luck = 10 + 5 * chance.random(20)
    values = [
        float(luck[block] + 0.1 * place + 0.02 * chance.standard_normal())
        for place, block in zip(places, block_numbers, strict=True)
    ]
    failed = 11  # the level 4 of block 3

    def line(left_out: range) -> Slope:
        kept = [n for n in range(60) if n not in left_out]
        columns = ([column[n] for n in kept] for column in (places, values, block_numbers))
        found = fit_slope(*columns)
        assert found is not None
        return found.slope

    found, without_block = line(range(failed, failed + 1)), line(range(9, 12))
    assert found == replace(without_block, all_blocks=20) and found.blocks == 19
    assert 0.09 < found.low < 0.1 < found.high < 0.11


@pytest.mark.parametrize("levels", [(10.0, 10.0, 11.0), (10.0, 11.0, 12.0), (10.0, 10.0, 10.0)])
@pytest.mark.parametrize("blocks", [None, [n % 12 for n in range(36)]])
def test_a_coarse_clock_shows_no_slope(levels: tuple[float, ...], blocks: Any) -> None:
    """Whole seconds: 10, 10, 11 may be 10.4, 10.5, 10.6; the overhead of such sides is refused, too."""
    values = [level for level in levels for _ in range(12)]
    line = fit_slope([1.0] * 12 + [2.0] * 12 + [3.0] * 12, values, blocks)
    assert line is not None and line.break_point is None
    assert line.slope.reason == COARSE
    assert (line.slope.low, line.slope.high, line.slope.p) == (None, None, 1.0)
    assert compute_overhead(values[24:], values[:12]).low is None


def test_one_spread_is_enough_for_a_slope() -> None:
    values = [10.0] * 4 + [10.0] * 4 + [11.0, 11.0, 11.0, 12.0]
    line = fit_slope([1.0] * 4 + [2.0] * 4 + [3.0] * 4, values)
    assert line is not None and line.slope.reason is None and line.slope.low is not None


def test_a_slope_after_a_stopping_rule_is_as_wide_as_its_means(chance: np.random.Generator) -> None:
    """96 % for 95 %, by scipy's quantiles, over all values and by block."""
    x = np.tile([1.0, 2.0, 3.0], 12)
    y = 10 + x + chance.normal(0, 1, 36)
    for blocks, degrees in ((None, 34), ([n // 3 for n in range(36)], 11)):
        widths = []
        for confidence in (0.95, STOPPING_CONFIDENCE):
            line = fit_slope(x.tolist(), y.tolist(), blocks, confidence)
            assert line is not None and line.slope.low is not None and line.slope.high is not None
            widths.append(line.slope.high - line.slope.low)
        expected = scipy.stats.t.ppf(0.98, degrees) / scipy.stats.t.ppf(0.975, degrees)
        assert widths[1] / widths[0] == pytest.approx(expected)


def test_a_line_breaks_where_it_was_bent(chance: np.random.Generator) -> None:
    x = np.repeat([0.0, 25.0, 50.0, 75.0, 100.0], 5)
    noise = chance.normal(0, 0.1, 25)
    bent = 10 + 0.01 * x + 0.09 * np.maximum(x - 50, 0) + noise
    found = line_break(x.tolist(), bent.tolist())
    assert found is not None and found.position == 50.0
    assert found.before == pytest.approx(0.01, abs=0.005)
    assert found.behind == pytest.approx(0.1, abs=0.005)
    assert line_break(x.tolist(), (10 + 0.01 * x + noise).tolist()) is None


def test_lines_need_levels() -> None:
    assert line_slope([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]) is None
    assert fit_slope([0.0, 0.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0]) is None
    with pytest.raises(ValueError, match="2 places for 1 values"):
        line_slope([0.0, 1.0], [1.0])


def test_a_ramp_is_found_to_its_end(chance: np.random.Generator) -> None:
    values = np.r_[np.linspace(15, 11, 11), np.full(24, 10.0)] + chance.normal(0, 0.1, 35)
    found = find_warm_up(values.tolist())
    assert found is not None and found.length == 11 and found.p < 0.01
    assert found.without.mean == pytest.approx(10.0, abs=0.1)
    assert found.with_it.n == 35 and found.without.n == 24


@pytest.mark.parametrize(
    "values",
    [
        [10.0] * 30,
        [12.0, 11.0, 10.0, 10.0, 10.0],
        [30.0, *([10.0, 10.1, 9.9] * 10)],  # one outlier is no warm-up
        [*([10.0, 10.1, 9.9] * 8), *([15.0, 15.1] * 3)],  # a change at the end is none
    ],
)
def test_what_is_no_warm_up(values: list[float]) -> None:
    assert find_warm_up(values) is None


def test_a_warm_up_is_as_unlikely_as_counting_says() -> None:
    """8 of 20 values above all others: exact p at that cut 2 / C(20, 8), for 10 cuts at most 10 times."""
    rising = find_warm_up([*range(108, 100, -1), *range(12)])
    assert rising is not None and rising.length == 8
    exact = 2 / math.comb(20, 8)
    assert exact < rising.p < 20 * exact * 10
    assert highest_p(0.0, 10) == 1.0
    assert highest_p(5.0, 3) == pytest.approx(6 * scipy.stats.norm.sf(5.0))


@pytest.mark.thorough
def test_among_many_series_humps_need_more_evidence(chance: np.random.Generator) -> None:
    clear = np.r_[chance.normal(10, 0.2, 20), chance.normal(14, 0.2, 20)].tolist()
    vague = np.r_[chance.normal(10, 1, 20), chance.normal(13.8, 1, 20)].tolist()
    assert find_two_humps(clear, 400) is not None and find_two_humps(clear, 10**6) is not None
    alone = find_two_humps(vague)
    assert alone is not None and 0.002 < alone.p <= 0.05
    assert find_two_humps(vague, 100) is None


def test_two_humps_and_where_they_part(chance: np.random.Generator) -> None:
    values = np.r_[chance.normal(10, 0.3, 15), chance.normal(13, 0.3, 10)]
    found = find_two_humps(chance.permutation(values).tolist())
    assert found is not None
    assert 10.8 < found.border < 12.2 and (found.low_n, found.high_n) == (15, 10)
    assert (found.low_mean, found.high_mean) == pytest.approx((10, 13), abs=0.3)


@pytest.mark.parametrize("kind", ["normal", "skewed", "outliers", "equal", "few", "coarse"])
def test_what_is_no_second_hump(chance: np.random.Generator, kind: str) -> None:
    values: dict[str, Any] = {
        "normal": chance.normal(10, 1, 40),
        "skewed": chance.lognormal(0, 0.5, 40),
        "outliers": np.r_[chance.normal(10, 0.1, 38), 20.0, 20.1],
        "coarse": np.repeat([44.0, 45.0, 46.0], (18, 14, 3)),
        "equal": np.full(40, 3.0),
        "few": np.r_[chance.normal(10, 0.1, 6), chance.normal(20, 0.1, 6)],
    }
    assert find_two_humps(values[kind].tolist()) is None


@pytest.mark.parametrize(("n", "half"), [(5, 1.24), (10, 0.72), (20, 0.47), (35, 0.34)])
def test_repeats_invert_the_table_of_half_widths(n: int, half: float) -> None:
    """Half of a 95 % interval in standard deviations; the table rounds to two decimals."""
    assert repeats_needed(1.0, half + 0.005) == n
    exact = scipy.stats.t.ppf(0.975, n - 1) / math.sqrt(n)
    assert repeats_needed(1.0, exact * (1 + 1e-9)) == n
    assert repeats_needed(1.0, exact * (1 - 1e-9)) == n + 1


def test_odd_wishes_are_refused() -> None:
    for sd, half in ((1.0, 0.0), (-1.0, 1.0), (1.0, math.nan)):
        with pytest.raises(ValueError, match="expected half_width > 0"):
            repeats_needed(sd, half)
    with pytest.raises(ValueError, match="more than 1000000 runs"):
        repeats_needed(1.0, 1e-9)
    with pytest.raises(ValueError, match="a pilot needs 3 runs"):
        repeats_assured([1.0, 2.0], 1.0)
    assert repeats_needed(0.0, 0.1) == 2


def test_assured_repeats_use_the_upper_limit_of_the_spread() -> None:
    pilot = [9.0, 10.0, 11.0, 10.0, 10.0]
    sd = np.std(pilot, ddof=1) * math.sqrt(4 / scipy.stats.chi2.ppf(0.1, 4))
    assert repeats_assured(pilot, 0.5) == repeats_needed(float(sd), 0.5)
    assert repeats_assured(pilot, 0.5) > repeats_needed(float(np.std(pilot, ddof=1)), 0.5)


def test_stopping_waits_for_its_first_look() -> None:
    steady = [10.0, 10.001] * 10
    assert not can_stop(steady[: FIRST_LOOK - 1], 1.0)
    assert can_stop(steady[:FIRST_LOOK], 1.0)
    assert not can_stop(steady, 1e-6)
    half = mean_interval(steady, STOPPING_CONFIDENCE).half_width
    assert half is not None and can_stop(steady, half)


def test_kruskal_agrees_with_scipy_with_ties_too() -> None:
    groups = [
        [1.0, 2.0, 2.0, 5.0, 9.0],
        [2.0, 3.0, 3.0, 8.0, 9.0, 9.0],
        [7.0, 9.0, 9.5, 10.0, 12.0],
    ]
    assert kruskal(groups) == pytest.approx(scipy.stats.kruskal(*groups).pvalue)
    assert kruskal([[1.0, 1.0], [1.0]]) is None
    assert kruskal([[1.0, 2.0]]) is None
