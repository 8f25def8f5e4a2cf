"""Studies of bench/coverage.py in which nothing must be reported."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np
from coverage_draws import LEVELS, Chance, Draw, Study, differs, flat, normal, skewed

from steelyard.analysis.findings.drift_and_warm_up import DRIFT_LEVEL, INNER_LEVEL
from steelyard.analysis.findings.nodes import NODE_P
from steelyard.analysis.stats.bimodality import find_two_humps
from steelyard.analysis.stats.drift_and_warm_up import (
    Timed,
    find_inner_warm_up,
    find_trend,
    find_wander,
    find_warm_up,
)
from steelyard.analysis.stats.grouped_runs import overhead_by_block, overhead_by_job, paired_p
from steelyard.analysis.stats.hypothesis_tests import LEVEL as TEST_LEVEL
from steelyard.analysis.stats.hypothesis_tests import holm, kruskal, welch
from steelyard.analysis.stats.overhead import compute_overhead
from steelyard.analysis.stats.planning import STOPPING_CONFIDENCE
from steelyard.analysis.stats.slope import fit_slope, line_break
from steelyard.analysis.summary.slopes import FactorLine, correct_p


def tells_difference(ours: list[float], base: list[float]) -> bool:
    like = [value / 1.1 for value in ours]
    p = (welch(like, base) or 0.0) * 1.25  # as sampling_units.compute_means_p: 4 % instead of 5 %
    return p <= 0.05 and differs(compute_overhead(like, base, STOPPING_CONFIDENCE), p)


def verdict_study(draw: Draw, n: int, family: int, m: int | None = None, **base_of: float) -> Study:
    """Study alarms: a difference reported among conditions that all equal the baseline.

    The peer: any p < 0.05. The baseline has `m` runs, and `base_of` for its share if that differs.
    """

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        base = draw(chance, m or n, **base_of).tolist()
        conditions = [draw(chance, n).tolist() for _ in range(family)]
        tests = [welch(values, base) or 0.0 for values in conditions]
        corrected = holm(tests)
        reported = any(
            differs(compute_overhead(values, base), p)
            for values, p in zip(conditions, corrected, strict=True)
            if p <= 0.05  # a larger p decides alone, whatever the interval
        )
        return reported, min(tests) < 0.05

    return study


def block_verdict_study(blocks: int, block_share: float) -> Study:
    """Study a difference reported between equal sides with blocks; the peer does not pair them."""

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        luck = 1 + block_share * chance.standard_normal(blocks)
        a, b = ((luck * normal(chance, blocks)).tolist() for _ in range(2))
        pairs = [([x], [y]) for x, y in zip(a, b, strict=True)]
        p = paired_p(pairs) or 0.0
        reported = p <= 0.05 and differs(overhead_by_block(pairs), p)
        return reported, (welch(a, b) or 0.0) < 0.05

    return study


def job_verdict_study(n: int, runs: int, job_share: float) -> Study:
    """Study a difference reported between sides whose jobs vary; the peer tests runs."""

    def side(chance: Chance) -> list[list[float]]:
        luck = 1 + job_share * chance.standard_normal(n)
        return [normal(chance, runs, 10.0 * one).tolist() for one in luck]

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        a, b = side(chance), side(chance)
        p = welch(*([statistics.fmean(job) for job in jobs] for jobs in (a, b))) or 0.0
        reported = p <= 0.05 and differs(overhead_by_job(a, b), p)
        return reported, (welch(flat(a), flat(b)) or 0.0) < 0.05

    return study


def node_study(series: int, nodes: int, n: int) -> Study:
    """Study a node effect (SY25) reported of a series with equal nodes; the peer: any p < 0.05."""

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        tests = [
            kruskal([skewed(chance, n).tolist() for _ in range(nodes)]) or 0.0
            for _ in range(series)
        ]
        return min(holm(tests)) <= NODE_P, min(tests) < 0.05

    return study


def lines_study(lines: int) -> Study:
    """Study a slope or break reported of constant levels; the peer: any interval without 0."""

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        found = [
            fit_slope(LEVELS.tolist(), normal(chance, len(LEVELS)).tolist()) for _ in range(lines)
        ]
        plain = [
            FactorLine("x", "m", "s", "f", "f", "", True, line, line.slope.p)
            for line in found
            if line is not None
        ]
        reported = [
            one.is_significant or one.line.break_point is not None for one in correct_p(plain)
        ]
        return any(reported), any(p.line.slope.excludes_zero for p in plain)

    return study


def series_study(draw: Draw, n: int, finds: Callable[[list[float]], object]) -> Study:
    """Study anything found in a series of one constant distribution."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        return finds(draw(chance, n).tolist()) is not None, None

    return study


def many_warm_ups_study(draw: Draw, n: int, series: int) -> Study:
    """Study a warm-up (SY20) reported of any constant series; the peer: any without correction."""

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        found = [find_warm_up(draw(chance, n).tolist()) for _ in range(series)]
        tests = [one.p if one is not None else 1.0 for one in found]
        return min(holm(tests)) <= TEST_LEVEL, min(tests) < 1.0

    return study


def many_humps_study(draw: Draw, n: int, series: int) -> Study:
    """Study two humps (SY21) reported of any of several series with one hump."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        return any(find_two_humps(draw(chance, n).tolist(), series) for _ in range(series)), None

    return study


def drift_study(draw: Draw, conditions: int, n: int) -> Study:
    """Study the drift (SY16) reported of conditions in turns: single, common, or intermittent.

    The peer: any Spearman's p < 0.05 of a single condition.
    """

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        turns = (
            np.argsort(chance.random((n, conditions)), axis=1) + conditions * np.arange(n)[:, None]
        )
        series = [
            Timed(np.sort(turns[:, c]).tolist(), draw(chance, n, 10.0 * (1 + c)).tolist())
            for c in range(conditions)
        ]
        alone = [found.p for one in series if (found := find_trend([one])) is not None]
        together, wandering = find_trend(series) if conditions > 1 else None, find_wander(series)
        tests = [*alone, *([together.p] if together else []), wandering or 1.0]
        return min(holm(tests)) <= DRIFT_LEVEL, min(alone, default=1.0) < 0.05

    return study


def breaks(noise: list[float]) -> object:
    """Find a break in a straight line."""
    return line_break(LEVELS.tolist(), (np.asarray(noise) + 12 * LEVELS).tolist())


def inner_study(runs: int, iterations: int) -> Study:
    """Study a warm-up reported of iterations without one that correlate with the previous (0.6)."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        noise = chance.standard_normal((runs, iterations))
        for place in range(1, iterations):
            noise[:, place] = 0.6 * noise[:, place - 1] + 0.8 * noise[:, place]
        found = find_inner_warm_up(
            {run: [series] for run, series in enumerate((10 + noise).tolist())}
        )
        return found is not None and found.p <= INNER_LEVEL, None

    return study
