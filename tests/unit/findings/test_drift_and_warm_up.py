"""Drift and warm-up: found in what has them, and not made up where there is none."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.findings.drift_and_warm_up import DRIFT_LEVEL, compute_shares_over_time
from steelyard.analysis.findings.finding import Finding
from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.stats.drift_and_warm_up import (
    Timed,
    find_inner_warm_up,
    find_trend,
    find_wander,
    student_p,
)
from steelyard.analysis.summary.summary import summarize

BLOCKS, DRIFT_LEVELS = 8, (1, 2, 3)


def test_one_condition_is_spearmans_test() -> None:
    values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0, 5.0, 8.0]
    expected = scipy.stats.spearmanr(range(len(values)), values)
    found = find_trend([Timed(range(len(values)), values)])
    assert found is not None
    assert (found.rho, found.p) == pytest.approx((expected.statistic, expected.pvalue))
    assert find_trend([Timed(range(9), values[:9])]) is None
    assert find_trend([Timed(range(12), [1.0] * 12)]) is None
    rising = find_trend([Timed(range(12), [float(v) for v in range(12)])])
    assert rising is not None and (rising.rho, rising.p) == (pytest.approx(1.0), pytest.approx(0.0))


def test_the_rank_ratio_has_the_distribution_that_bartels_gives_it() -> None:
    """Mean 2 and variance 4 (n − 2)(5 n² − 2 n − 9) / (5 n (n + 1)(n − 1)²), which 20 / (5 n + 7) is near."""
    n, chance = 12, np.random.default_rng(11)
    exact = 4 * (n - 2) * (5 * n * n - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2)
    assert 20 / (5 * n + 7) == pytest.approx(exact, rel=0.05)
    found = [find_wander([Timed(range(n), chance.permutation(n).tolist())]) for _ in range(2000)]
    z = scipy.stats.norm.ppf([p for p in found if p is not None])
    assert abs(z.mean()) < 0.1 and z.var() == pytest.approx(exact * (5 * n + 7) / 20, rel=0.15)
    waves = [math.sin(number / 2) for number in range(40)]
    assert (find_wander([Timed(range(40), waves)]) or 1.0) < 1e-6
    assert find_wander([Timed(range(9), waves[:9])]) is None
    assert find_wander([Timed(range(12), [1.0] * 12)]) is None


@pytest.mark.parametrize("at_once", [4, 10, 40])
def test_runs_that_start_in_the_same_second_are_not_alike_for_that(at_once: int) -> None:
    """Slurm's start times are whole seconds, and an array starts as many runs as fit."""
    chance = np.random.default_rng(5)
    found = []
    for _ in range(500):
        sides = chance.standard_normal((2, 20)).tolist()
        found.append(find_wander([Timed([2 * n // at_once for n in range(20)], v) for v in sides]))
    z = scipy.stats.norm.ppf([p for p in found if p is not None])
    assert len(z) == 500 and abs(z.mean()) < 0.35 and 0.75 < z.var() < 1.25


def test_parts_of_the_time_are_not_sorted_by_their_values() -> None:
    values = [10.0, 11.0, 9.0, 10.5, 9.5, 10.0, 11.0, 9.0, 10.5, 9.5]
    series = compute_shares_over_time([Timed([0.0] * 10, values)])
    assert [10 * share for _, share in series] == pytest.approx(values)


def test_levels_of_conditions_are_no_drift() -> None:
    """Conditions that ran one after the other differ, each without a drift of its own."""
    steady = [10.0, 10.1, 9.9, 10.05, 9.95]
    series = [
        Timed(range(10 * c, 10 * c + 5), [v + 5 * c for v in steady[c:] + steady[:c]])
        for c in range(5)
    ]
    found = find_trend(series)
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
    return {finding.kind.code: finding for finding in find_all(summarize(maker.write(folder)))}


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


def two_sides(
    synthetic: ModuleType, folder: Path, order: Sequence[tuple[int, int, bool]]
) -> tuple[dict[str, Finding], str]:
    """(clients, block, whether it completed) in the order of time; the findings and the verdict."""
    maker = synthetic.StudyMaker("sides", {"clients": [1, 2]}, {"clients": 1})
    chance = random.Random(2)
    for number, (clients, block, completed) in enumerate(order):
        state = "completed" if completed else "failed"
        run = maker.run("x", {}, {"clients": clients}, 100 + number, state=state)
        maker.rows["runs"][-1]["block"] = block
        if completed:
            maker.result(run, "seconds", 10 * chance.gauss(1 + 0.05 * clients, 0.01), "s")
    summary = summarize(maker.write(folder))
    row = summary.row("x", "clients=2", "seconds")
    assert row is not None and row.verdict is not None
    return {finding.kind.code: finding for finding in find_all(summary)}, row.verdict.text


IN_TURNS = [(clients, block, True) for block in range(1, 7) for clients in (1, 2)]


def test_a_level_that_was_added_later_did_not_take_turns(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """The difference may be the weeks': it is said in the verdict, and as a finding."""
    order = [(1, block, True) for block in range(1, 11)] + [(2, b, True) for b in range(11, 21)]
    found, verdict = two_sides(synthetic, tmp_path, order)
    assert verdict.endswith("n = 10 + 10 (the two sides did not take turns)")
    (place,) = found["SY36"].places
    assert re.fullmatch(
        r"x · clients=2: 2026-\S+ \S+ to 2026-\S+ \S+ UTC, the baseline 2026-\S+ \S+ to 2026-\S+ \S+",
        place,
    )
    assert found["SY36"].text == "1 of 1 condition."


def test_one_side_after_the_other_in_the_same_blocks_took_no_turns(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Order as written, or a full partition: by the times at which runs began."""
    order = [(clients, block, True) for clients in (1, 2) for block in range(1, 13)]
    found, verdict = two_sides(synthetic, tmp_path, order)
    assert verdict.endswith("paired in 12 blocks (the two sides did not take turns)")
    assert "SY36" in found


def test_a_run_that_was_submitted_again_did_not_take_turns(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Nor did the run of its first block that stayed alone."""
    again = [*IN_TURNS[:3], *IN_TURNS[4:], (2, 7, True)]
    found, verdict = two_sides(synthetic, tmp_path, again)
    assert verdict.endswith("n = 6 + 6 (2 of 12 runs did not take turns)")
    assert found["SY36"].places == (
        "x · clients=2: 2 of 12 runs are in blocks without the other side",
    )


@pytest.mark.parametrize("failed", [None, 3])
def test_blocks_with_both_sides_took_turns_though_a_run_failed(
    synthetic: ModuleType, tmp_path: Path, failed: int | None
) -> None:
    order = [(c, b, number != failed) for number, (c, b, _) in enumerate(IN_TURNS)]
    found, verdict = two_sides(synthetic, tmp_path, order)
    assert "SY36" not in found and verdict.endswith("6")


def test_shared_blocks_are_compared_and_the_earlier_ones_left_out(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Blocks of the baseline alone, of the level that was added, then 10 that hold both."""
    alone = [(1, block, True) for block in range(1, 6)] + [(2, b, True) for b in range(6, 11)]
    both = [(clients, block, True) for block in range(11, 21) for clients in (1, 2)]
    found, verdict = two_sides(synthetic, tmp_path, alone + both)
    assert verdict.endswith("n = 10 + 10, paired in 10 of 20 blocks")
    assert "SY36" not in found


def test_false_alarms_stay_below_their_level() -> None:
    """300 studies without drift; bench/coverage.py has 10,000 of each kind."""
    chance = np.random.default_rng(7)
    alarms = 0
    for _ in range(300):
        series = [
            Timed((np.arange(8) * 3 + c).tolist(), chance.normal(10 * c, 1, 8).tolist())
            for c in range(3)
        ]
        found = find_trend(series)
        alarms += found is not None and min(found.p, find_wander(series) or 1.0) <= DRIFT_LEVEL / 2
    assert alarms <= 10  # 1 % are 3; 10 or fewer in all but one of 2,000 tests


def test_a_slow_start_is_found_to_its_end() -> None:
    chance = np.random.default_rng(5)
    runs = 10 + 0.1 * chance.standard_normal((8, 20))
    runs[:, :4] += [3.0, 2.5, 2.5, 2.0]
    found = find_inner_warm_up({job: [run] for job, run in enumerate(runs.tolist())})
    assert found is not None and (found.length, found.iterations, found.runs) == (4, 20, 8)
    assert found.p < 1e-6 and found.excess == pytest.approx(0.25, abs=0.01)


def test_students_p_is_scipys() -> None:
    values = [0.3, -0.1, 0.4, 0.2, 0.1]
    assert student_p(values) == pytest.approx(scipy.stats.ttest_1samp(values, 0).pvalue)
    assert (student_p([0.0] * 5), student_p([0.1] * 5)) == (1.0, 0.0)


def test_runs_of_one_job_are_one_sample() -> None:
    steep = [[3.0, 2.0, 1.0]] * 10
    assert find_inner_warm_up({"a": steep}) is None
    assert find_inner_warm_up({job: steep for job in range(4)}) is None
    found = find_inner_warm_up({job: steep for job in range(5)})
    assert found is not None and (found.runs, found.jobs) == (50, 5)


def test_too_few_iterations_are_not_judged_and_odd_runs_left_out() -> None:
    assert find_inner_warm_up({job: [[2.0, 1.0]] for job in range(9)}) is None
    assert find_inner_warm_up({}) is None
    jobs = {job: [[2.0 + job, 1.0, 1.0]] for job in range(6)}
    found = find_inner_warm_up(jobs | {9: [[1.0] * 7]})
    assert found is not None and found.runs == 6


def test_the_finding_gives_both_means(synthetic: ModuleType, tmp_path: Path) -> None:
    """Of pairs of nodes, which iperf3 counts as iterations, nothing is said."""
    chance = np.random.default_rng(9)
    maker = synthetic.StudyMaker("slow-start", {"clients": [1]}, {"clients": 1})
    for benchmark in ("xrootd", "iperf3"):
        for number in range(6):
            run = maker.run(benchmark, {}, {"clients": 1}, number + 1)
            for iteration, value in enumerate([12.0, 10.0, 10.0, 10.0], start=1):
                for client in (0, 1):
                    noisy = value * (1 + 0.005 * chance.standard_normal())
                    maker.result(run, "seconds", noisy, "s", client=client, iteration=iteration)
    found = {f.kind.code: f for f in find_all(summarize(maker.write(tmp_path)))}["SY28"]
    (place,) = found.places
    assert place == (
        "xrootd · clients=1 · seconds: the first 1 of 4 iterations is 20 % above the rest in 6 runs: "
        "mean 10.499 ± 0.014 s with it, 10.003 ± 0.014 s without"
    )
