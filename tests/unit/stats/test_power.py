"""The power of a t test against statsmodels, Cohen's printed table, and the integral itself."""

from __future__ import annotations

import math

import pytest
from scipy.integrate import quad
from scipy.special import gammaln, ndtr, stdtrit

from steelyard.analysis.stats.planning import least_detectable_difference, power, repeats_to_detect

# TTestIndPower().power(difference, runs, level) of statsmodels 0.15.0 with scipy 1.17.1.
STATSMODELS = {
    (0.2, 20, 0.05): 0.094567328,
    (0.5, 20, 0.05): 0.337939029,
    (0.8, 20, 0.05): 0.693404197,
    (1.0, 20, 0.05): 0.868953028,
    (2.0, 20, 0.05): 0.999986575,
    (0.2, 5, 0.01): 0.012536707,
    (1.0, 5, 0.01): 0.097327981,
    (2.0, 5, 0.01): 0.476934735,
}
# solve_power(nobs1=…, alpha=0.05, power=0.8) of the same.
DIFFERENCES = {2: 5.653489, 3: 3.070892, 5: 2.02444, 10: 1.324947, 35: 0.679352}


def by_integral(difference: float, runs: int, level: float) -> float:
    """P(|T| > t) over the chi-square distribution of the spread."""
    degrees = 2 * (runs - 1)
    critical, shift = stdtrit(degrees, 1 - level / 2), difference * math.sqrt(runs / 2)

    def part(v: float) -> float:
        half = degrees / 2
        density = math.exp((half - 1) * math.log(v) - v / 2 - half * math.log(2) - gammaln(half))
        root = critical * math.sqrt(v / degrees)
        return density * float(ndtr(shift - root) + ndtr(-shift - root))

    return float(quad(part, 0, math.inf, limit=500)[0])


@pytest.mark.parametrize(("case", "expected"), STATSMODELS.items())
def test_power_is_that_of_statsmodels(case: tuple[float, int, float], expected: float) -> None:
    assert power(*case) == pytest.approx(expected, abs=2e-9)


@pytest.mark.parametrize("runs", [2, 3, 10, 40])
@pytest.mark.parametrize("level", [0.05, 0.05 / 6, 1e-4])
@pytest.mark.parametrize("difference", [0.01, 0.5, 2.0, 8.0, 13.85])
def test_power_is_the_integral_also_where_scipy_gives_up(
    difference: float, runs: int, level: float
) -> None:
    assert power(difference, runs, level) == pytest.approx(
        by_integral(difference, runs, level), abs=1e-6
    )


def test_the_repeats_are_those_of_cohens_table() -> None:
    """Cohen (1988), table 2.4.1: two-sided 5 %, power 0.80; 393 there is 393.4 by statsmodels."""
    found = {d: repeats_to_detect(d, 0.05) for d in (0.2, 0.5, 0.8, 1.0)}
    assert found == {0.2: 394, 0.5: 64, 0.8: 26, 1.0: 17}
    assert repeats_to_detect(1e-4, 0.05) is None


@pytest.mark.parametrize(("runs", "expected"), DIFFERENCES.items())
def test_the_difference_that_is_seen(runs: int, expected: float) -> None:
    assert least_detectable_difference(runs, 0.05) == pytest.approx(expected, abs=2e-6)


def test_the_difference_of_two_runs_at_a_small_level_is_the_integrals() -> None:
    """solve_power of statsmodels 0.15.0 returns 13.68: it takes scipy's nan for an end."""
    found = least_detectable_difference(2, 0.05 / 6)
    assert found is not None
    assert by_integral(found, 2, 0.05 / 6) == pytest.approx(0.8, abs=1e-6)


# G*Power 3.1, difference between two dependent means, two-sided 5 %, power 0.8: pairs by dz.
PAIRS = {0.2: 199, 0.5: 34, 0.8: 15}


@pytest.mark.parametrize(("difference", "pairs"), PAIRS.items())
def test_ten_blocks_and_more_are_pairs(difference: float, pairs: int) -> None:
    """In standard deviations of a side: dz times the root of 2."""
    assert repeats_to_detect(difference * math.sqrt(2), 0.05, blocks=10_000) == pairs


def test_fewer_blocks_are_runs_as_in_the_report() -> None:
    assert least_detectable_difference(1, 0.05) is None
    assert least_detectable_difference(10, 0.05, blocks=9) == least_detectable_difference(10, 0.05)
    assert repeats_to_detect(0.8, 0.05, blocks=5) == repeats_to_detect(0.8, 0.05) == 26
    paired = repeats_to_detect(0.8, 0.05, blocks=1000)
    assert paired is not None and paired > 26
    for repeats, enough in ((paired, True), (paired - 1, False)):
        assert (power(0.8, repeats, 0.05, blocks=1000) >= 0.8) is enough
