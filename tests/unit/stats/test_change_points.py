"""Change points over sessions."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.stats.change_point_test import (
    MOST_CORRELATED,
    Evidence,
    correlation,
    false_alarm_rate,
    fit_two_levels,
    inflation,
    innovation_squares,
    normal_equivalent,
    permutation_limit,
    threshold,
)
from steelyard.analysis.stats.change_points import find_changes
from steelyard.analysis.stats.session_means import cut_outliers, summarize_sessions

NIGHTS = 120


def nights(chance: np.random.Generator, n: int = NIGHTS, share: float = 0.01) -> list[list[float]]:
    """Return nights of one run each."""
    return [[100 * (1 + share * z)] for z in chance.standard_normal(n).tolist()]


def shifted(sessions: list[list[float]], begin: int, factor: float) -> list[list[float]]:
    return [
        [value * factor if place >= begin else value for value in session]
        for place, session in enumerate(sessions)
    ]


def test_a_step_is_found_with_its_size() -> None:
    found = find_changes(shifted(nights(np.random.default_rng(1)), 80, 1.03))
    assert [change.index for change in found.changes] == [80]
    change = found.changes[0]
    assert change.low is not None and change.high is not None and change.ratio is not None
    assert change.low < 1.03 < change.high and change.high - change.low < 0.02
    assert change.ratio == pytest.approx(change.after / change.before)
    assert change.p < 1e-6
    assert found.segment_begin == 80 and found.level is not None and found.level.n == 40
    assert found.level.mean == change.after
    assert found.level.low is not None and found.level.high is not None
    assert found.level.low < 103 < found.level.high
    assert found.detectable is not None and 0.02 < found.detectable < 0.04


def test_noise_alone_is_no_change() -> None:
    chance = np.random.default_rng(2)
    assert [find_changes(nights(chance)).changes for _ in range(30)].count(()) >= 29


def test_what_was_reported_stays_reported() -> None:
    sessions = shifted(nights(np.random.default_rng(3)), 60, 1.03)
    first = next(n for n in range(50, NIGHTS) if find_changes(sessions[:n]).changes)
    assert 63 <= first <= 66
    assert all(len(find_changes(sessions[:n]).changes) == 1 for n in range(first, NIGHTS, 7))


@pytest.mark.parametrize("factor", [0.5, 1.3, 40.0])
def test_one_or_two_bad_nights_are_marked_and_no_change(factor: float) -> None:
    sessions = nights(np.random.default_rng(4))
    for place in (50, 90, 91):
        sessions[place][0] *= factor
    found = find_changes(sessions)
    assert found.changes == () and set(found.outliers) >= {50, 90, 91}
    assert len(found.outliers) <= 5
    assert found.level is not None and found.level.mean == pytest.approx(100, rel=0.005)


def test_lost_nights_are_skipped_and_places_are_the_inputs() -> None:
    sessions = shifted(nights(np.random.default_rng(5)), 80, 1.05)
    for place in (0, 10, 11, 81, 119):
        sessions[place] = []
    found = find_changes(sessions)
    assert [change.index for change in found.changes] == [80]
    assert found.level is not None and found.level.n == 38


def test_more_series_need_stronger_evidence() -> None:
    sessions = shifted(nights(np.random.default_rng(11)), 117, 1.03)
    alone, among = find_changes(sessions), find_changes(sessions, series=10_000)
    assert len(alone.changes) == 1 and among.changes == ()
    assert alone.detectable is not None and among.detectable is not None
    assert 1.05 < among.detectable / alone.detectable < 2


def test_without_spread_the_number_of_sessions_decides() -> None:
    assert find_changes([[5.0]] * 30 + [[6.0]] * 2).changes == ()
    found = find_changes([[5.0]] * 30 + [[6.0]] * 8)
    change = found.changes[0]
    assert (change.index, change.ratio, change.low, change.high) == (30, 1.2, 1.2, 1.2)
    # One of C(38, 8) orders to either side; never surer than that in so many nights.
    assert 2 / math.comb(38, 8) < change.p < 0.05
    assert found.detectable is None and "equal" in (found.reason or "")


def test_zero_has_no_ratio_and_negative_values_have() -> None:
    from_zero = find_changes([[0.0]] * 30 + [[3.0]] * 8).changes
    assert [(change.index, change.ratio, change.after) for change in from_zero] == [(30, None, 3.0)]
    sessions = [[-value for value in night] for night in nights(np.random.default_rng(7))]
    (change,) = find_changes(shifted(sessions, 60, 1.05)).changes
    assert change.ratio == pytest.approx(1.05, abs=0.01) and change.after < change.before < 0
    silent = find_changes([[0.0]] * 20)
    assert silent.changes == () and silent.detectable is None and silent.reason is not None


@pytest.mark.parametrize(
    ("sessions", "reason"),
    [
        ([], "0 sessions; expected at least 3"),
        ([[], []], "0 sessions; expected at least 3"),
        ([[], [1.0]], "1 session; expected at least 3"),
        ([[1.0], [2.0]], "2 sessions; expected at least 3"),
        ([[1.0], [1.1], [0.9]], "3 sessions; changes are looked for from 8 on"),
    ],
)
def test_too_few_sessions_have_a_reason(sessions: list[list[float]], reason: str) -> None:
    found = find_changes(sessions)
    assert found.reason == reason and found.changes == () and found.detectable is None
    assert (found.level is None) == (len(sessions) < 3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_no_number_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        find_changes([[1.0], [2.0, bad]])
    with pytest.raises(ValueError, match="series = 0"):
        find_changes([[1.0]], series=0)


def following(
    chance: np.random.Generator, correlation: float, n: int = NIGHTS
) -> list[list[float]]:
    """Return nights that resemble the one before."""
    noise = chance.standard_normal(n)
    for place in range(1, n):
        noise[place] = correlation * noise[place - 1] + math.sqrt(1 - correlation**2) * noise[place]
    return [[100 + z] for z in noise.tolist()]


def test_nights_that_resemble_each_other_are_no_change() -> None:
    chance = np.random.default_rng(12)
    found = [find_changes(following(chance, 0.3)) for _ in range(40)]
    assert sum(len(one.changes) for one in found) <= 13  # 40 series of 120 nights are 13 years
    widths = [one.level.half_width for one in found if one.level is not None and not one.changes]
    # The mean of 120 such nights varies by sqrt(1.3 / 0.7) as much as that of independent ones.
    expected = 1.98 * math.sqrt(1.3 / 0.7 / NIGHTS)
    assert np.mean([width for width in widths if width]) == pytest.approx(expected, rel=0.12)


def test_a_slow_drift_is_told_apart_from_steps() -> None:
    chance = np.random.default_rng(13)
    courses = []
    for _ in range(10):
        rising = [
            [100 + z + 5 * place / 364] for place, z in enumerate(chance.standard_normal(365))
        ]
        courses.append(find_changes(rising))
    assert sum(len(course.changes) for course in courses) <= 5
    clean = [course for course in courses if not course.changes]
    assert len(clean) >= 7
    for course in clean:
        assert course.drift is not None and course.drift.begin == 0
        assert course.drift.ratio == pytest.approx(1.05, abs=0.01)
        assert course.level is not None and course.level.mean == pytest.approx(105, abs=0.8)
    held = [
        c.drift.low <= 1.05 <= c.drift.high
        for c in clean
        if c.drift and c.drift.low and c.drift.high
    ]
    assert sum(held) >= len(clean) - 2


def test_a_step_in_a_drift_is_found_with_its_own_size() -> None:
    chance = np.random.default_rng(14)
    rising = [[100 + z + 8 * place / 364] for place, z in enumerate(chance.standard_normal(365))]
    found = find_changes(shifted(rising, 200, 1.05))
    assert [change.index for change in found.changes] == [200] and found.drift is not None
    change = found.changes[0]  # the means of both sides differ by 9 %
    assert change.low is not None and change.high is not None
    assert change.low < 1.05 < change.high < 1.06
    flat = find_changes(shifted(nights(chance, 365), 200, 1.05))
    assert flat.drift is None


def test_the_interval_holds_the_size_of_the_step() -> None:
    chance = np.random.default_rng(15)
    held, widths, found = 0, [], 0
    for _ in range(60):
        course = find_changes(shifted(nights(chance), 70, 1.03))
        for change in course.changes:
            if abs(change.index - 70) <= 3 and change.low is not None and change.high is not None:
                found += 1
                held += change.low <= 1.03 <= change.high
                widths.append(change.high - change.low)
    assert found >= 58 and held >= 0.9 * found
    # Not wider than it must be: 2.3 standard errors of a ratio of means of 70 and 50 nights, twice.
    assert np.mean(widths) == pytest.approx(2 * 2.3 * 0.01 * math.sqrt(1 / 70 + 1 / 50), rel=0.15)


def test_a_detectable_share_is_found_nine_times_in_ten() -> None:
    chance = np.random.default_rng(16)
    found = 0
    for _ in range(60):
        before = nights(chance, 80)
        share = find_changes(before).detectable
        assert share is not None
        after = shifted(nights(chance, 5), 0, 1 + share)
        found += any(change.index >= 78 for change in find_changes(before + after).changes)
    assert 0.8 <= found / 60 <= 0.99


def test_a_bad_node_that_some_nights_meet_is_noise() -> None:
    chance = np.random.default_rng(17)
    changes = 0
    for _ in range(20):
        bad = chance.random(NIGHTS) < 0.1
        sessions = [
            [value * (1.1 if slow else 1.0) for value in night]
            for night, slow in zip(nights(chance), bad, strict=True)
        ]
        course = find_changes(sessions)
        changes += len(course.changes)
        assert len(course.outliers) <= 12
    assert changes <= 7  # 20 series of 120 nights are 6.6 years
    # The same night after night is a step.
    assert len(find_changes(shifted(nights(chance), 60, 1.1)).changes) == 1


def test_counts_that_hardly_ever_differ_are_judged_by_their_order() -> None:
    sessions = [[2.0 if place % 40 == 7 else 1.0] for place in range(NIGHTS)]
    assert find_changes(sessions).changes == ()
    assert [c.index for c in find_changes(sessions + [[2.0]] * 6).changes] == [NIGHTS]
    poisson = np.random.default_rng(18).poisson(3, NIGHTS).astype(float).tolist()
    assert find_changes([[value] for value in poisson]).changes == ()


def test_a_session_with_fewer_runs_counts_for_less() -> None:
    chance = np.random.default_rng(19)
    sessions = [chance.normal(100, 1, 1 if place % 3 == 0 else 9).tolist() for place in range(90)]
    found = summarize_sessions(sessions)
    assert found is not None
    few, many = found.weight[0], found.weight[1]
    assert many == 1.0 and 1 / 9 <= few < 0.5  # all spread is within: a ninth of the runs
    alike = summarize_sessions([session[:1] for session in sessions])
    assert alike is not None and (alike.weight == 1).all()


def test_a_large_common_offset_changes_nothing() -> None:
    sessions = shifted(nights(np.random.default_rng(20)), 60, 1.03)
    moved = [[1e9 + value for value in session] for session in sessions]
    (change,), (same,) = find_changes(sessions).changes, find_changes(moved).changes
    assert same.index == change.index
    assert same.after - same.before == pytest.approx(change.after - change.before, rel=1e-4)


@pytest.mark.parametrize("degrees", [2, 3, 5, 10, 50, 300])
@pytest.mark.parametrize("t", [0.5, 2.0, 4.0, 8.0, 20.0])
def test_students_t_as_a_normal_deviate_is_scipys(t: float, degrees: int) -> None:
    exact = -scipy.stats.norm.ppf(scipy.stats.t.sf(t, degrees))
    found = float(normal_equivalent(t * t, degrees))
    assert found == pytest.approx(exact, abs=0.005) if t <= 2 else exact - 0.12 <= found < exact


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("n", [1, 3, 40])
def test_the_variance_of_a_correlated_mean_is_that_of_its_matrix(
    n: int, correlation: float
) -> None:
    places = np.arange(n)
    matrix = correlation ** np.abs(places[:, None] - places[None, :])
    assert float(inflation(n, correlation)) == pytest.approx(matrix.mean() * n)


def test_products_without_squares_overflow_nothing() -> None:
    """Rounding leaves them where all sessions of a window are equal."""
    with np.errstate(all="raise"):
        found = correlation(np.array([1e-17, 0.0, -1e-17]), np.zeros(3), np.array(8.0))
    assert found.tolist() == [MOST_CORRELATED, pytest.approx(0.1416, abs=1e-3), 0.0]


def test_orders_limit_what_can_be_known() -> None:
    limit = float(permutation_limit(np.array(10), np.array(4)))
    assert 2 * scipy.stats.norm.sf(limit) == pytest.approx(2 / math.comb(14, 4))


def test_the_threshold_allows_a_quarter_false_alarm_a_year() -> None:
    for series in (1, 50):
        assert false_alarm_rate(threshold(series)) * 365 * series == pytest.approx(0.25, rel=1e-6)


@pytest.mark.parametrize("unit", [1e-200, 1e-9, 1e18, 1e150])
def test_the_unit_changes_nothing(unit: float) -> None:
    sessions = shifted(nights(np.random.default_rng(21)), 60, 1.03)
    scaled = [[unit * value for value in session] for session in sessions]
    found, same = find_changes(sessions), find_changes(scaled)
    (change,), (alike,) = found.changes, same.changes
    assert (alike.index, alike.ratio) == (change.index, pytest.approx(change.ratio))
    assert alike.after / unit == pytest.approx(change.after)
    assert found.level is not None and same.level is not None and found.level.low and same.level.low
    assert same.level.low / unit == pytest.approx(found.level.low)
    assert same.detectable == pytest.approx(found.detectable)


def test_a_figure_that_wanders_has_no_level() -> None:
    """Ten sessions from 25 to 916 ms had a level of 412 ± 6708 ms."""
    course = find_changes([[25], [30], [60], [120], [200], [320], [450], [600], [780], [916]])
    assert (course.level, course.detectable) == (None, None)
    assert course.reason is not None and "wanders" in course.reason


@pytest.mark.parametrize("lengths", [(8, 4, 5), (5, 4, 3), (5, 7)])
def test_large_steps_between_few_sessions_are_found(lengths: tuple[int, ...]) -> None:
    """5 % is 80 standard deviations: no chance correlation of 5 to 8 sessions may hide it."""
    chance = np.random.default_rng(22)
    levels = np.repeat([100_000, 95_000, 90_250][: len(lengths)], lengths)
    places = np.cumsum(lengths)[:-1].tolist()
    courses = []
    for _ in range(100):
        noise = chance.integers(-200, 200, (len(levels), 4))
        courses.append(find_changes((levels[:, None] + noise).tolist(), series=2))
    assert all([change.index for change in one.changes] == places for one in courses)
    assert sum(one.level is not None for one in courses) >= 95
    for change in (change for one in courses for change in one.changes):
        if change.low is None or change.high is None:
            assert change.ratio is None  # it wanders
        else:
            assert change.high - change.low < 0.02


def test_a_change_of_a_figure_that_wanders_has_no_size() -> None:
    """Sessions 9 to 15 differ among themselves by more than their noise, and are too few for a step."""
    before = [99.2, 98.7, 99.8, 100.4, 101.1, 100.1, 99.4, 99.2]
    course = find_changes(
        [[value] for value in [*before, 90.7, 91.6, 90.3, 88.8, 84.0, 86.6, 85.2]]
    )
    assert course.level is None and "wanders" in (course.reason or "")
    (change,) = course.changes
    assert (change.index, change.ratio, change.low, change.high) == (8, None, None, None)
    assert (change.before, change.after) == (
        pytest.approx(99.7, abs=0.1),
        pytest.approx(88.5, abs=0.1),
    )


def test_a_rising_figure_has_no_ties() -> None:
    """Each session is its neighbors' median there, as one of equal sessions is."""
    rising = summarize_sessions([[100.0 + place] for place in range(20)])
    equal = summarize_sessions([[5.0 + (place % 7 == 0)] for place in range(20)])
    assert rising is not None and not cut_outliers(rising).coarse.any()
    assert equal is not None and cut_outliers(equal).coarse[-1]


@pytest.mark.parametrize("phi", [0.0, 0.4, 0.9])
def test_two_levels_are_those_of_the_full_matrix(phi: float) -> None:
    """Generalized least squares with the covariance matrix of AR(1) noise."""
    chance = np.random.default_rng(23)
    before, after = 7, 4
    y = chance.standard_normal(before + after) + np.repeat([1.0, 3.0], [before, after])
    u, one, p = y[1:] - phi * y[:-1], np.array(1.0), np.array(phi)
    left = Evidence.of_first(one, y[0], p)
    for value in u[: before - 1]:
        left = left + Evidence.of_one(one, value, p)
    right = Evidence.of_sums(np.array(after - 1.0), u[before:].sum(), (u[before:] ** 2).sum(), p)
    fit = fit_two_levels(left, (one, u[before - 1]), right, p)

    places = np.arange(before + after)
    inverse = np.linalg.inv(phi ** np.abs(places[:, None] - places[None, :]) / (1 - phi**2))
    design = np.stack([np.ones(before + after), places >= before], axis=1)
    covariance = np.linalg.inv(design.T @ inverse @ design)
    level, step = covariance @ design.T @ inverse @ y
    rest = y - design @ [level, step]
    assert float(fit.step) == pytest.approx(step)
    assert float(fit.share_before + fit.share_after) == pytest.approx(covariance[1, 1])
    assert float(fit.rest) == pytest.approx(rest @ inverse @ rest)


def test_squares_of_innovations_are_those_of_the_series_up_to_its_ends() -> None:
    y, phi = np.random.default_rng(24).standard_normal(200), 0.6
    found = innovation_squares(float((y**2).sum()), float((y[1:] * y[:-1]).sum()), phi)
    exact = float(((y[1:] - phi * y[:-1]) ** 2).sum()) + (1 - phi**2) * y[0] ** 2
    assert float(found) == pytest.approx(exact + phi**2 * (y[0] ** 2 + y[-1] ** 2))
