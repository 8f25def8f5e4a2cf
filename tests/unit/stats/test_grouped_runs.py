"""Overheads of runs that share jobs or blocks."""

from __future__ import annotations

import math
import statistics
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.stats.basics import CONFIDENCE, mean_interval
from steelyard.analysis.stats.effect_size import format_effect, hedges, hedges_paired
from steelyard.analysis.stats.grouped_runs import (
    mean_by_group,
    overhead_by_block,
    overhead_by_job,
    paired_p,
)
from steelyard.analysis.stats.overhead import compute_overhead
from steelyard.analysis.stats.overhead_verdict import make_verdict
from steelyard.analysis.stats.planning import STOPPING_CONFIDENCE
from steelyard.analysis.summary import sampling_units
from steelyard.analysis.summary.rows import Counts, Group
from steelyard.analysis.summary.study_data import Metric

SECONDS = Metric("seconds", "s", "lower", is_primary=True)
CHANCE = np.random.default_rng(5)


def jobs(mean: float, n: int = 12, runs: int = 4, luck: float = 0.1) -> list[list[float]]:
    return [
        (
            mean * (1 + luck * CHANCE.standard_normal()) + 0.05 * CHANCE.standard_normal(runs)
        ).tolist()
        for _ in range(n)
    ]


def flat(groups: list[list[float]]) -> list[float]:
    return [value for group in groups for value in group]


def width(found: Any) -> float:
    return float(found.high - found.low)


def test_runs_that_share_jobs_count_less() -> None:
    ours, base = jobs(11.0), jobs(10.0)
    found, plain = overhead_by_job(ours, base), compute_overhead(flat(ours), flat(base))
    assert found.value == plain.value and found.design == "by 12 + 12 jobs"
    assert width(found) > 1.5 * width(plain)
    assert (found.n_condition, found.n_baseline) == (48, 48)


@pytest.mark.parametrize("n", [5, 20])
def test_one_run_a_job_is_the_plain_interval(n: int) -> None:
    ours, base = jobs(11.0, n, 1), jobs(10.0, n, 1)
    found, plain = overhead_by_job(ours, base), compute_overhead(flat(ours), flat(base))
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), rel=1e-9)


def test_three_jobs_a_side_are_needed() -> None:
    found = overhead_by_job(jobs(11.0, 2), jobs(10.0, 9))
    assert found.low is None and "2 + 9 jobs" in (found.reason or "")


def test_pairs_take_the_blocks_luck_out() -> None:
    luck = 1 + 0.3 * CHANCE.standard_normal(15)
    blocks = [([11 * one + 0.02 * k], [10 * one]) for k, one in enumerate(luck)]
    found = overhead_by_block(blocks)
    plain = compute_overhead([a[0] for a, _ in blocks], [b[0] for _, b in blocks])
    assert width(found) < width(plain) / 5 and found.value == plain.value
    words = make_verdict(found, "s", "lower").text
    assert words.endswith("n = 15 + 15, paired in 15 blocks")


def test_pairs_with_one_ratio_have_no_spread() -> None:
    """Their interval is only rounding."""
    found = overhead_by_block([([1.12 * (10 + n / 7)], [10 + n / 7]) for n in range(12)])
    words = make_verdict(found, "s", "lower").text
    assert words == "slower by 12.0 %, no spread seen, n = 12 + 12, paired in 12 blocks"


def test_what_cannot_be_judged_stays_so() -> None:
    assert overhead_by_block([([1.0], [0.0])] * 12).low is None
    equal = overhead_by_job([[2.0, 2.0]] * 4, [[1.0]] * 4)
    assert equal.low is None and "coarse" in (equal.reason or "")
    for n in (5, 12):  # runs vary, jobs do not
        alike = overhead_by_job([[2.0, 4.0]] * n, [[1.0, 2.0]] * n)
        assert (alike.low, alike.high) == pytest.approx((1.0, 1.0))
    close = overhead_by_job(jobs(5.0), [[0.0, 0.0]] * 11 + [[0.0, 99.0]])
    assert close.low is None and close.reason == "the baseline is too close to 0"


@pytest.mark.parametrize("n", [5, 12])
def test_a_condition_of_nothing_or_below_0_is_judged(n: int) -> None:
    """Only the baseline must stay above 0."""
    base = jobs(10.0, n)
    for mean, value in ((0.0, -1.0), (-5.0, -1.5)):
        ours = [[mean + one for one in (-0.2, 0.2 + luck)] for luck in np.linspace(-0.1, 0.1, n)]
        by_job = overhead_by_job(ours, base)
        assert by_job.low is not None and by_job.value == pytest.approx(value, abs=0.05)
    pairs = [([0.0], [10.0 + number]) for number in range(12)]
    found = overhead_by_block(pairs)
    assert (found.low, found.high) == (-1.0, -1.0)


def test_the_effect_of_pairs_allows_for_what_they_share() -> None:
    chance = np.random.default_rng(5)
    luck = chance.standard_normal(20)
    a, b = (luck + shift + 0.3 * chance.standard_normal(20) for shift in (0.5, 0.0))
    paired, apart = hedges_paired(a.tolist(), b.tolist()), hedges(a.tolist(), b.tolist())
    assert paired is not None and apart is not None
    assert paired.value == pytest.approx(apart.value, rel=0.03)  # corrected with other degrees
    assert width(paired) < width(apart) / 1.5
    # By hand, from the paper: d sqrt(n / (2 (1 - r))) is noncentral t, 2 (n - 1) / (1 + r^2) degrees.
    pooled = math.sqrt((a.var(ddof=1) + b.var(ddof=1)) / 2)
    d = (a.mean() - b.mean()) / pooled
    r = np.cov(a, b)[0, 1] / pooled**2
    r_pearson = np.corrcoef(a, b)[0, 1]
    assert r == pytest.approx(r_pearson, rel=0.01)
    t, degrees = d * math.sqrt(20 / (2 * (1 - r))), 2 * 19 / (1 + r_pearson**2)
    for end, tail in ((paired.low, 0.975), (paired.high, 0.025)):
        centre = end * math.sqrt(20 / (2 * (1 - r)))
        assert scipy.stats.nct.cdf(t, degrees, centre) == pytest.approx(tail, abs=1e-4)
    assert hedges_paired([1.0, 1.0], [2.0, 2.0]) is None
    alike = hedges_paired([1.0, 2.0, 3.0], [0.0, 1.0, 2.0])  # every pair differs by the same
    assert alike is not None and alike.low < 1.0 < alike.high


def test_the_paired_test_is_scipys() -> None:
    a, b = CHANCE.normal(10, 1, 12), CHANCE.normal(10.4, 1, 12)
    found = paired_p([([x], [y]) for x, y in zip(a, b, strict=True)])
    assert found == pytest.approx(scipy.stats.ttest_rel(a, b).pvalue)
    assert paired_p([([2.0], [1.0])] * 12) is None


def row(
    values: list[float],
    blocks: list[int | None],
    job_ids: list[str | None],
    confidence: float = CONFIDENCE,
) -> Any:
    runs = [
        SimpleNamespace(run_id=f"r{n}", block=block, job_id=job)
        for n, (block, job) in enumerate(zip(blocks, job_ids, strict=True))
    ]
    ids = tuple(run.run_id for run in runs)
    return SimpleNamespace(
        values=tuple(values),
        run_ids=ids,
        n=len(values),
        group=group_of(runs),
        metric=SECONDS,
        confidence=confidence,
    )


def group_of(runs: list[Any]) -> Group:
    counts = Counts(len(runs), len(runs), 0, 0, 0)
    return Group("v", "a=1", {"a": 1}, False, tuple(runs), counts, None)


def side(mean: float, blocks: list[int | None], job_ids: list[str | None]) -> Any:
    return row((mean + CHANCE.standard_normal(len(blocks)) / 10).tolist(), blocks, job_ids)


OWN = [str(n) for n in range(12)]


@pytest.mark.parametrize(
    ("blocks", "base_blocks", "job_ids", "design"),
    [
        (range(12), range(12), OWN, "paired in 12 blocks"),
        ([1, 2, 3, 4] * 3, [1, 2, 3, 4] * 3, OWN, None),  # too few blocks
        (range(12), range(1, 13), OWN, "paired in 11 of 13 blocks"),  # two without one side
        ([1, 2, 3, 4] * 3, [1, 2, 3, 5] * 3, OWN, "in 3 of 5 blocks"),
        ([*range(20), *range(30, 40)], [*range(10, 40)], None, "paired in 20 of 40 blocks"),
        (range(12), range(9, 21), OWN, None),  # most have one side alone
        ([1, 2, 3, 4] * 3, [5, 6, 7, 8] * 3, OWN, "by 4 + 4 blocks"),  # levels added later
        ([None] * 12, [None] * 12, OWN, None),
        ([None] * 12, [None] * 12, ["a", "b", "c", "d"] * 3, "by 4 + 4 jobs"),
        ([None] * 12, [None] * 12, [None] * 12, None),
    ],
)
def test_the_design_decides(
    blocks: Any, base_blocks: Any, job_ids: list[str | None] | None, design: str | None
) -> None:
    job_ids = job_ids or [str(n) for n in range(len(blocks))]
    ours, base = side(11.0, list(blocks), job_ids), side(10.0, list(base_blocks), job_ids)
    found = sampling_units.compare_means(ours, base)
    assert found.design == design and found.low is not None
    p = sampling_units.compute_means_p(ours, base)
    assert p is not None and p < 0.001
    effect = sampling_units.compute_effect(ours, base)
    assert effect is not None and effect.design == design


def drifting(
    chance: np.random.Generator, blocks: int, runs: int
) -> tuple[list[list[float]], list[list[float]]]:
    """(condition, baseline) by block: 2 % slower, on a machine that differs by 10 % between blocks."""
    luck = 1 + 0.1 * chance.standard_normal((blocks, 1))
    sides = (mean * luck + 0.05 * chance.standard_normal((blocks, runs)) for mean in (10.2, 10.0))
    ours, base = (side.tolist() for side in sides)
    return ours, base


def rows_by_block(sides: tuple[list[list[float]], list[list[float]]]) -> tuple[Any, Any]:
    ours, base = (
        row(
            flat(groups),
            [block for block, group in enumerate(groups) for _ in group],
            [f"{block}.{n}" for block, group in enumerate(groups) for n in range(len(group))],
        )
        for groups in sides
    )
    return ours, base


@pytest.mark.parametrize(("blocks", "runs"), [(35, 1), (12, 2)])
def test_a_failed_run_takes_its_own_block_out_and_no_other(blocks: int, runs: int) -> None:
    """Equal, to the last digit, to the study that never had the block."""
    ours, base = drifting(np.random.default_rng(3), blocks, runs)
    without = rows_by_block((ours[:7] + ours[8:], base[:7] + base[8:]))
    failed = rows_by_block(([*ours[:7], [], *ours[8:]], base))
    expected, found = (sampling_units.compare_means(*pair) for pair in (without, failed))
    assert found.design == f"paired in {blocks - 1} of {blocks} blocks"
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    assert (found.n_condition, found.n_baseline) == ((blocks - 1) * runs,) * 2
    for judge in (
        sampling_units.compute_means_p,
        lambda *pair: sampling_units.compute_effect(*pair).value,
    ):
        assert judge(*failed) == judge(*without)
    margins = [sampling_units.compute_equivalence_p(*pair, 0.05) for pair in (without, failed)]
    assert margins[0] == margins[1] is not None


def test_intervals_hold_as_often_where_runs_failed() -> None:
    """2,000 studies of 14 blocks, each side without one of them: 95 % of intervals hold."""
    chance, held, told = np.random.default_rng(8), 0, 0
    for _ in range(2000):
        ours, base = drifting(chance, 14, 1)
        for side in (ours, base):
            side[int(chance.integers(14))] = []
        pair = rows_by_block((ours, base))
        found = sampling_units.compare_means(*pair)
        assert found.low is not None and found.high is not None
        held += found.low <= 0.02 <= found.high
        told += found.low > 0
    assert 0.935 * 2000 <= held <= 0.965 * 2000
    assert told > 0.98 * 2000  # which needs pairs: blocks differ by five times as much


def test_few_blocks_one_of_which_failed_are_compared_within_the_others() -> None:
    """The design has 5 blocks of 2 runs, the default."""
    chance, held, widths = np.random.default_rng(9), 0, []
    for _ in range(500):
        ours, base = drifting(chance, 5, 2)
        ours[2] = []
        found = sampling_units.compare_means(*rows_by_block((ours, base)))
        assert found.design == "in 4 of 5 blocks" and found.low is not None
        assert (found.n_condition, found.n_baseline) == (8, 8)
        plain = compute_overhead(flat(ours), flat([*base[:2], *base[3:]]))
        assert (found.low, found.high) == (plain.low, plain.high)
        held += found.low <= 0.02 <= (found.high or 0.0)
        widths.append(width(found) / width(overhead_by_job([o for o in ours if o], base)))
    assert held >= 0.95 * 500  # what a block does drops out of the difference, not of the interval
    assert statistics.fmean(widths) < 0.8


@pytest.mark.parametrize("base_blocks", [range(12), range(1, 13)])
@pytest.mark.parametrize(
    "job_ids", [OWN, ["a", "b", "c", "d"] * 3, [str(n // 2) for n in range(24)]]
)
def test_a_study_that_stopped_early_is_judged_at_96_percent(
    base_blocks: Any, job_ids: list[str | None]
) -> None:
    """By block, by job (few and many) and by run: both the interval and the test."""
    n = len(job_ids)
    values = [(10 + shift + CHANCE.standard_normal(n) / 10).tolist() for shift in (0.1, 0.0)]
    found = {}
    for confidence in (CONFIDENCE, STOPPING_CONFIDENCE):
        ours, base = (
            row(v, [b + k for k in range(0, n, 12) for b in blocks], job_ids, confidence)
            for v, blocks in zip(values, (list(range(12)), list(base_blocks)), strict=True)
        )
        overhead_found = sampling_units.compare_means(ours, base)
        effect = sampling_units.compute_effect(ours, base)
        found[confidence] = (
            width(overhead_found), sampling_units.compute_means_p(ours, base), effect and width(effect)
        )  # fmt: skip
    plain, stopped = found[CONFIDENCE], found[STOPPING_CONFIDENCE]
    assert 1.02 < stopped[0] / plain[0] < 1.15
    assert plain[2] is not None and 1.02 < (stopped[2] or 0.0) / plain[2] < 1.15
    assert plain[1] is not None and stopped[1] == pytest.approx(min(1.25 * plain[1], 1.0))


def test_one_run_a_job_has_students_interval() -> None:
    values = [10.0, 10.4, 9.7, 10.1, 1e9 / 1e8]
    found, plain = mean_by_group([[v] for v in values]), mean_interval(values)
    assert (found.mean, found.low, found.high) == pytest.approx((plain.mean, plain.low, plain.high))
    assert mean_by_group([[1.0, 2.0, 3.0]]).low is None  # one job has no spread between jobs


def test_the_mean_of_jobs_is_as_uncertain_as_they_are_few() -> None:
    found, plain = mean_by_group(jobs(10.0)), mean_interval(flat(jobs(10.0)))
    assert found.n == 48 and width(found) > 1.5 * width(plain)
    equal = jobs(10.0)
    means = mean_interval([statistics.fmean(job) for job in equal])
    assert width(mean_by_group(equal)) == pytest.approx(width(means))


def test_the_mean_of_blocks_is_as_uncertain_as_they_are_few() -> None:
    """README's own design, 10 runs in 5 blocks: taken for independent 82.5 % of intervals hold."""
    held = {"runs": 0, "blocks": 0}
    for _ in range(400):
        luck = np.repeat(1 + 0.1 * CHANCE.standard_normal(5), 2)
        values = (10 * luck * (1 + 0.05 * CHANCE.standard_normal(10))).tolist()
        one = row(values, [n // 2 for n in range(10)], [str(n) for n in range(10)])
        what, samples = sampling_units.group_samples(one)
        assert what == "block" and len(samples) == 5
        for name, found in (("runs", mean_interval(values)), ("blocks", mean_by_group(samples))):
            held[name] += (found.low or 0.0) <= 10 <= (found.high or 0.0)
    assert held["runs"] < 0.88 * 400 and 0.92 * 400 <= held["blocks"] <= 0.98 * 400


@pytest.mark.parametrize(
    ("blocks", "job_ids", "what", "samples"),
    [
        (range(12), OWN, "run", 12),
        ([1] * 12, OWN, "run", 12),  # one block tells nothing of blocks
        ([None] * 12, ["a", "b", "c", "d"] * 3, "job", 4),
        ([1] * 6 + [2] * 6, [str(n // 3) for n in range(12)], "block", 2),
        ([n // 3 for n in range(12)], [str(n // 3) for n in range(12)], "job", 4),
    ],
)
def test_what_is_independent_follows_from_the_design(
    blocks: Any, job_ids: list[str | None], what: str, samples: int
) -> None:
    found = sampling_units.group_samples(side(10.0, list(blocks), job_ids))
    assert (found[0], len(found[1])) == (what, samples)


def row_of_jobs(groups: list[list[float]]) -> Any:
    """Return the part of a row that the design uses."""
    job_ids: list[str | None] = [str(job) for job, group in enumerate(groups) for _ in group]
    return row([value for group in groups for value in group], [1] * len(job_ids), job_ids)


def test_hedges_g_is_of_jobs_where_runs_share_them() -> None:
    ours, base = jobs(11.0), jobs(10.0)
    found = sampling_units.compute_effect(row_of_jobs(ours), row_of_jobs(base))
    means = [[statistics.fmean(job) for job in side] for side in (ours, base)]
    expected, plain = hedges(*means), hedges(flat(ours), flat(base))
    assert found is not None and expected is not None and plain is not None
    assert (found.value, found.low, found.high) == (expected.value, expected.low, expected.high)
    assert found.design == "by 12 + 12 jobs" and format_effect(found).endswith(", by 12 + 12 jobs)")
    assert width(found) > 1.5 * width(plain)
    alone = [[value] for value in flat(ours)]
    single = sampling_units.compute_effect(
        row_of_jobs(alone), row_of_jobs([[v] for v in flat(base)])
    )
    assert single == plain
