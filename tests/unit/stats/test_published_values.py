"""Statistics against scipy, R's published output, or the formula of the source written out."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.stats.basics import fieller, ranks, welch_degrees, wilson
from steelyard.analysis.stats.bimodality import (
    count_modes,
    least_bandwidth,
    silverman_p,
    usual_bandwidth,
)
from steelyard.analysis.stats.drift_and_warm_up import (
    PERMUTATIONS,
    Timed,
    best_cut,
    contrasts,
    find_inner_warm_up,
    find_trend,
    find_wander,
    permuted_highest,
)
from steelyard.analysis.stats.grouped_runs import mean_by_group, overhead_by_block, overhead_by_job
from steelyard.analysis.stats.hypothesis_tests import holm, welch, welch_effective
from steelyard.analysis.stats.slope import line_break


@pytest.fixture
def chance() -> np.random.Generator:
    return np.random.default_rng(20121129)


def test_holm_with_ties_as_in_r() -> None:
    """p.adjust of R's stats: cummax((n - i + 1) p), so that equal p stay equal."""
    assert holm([0.01, 0.01, 0.02, 0.02]) == pytest.approx([0.04] * 4)
    assert holm([0.02, 0.5, 0.02, 0.9]) == pytest.approx([0.08, 1.0, 0.08, 1.0])


def test_ranks_are_scipys() -> None:
    values = [3.0, 1.0, 3.0, 2.0, 2.0, 2.0, 9.0]
    assert ranks(values) == (scipy.stats.rankdata(values) - 1).tolist()


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (1, 4000), (40, 4000), (5, 9), (9, 9)])
def test_wilson_is_scipys(hits: int, n: int) -> None:
    found = wilson(hits, n)
    theirs = scipy.stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_welchs_degrees_of_freedom_are_scipys(chance: np.random.Generator) -> None:
    a, b = chance.normal(10, 1, 5), chance.normal(10, 3, 12)
    parts = [a.var(ddof=1) / 5, b.var(ddof=1) / 12]
    assert welch_degrees(parts, (4, 11)) == pytest.approx(
        scipy.stats.ttest_ind(a, b, equal_var=False).df
    )


def test_effective_numbers_are_welchs_where_nothing_is_correlated() -> None:
    a, b = [1.0, 2.0, 4.0, 3.0], [2.0, 5.0, 4.0]
    assert welch_effective(a, b, (4, 3)) == welch(a, b)
    fewer = welch_effective(a, b, (2, 2))
    assert fewer is not None and fewer > (welch(a, b) or 1.0)


def test_fiellers_ends_solve_his_equation() -> None:
    """Fieller (1954): (top - r bottom)^2 = t^2 (v11 - 2 r v12 + r^2 v22)."""
    top, bottom, (v11, v12, v22), t = 5.0, 4.0, (0.3, 0.1, 0.2), 2.2
    ends = fieller(top, bottom, (v11, v12, v22), t)
    assert ends is not None and ends[0] < top / bottom < ends[1]
    for r in ends:
        assert (top - r * bottom) ** 2 == pytest.approx(t * t * (v11 - 2 * r * v12 + r * r * v22))
    assert fieller(top, bottom, (v11, v12, 4.0), t) is None  # bottom may be 0
    narrow = fieller(5e9, 4e9, (1e-6, 0.0, 1e-6), 2.0)  # squares of these would leave nothing
    assert narrow is not None
    assert narrow[1] - narrow[0] == pytest.approx(
        4 * math.sqrt(1e-6 + 1.25**2 * 1e-6) / 4e9, rel=1e-5
    )


def test_the_mean_of_unequal_jobs_is_cochrans(chance: np.random.Generator) -> None:
    """Equation 6.13, as the cluster-robust standard error of a mean: m / (m - 1) sum e^2 / n^2."""
    jobs = [chance.normal(10, 1, size).tolist() for size in (1, 4, 2, 7, 3)]
    values = [value for job in jobs for value in job]
    mean = statistics.fmean(values)
    errors = [sum(value - mean for value in job) for job in jobs]
    error = math.sqrt(5 / 4 * sum(e * e for e in errors)) / len(values)
    found, half = mean_by_group(jobs), scipy.stats.t.ppf(0.975, 4) * error
    assert (found.mean, found.low, found.high) == pytest.approx((mean, mean - half, mean + half))


def test_pairs_and_jobs_are_close_to_scipys_bootstrap_where_they_are_many(
    chance: np.random.Generator,
) -> None:
    luck = chance.lognormal(0, 0.3, 150)
    a, b = (luck * chance.normal(mean, 0.5, 150) for mean in (11, 10))
    theirs = scipy.stats.bootstrap(
        (a, b),
        lambda x, y, axis=-1: x.mean(axis=axis) / y.mean(axis=axis) - 1,
        paired=True,
        rng=np.random.default_rng(1),
    ).confidence_interval
    found = overhead_by_block([([x], [y]) for x, y in zip(a, b, strict=True)])
    ends = found.low, found.high
    assert ends == pytest.approx(tuple(theirs), abs=0.05 * (theirs.high - theirs.low))
    jobs = overhead_by_job([[x] * 3 for x in a], [[y] * 3 for y in b])  # copies add nothing
    apart = scipy.stats.bootstrap(
        (a, b),
        lambda x, y, axis=-1: x.mean(axis=axis) / y.mean(axis=axis) - 1,
        rng=np.random.default_rng(1),
    ).confidence_interval
    ends = jobs.low, jobs.high
    assert ends == pytest.approx(tuple(apart), abs=0.05 * (apart.high - apart.low))


def test_a_break_is_hudsons_best_and_its_p_an_f_test(chance: np.random.Generator) -> None:
    x = np.repeat([0.0, 1.0, 2.0, 3.0, 4.0], 4)
    y = 1 + 0.5 * x + 1.5 * np.maximum(x - 3, 0) + chance.normal(0, 0.5, 20)

    def squares(*columns: np.ndarray) -> float:
        design = np.column_stack([np.ones(20), x, *columns])
        return float(np.linalg.lstsq(design, y, rcond=None)[1][0])

    tried = {place: squares(np.maximum(x - place, 0)) for place in (1.0, 2.0, 3.0)}
    best = min(tried, key=lambda place: tried[place])
    f = (squares() - tried[best]) / (tried[best] / 17)
    found = line_break(x.tolist(), y.tolist())
    assert found is not None and found.position == best == 3.0
    assert found.p == pytest.approx(3 * scipy.stats.f.sf(f, 1, 17))


def test_the_cut_is_where_mann_and_whitney_see_most(chance: np.random.Generator) -> None:
    values = [*chance.normal(12, 1, 9), *chance.normal(10, 1, 16)]
    tests = [
        scipy.stats.mannwhitneyu(values[:k], values[k:], method="asymptotic", use_continuity=False)
        for k in range(1, 13)
    ]
    cut, p = best_cut(values, 12)
    assert cut == 1 + int(np.argmin([test.pvalue for test in tests])) == 9
    assert p < 0.01


def test_a_permutations_p_is_one_standard_error_above_its_count(
    chance: np.random.Generator,
) -> None:
    values = [*chance.normal(10.8, 1, 8), *chance.normal(10, 1, 12)]
    places = scipy.stats.rankdata(values) - 10.5
    found = contrasts(places[None, :], 10).max()
    as_high = int((permuted_highest(tuple(np.sort(places)), 10) >= found - 1e-9).sum())
    _, p = best_cut(values, 10)
    assert 20 < as_high < 4000
    assert p == pytest.approx((1 + as_high + math.sqrt(as_high)) / (PERMUTATIONS + 1))


def test_the_least_bandwidth_of_silvermans_chondrites() -> None:
    """Silverman (1981): 2.39 leaves one mode of the silica (%) of 22 meteorites."""
    silica = np.array(
        [20.77, 22.56, 22.71, 22.99, 26.39, 27.08, 27.32, 27.33, 27.57, 27.81, 28.69, 29.36, 30.25,
         31.89, 32.88, 33.23, 33.28, 33.40, 33.52, 33.83, 33.95, 34.82]
    )  # fmt: skip
    width = silica[-1] - silica[0]
    scaled = (silica - silica[0]) / width
    least = least_bandwidth(scaled)
    assert least * width == pytest.approx(2.39, abs=0.01)
    assert (
        count_modes(scaled[None, :], 1.01 * least)[0]
        == 1
        < count_modes(scaled[None, :], 0.99 * least)[0]
    )
    assert 0.05 < silverman_p(scaled, least, 1.0) < 0.25  # three kinds of meteorites, not shown
    expected = 0.9 * min(scaled.std(ddof=1), scipy.stats.iqr(scaled) / 1.34) * 22**-0.2
    assert usual_bandwidth(scaled) == pytest.approx(expected)


def test_bartels_ratio_is_rs() -> None:
    """DescTools and randtests of R: statistic -3.6453 for these 13 years of tourists; they divide by
    the exact standard deviation where Bartels' own approximation, 20 / (5 n + 7), is ours."""
    tourists = [12362, 12739, 13057, 13955, 14123, 15698, 17523, 18610, 19842, 20310, 22500, 23080, 21916]  # fmt: skip
    n, p = 13, find_wander([Timed(range(13), tourists)])
    assert p is not None
    exact = 4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    statistic = scipy.stats.norm.ppf(p) * math.sqrt(20 / (5 * n + 7) / exact)
    assert statistic == pytest.approx(-3.6453, abs=1e-4)


def test_the_trend_of_strata_is_a_correlation_of_centred_ranks(chance: np.random.Generator) -> None:
    """Two conditions: ranks of time over all, of values within each over n + 1, as van Elteren's."""
    times = chance.permutation(20).astype(float)
    values = chance.normal(0, 1, 20) + 0.05 * times
    sides = (times[:12], values[:12]), (times[12:], values[12:])
    x = np.concatenate([t - t.mean() for t, _ in sides])
    y = np.concatenate(
        [(scipy.stats.rankdata(v) - (len(v) + 1) / 2) / (len(v) + 1) for _, v in sides]
    )
    found = find_trend([Timed(t.tolist(), v.tolist()) for t, v in sides])
    assert found is not None
    rho = scipy.stats.pearsonr(x, y).statistic
    t = abs(rho) * math.sqrt(17 / (1 - rho**2))
    assert (found.rho, found.p) == pytest.approx((rho, 2 * scipy.stats.t.sf(t, 17)))


def test_warm_up_inside_runs_is_students_test_of_the_jobs(chance: np.random.Generator) -> None:
    runs = chance.normal(10, 0.1, (8, 3))
    runs[:, 0] += 0.5
    found = find_inner_warm_up({n: [run] for n, run in enumerate(runs.tolist())})
    rest = runs[:, 1:].mean(axis=1)
    expected = scipy.stats.ttest_1samp((runs[:, 0] - rest) / rest, 0)
    assert found is not None and (found.length, found.runs) == (1, 8)
    assert found.p == pytest.approx(expected.pvalue)
