"""Speed-ups, serial fractions and laws of scaling: published examples, scipy, and simulated truth."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.optimize
import scipy.stats

from steelyard.analysis.stats.basics import Estimate
from steelyard.analysis.stats.hypothesis_tests import welch
from steelyard.analysis.stats.overhead import compute_overhead
from steelyard.analysis.stats.scaling import (
    COARSE,
    Choice,
    Curve,
    Law,
    build_columns,
    efficiency,
    find_best_levels,
    find_largest_efficient,
    fit_amdahl,
    fit_gustafson,
    fit_least_squares,
    fit_universal,
    misfit_p,
    one_sided_confidence,
    scaled_serial_fraction,
    serial_fraction,
    speed_up,
)

SCALES = (1.0, 2.0, 4.0, 8.0, 16.0)
AMDAHL_S = [100 * (1 + 0.05 * (q - 1)) / q for q in SCALES]


def curve_of(runs: list[list[float]], is_paired: bool = False) -> Curve:
    """Return the curve of runs that are independent, or that have one block each."""
    return Curve.of(SCALES[: len(runs)], [[[v] for v in side] for side in runs], is_paired)


def drawn(
    chance: np.random.Generator, times: list[float], n: int = 5, share: float = 0.05
) -> list[list[float]]:
    return [(mean * (1 + share * chance.standard_normal(n))).tolist() for mean in times]


def test_speed_up_is_the_ratio_of_the_reference_to_a_scale() -> None:
    chance = np.random.default_rng(1)
    one, eight = drawn(chance, [100.0, 16.0], 10)
    found = speed_up(compute_overhead(one, eight))
    assert found is not None and found.low is not None and found.high is not None
    assert found.value == pytest.approx(np.mean(one) / np.mean(eight))
    inverse = compute_overhead(eight, one)
    assert inverse.low is not None and inverse.high is not None
    assert (found.low, found.high) == pytest.approx((1 / (1 + inverse.high), 1 / (1 + inverse.low)))
    whole = efficiency(found, 8.0)
    assert (whole.value, whole.low) == pytest.approx((found.value / 8, found.low / 8))


def test_speed_up_without_an_interval_or_a_value() -> None:
    assert speed_up(compute_overhead([10.0], [5.0])) == Estimate(2.0)
    assert speed_up(compute_overhead([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])) is None
    assert efficiency(Estimate(2.0), 4.0) == Estimate(0.5)


@pytest.mark.parametrize(
    ("speeds", "fractions"),
    [
        ([1.82, 2.50, 3.08, 3.57, 4.00, 4.38, 4.71], [0.1] * 7),
        (
            [1.87, 2.61, 3.23, 3.73, 4.14, 4.46, 4.71],
            [0.070, 0.075, 0.080, 0.085, 0.090, 0.095, 0.100],
        ),
    ],
)
def test_karp_flatt_as_in_quinns_book(speeds: list[float], fractions: list[float]) -> None:
    """Quinn (2004), "Parallel Programming in C with MPI and OpenMP", section 7.5, two examples."""
    found = [serial_fraction(Estimate(s), q) for q, s in enumerate(speeds, 2)]
    assert [one.value for one in found if one] == pytest.approx(fractions, abs=0.0015)


def test_serial_fractions_turn_the_interval_round_and_are_not_cut() -> None:
    found = serial_fraction(Estimate(9.0, 7.0, 10.0), 8.0)
    assert found is not None and found.low is not None and found.high is not None
    assert found.value < 0 and found.low < found.value < 0 < found.high
    assert serial_fraction(Estimate(1.0, 1.0, 1.0), 1.0) is None
    assert serial_fraction(Estimate(4.0, 0.0, 9.0), 8.0) == Estimate(1 / 7)
    assert scaled_serial_fraction(Estimate(7.3, 6.6, 8.0), 8.0) == Estimate(
        pytest.approx(0.1), 0.0, pytest.approx(0.2)
    )


def test_largest_efficient_scale_and_those_that_the_data_allow() -> None:
    found = [
        Estimate(1.0, 1.0, 1.0),
        Estimate(0.95, 0.9, 1.0),
        Estimate(0.8, 0.69, 0.9),
        Estimate(0.72, 0.6, 0.84),
        Estimate(0.5, 0.4, 0.6),
    ]
    assert find_largest_efficient(SCALES, found) == Choice(8.0, 2.0, 8.0)
    assert find_largest_efficient(SCALES, [*found[:4], Estimate(0.5)]) == Choice(8.0, 2.0, 16.0)
    assert find_largest_efficient(SCALES, [*found[:4], Estimate(1.2, 1.1, 1.3)]) == Choice(
        16, 16, 16
    )
    assert find_largest_efficient((8.0,), [Estimate(0.5, 0.4, 0.6)]) is None
    assert one_sided_confidence(0.95, 5) == pytest.approx(0.975)


def test_best_levels_leaves_out_only_what_is_shown_to_be_worse() -> None:
    p = {(0, 1): 0.5, (2, 1): 0.04, (3, 1): 0.001}

    def p_of(i: int, j: int) -> float | None:
        return p.get((i, j))

    assert find_best_levels([10.1, 10.0, 11.0, 12.0], p_of) == [0, 1, 2]  # 0.02 > 0.05 / 3
    assert find_best_levels([10.1, 10.0, 11.0], lambda i, j: None) == [0, 1, 2]
    assert find_best_levels([10.0], p_of) == [0]


def best_of(sides: list[list[float]]) -> list[int]:
    means = [float(np.mean(side)) for side in sides]
    return find_best_levels(means, lambda i, j: welch(sides[i], sides[j]))


def test_best_level_is_lost_in_at_most_5_percent() -> None:
    chance, kept = np.random.default_rng(20), 0
    for _ in range(600):
        sides = drawn(chance, [10.0] * 4)
        kept += 0 in best_of(sides)
    assert 0.94 <= kept / 600 <= 0.99


def test_coefficients_are_those_of_scipys_curve_fit() -> None:
    """With the weights that the law itself gives: relative spread over the root of the runs."""
    curve = curve_of(drawn(np.random.default_rng(3), AMDAHL_S))
    for name, law in (
        ("Amdahl", lambda q, a, b: (a + b * (q - 1)) / q),
        ("Universal Scalability Law", lambda q, a, b, c: (a + b * (q - 1)) / q + c * (q - 1)),
    ):
        found = fit_least_squares(name, curve)
        theirs, _ = scipy.optimize.curve_fit(
            law,
            curve.scales,
            curve.means,
            sigma=1 / found.weights,
            p0=[100.0] * len(found.coefficients),
        )
        assert found.coefficients == pytest.approx(theirs, rel=1e-5, abs=1e-5)


def test_misfit_of_equal_spreads_is_the_f_test_of_lack_of_fit() -> None:
    """Against the classical sums of squares, written out, with all scales of one spread."""
    chance = np.random.default_rng(4)
    noise = chance.standard_normal(6)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    times = [100.0, 53.0, 28.75, 16.6, 11.0]
    runs = [(mean * (1 + 0.02 * noise)).tolist() for mean in times]
    curve = curve_of(runs)
    found = fit_least_squares("Amdahl", curve)
    scaled = np.asarray(runs) * (found.weights / math.sqrt(6))[:, None]
    pure = np.sum((scaled - scaled.mean(axis=1, keepdims=True)) ** 2) / (5 * 5)
    columns = build_columns("Amdahl", np.asarray(SCALES)) * found.weights[:, None]
    _, rest, *_ = np.linalg.lstsq(columns, found.weights * np.asarray(curve.means))
    f = float(rest[0]) / 3 / pure
    own = misfit_p(curve, found)
    assert 0.001 < scipy.stats.f.sf(f, 3, 25) < 0.5
    # Spreads are 2 % of the means and weights of the law's values: not quite of one spread.
    assert own == pytest.approx(scipy.stats.f.sf(f, 3, 25), rel=0.05)


Fit = Callable[[Curve], Law]
USL_S = [t + 0.4 * (q - 1) for t, q in zip(AMDAHL_S, SCALES, strict=True)]
GUSTAFSON_S = [100 / (q - 0.05 * (q - 1)) for q in SCALES]


@pytest.mark.parametrize(
    ("fit", "times", "name", "truth", "is_paired"),
    [
        (fit_amdahl, AMDAHL_S, "serial", 0.05, False),
        (fit_amdahl, AMDAHL_S, "serial", 0.05, True),
        (fit_gustafson, GUSTAFSON_S, "serial", 0.05, False),
        (fit_universal, USL_S, "serial", 0.05, False),
        (fit_universal, USL_S, "crosstalk", 0.004, False),
        (fit_universal, USL_S, "peak", math.sqrt(0.95 / 0.004), False),
    ],
)
def test_intervals_hold_the_truth_and_a_true_law_is_seldom_refused(
    fit: Fit, times: list[float], name: str, truth: float, is_paired: bool
) -> None:
    chance, held, refused = np.random.default_rng(17), [], 0
    for _ in range(400):
        runs = drawn(chance, times, 10)
        if is_paired:
            luck = 1 + 0.1 * chance.standard_normal(10)
            runs = [(np.asarray(side) * luck).tolist() for side in runs]
        law = fit(curve_of(runs, is_paired))
        refused += law.reason is not None
        found: Estimate | None = getattr(law, name)
        if found is not None and found.low is not None and found.high is not None:
            held.append(found.low <= truth <= found.high)
    assert len(held) > 350
    assert 0.92 <= np.mean(held) <= 0.98
    assert refused / 400 <= 0.075


def test_paired_blocks_take_out_what_a_block_does_to_all_scales() -> None:
    chance = np.random.default_rng(5)
    luck = 1 + 0.2 * chance.standard_normal(12)
    runs = [(np.asarray(side) * luck).tolist() for side in drawn(chance, AMDAHL_S, 12, 0.01)]
    paired, apart = (fit_amdahl(curve_of(runs, flag)).serial for flag in (True, False))
    assert paired and apart and paired.high and paired.low and apart.high and apart.low
    assert paired.high - paired.low < (apart.high - apart.low) / 5


def test_a_law_that_does_not_hold_is_refused() -> None:
    """The USL's times are no Amdahl's: the largest scale is 40 % off; the USL itself fits."""
    curve = curve_of(drawn(np.random.default_rng(6), USL_S, 10, 0.02))
    law = fit_amdahl(curve)
    assert law.serial is None and law.p is not None and law.p < 1e-4
    assert law.reason is not None and law.reason.startswith("does not fit: off by ")
    assert fit_universal(curve).serial is not None


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([[100.0, 101.0, 99.0], [52.0, 53.0, 51.0]], "2 scales with values, 3 are needed"),
        ([[100.0, 101.0, 99.0], [52.0, 53.0], [27.0, 28.0, 26.0]], "a scale has 2 independent"),
        ([[100.0] * 3, [52.5] * 3, [28.75] * 3], COARSE),
        ([[100.0, 101.0, 99.0], [40.0, 41.0, 39.0], [16.0, 16.4, 15.6]], "superlinear"),
    ],
)
def test_reasons_of_a_refusal(runs: list[list[float]], reason: str) -> None:
    law = fit_amdahl(curve_of(runs))
    assert law.serial is None and law.reason is not None
    assert reason in law.reason or law.reason.startswith("does not fit")
    assert reason in law.reason or reason == "superlinear"


def test_superlinear_times_that_fit_are_refused_as_such() -> None:
    times = [100 * (1 - 0.02 * (q - 1)) / q for q in SCALES]
    law = fit_amdahl(curve_of(drawn(np.random.default_rng(8), times, 10, 0.01)))
    assert law.reason == "superlinear: it would take a serial fraction below 0"


def test_times_that_grow_with_the_scale_are_refused_as_such() -> None:
    """It printed a serial fraction of 156 %, and a bound on the speed-up below 1."""
    times = [100 * (1.5 - 0.5 / q) for q in SCALES]
    law = fit_amdahl(curve_of(drawn(np.random.default_rng(8), times, 10, 0.01)))
    assert (law.serial, law.reason) == (
        None, "times grow: it would take a serial fraction above 100 %"
    )  # fmt: skip


def test_a_law_that_excludes_nothing_is_refused() -> None:
    law = fit_amdahl(curve_of([[100.0, 20.0, 180.0], [60.0, 5.0, 110.0], [40.0, 3.0, 70.0]]))
    assert law.serial is None and law.reason is not None
    assert law.reason.startswith("the runs vary too much")


def test_no_peak_where_processors_are_not_shown_to_hinder_each_other() -> None:
    law = fit_universal(curve_of(drawn(np.random.default_rng(9), AMDAHL_S, 10)))
    assert law.reason is None and law.peak is None and law.crosstalk is not None
