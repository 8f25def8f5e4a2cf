"""The simulated studies of bench/coverage.py: each draws its values from a known distribution."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from steelyard.analysis.stats import mean_interval
from steelyard.analysis.stats_changes import warm_up
from steelyard.analysis.stats_clusters import overhead_by_block, overhead_by_job
from steelyard.analysis.stats_drift import Timed, trend, wander
from steelyard.analysis.stats_groups import mean_bca, mean_by_job
from steelyard.analysis.stats_iterations import inner_warm_up
from steelyard.analysis.stats_overhead import Direction, overhead, verdict
from steelyard.analysis.stats_planning import enough, stopped_interval
from steelyard.analysis.stats_proportion import wilson
from steelyard.analysis.stats_shape import two_humps
from steelyard.analysis.stats_slope import line_break, line_slope
from steelyard.analysis.stats_split import Side, split
from steelyard.analysis.stats_tests import hedges, holm, welch
from steelyard.analysis.summary_findings_drift import LEVEL as DRIFT_LEVEL

FAMILY = 20

Chance = np.random.Generator
Values = NDArray[np.float64]
# One simulated study: ours (whether the interval held, whether an alarm was told), the peer's.
Study = Callable[[Chance, bool], tuple[bool, bool | None]]


def normal(chance: Chance, n: int, mean: float = 10.0, share: float = 0.05) -> Values:
    """Runs with a standard deviation of a share of their mean."""
    return mean * (1 + share * chance.standard_normal(n))


def skewed(chance: Chance, n: int, mean: float = 10.0, share: float = 0.3) -> Values:
    """Log-normal runs of the same mean: a tail to the slow side, as run times have."""
    variance = math.log1p(share**2)
    return mean * np.exp(math.sqrt(variance) * chance.standard_normal(n) - variance / 2)


Draw = Callable[..., Values]


def held(low: float | None, high: float | None, truth: float) -> bool:
    return low is not None and high is not None and low <= truth <= high


def mean_study(draw: Draw, n: int) -> Study:
    """Student's interval of a mean."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        found = mean_interval(draw(chance, n).tolist())
        return held(found.low, found.high, 10.0), None

    return study


def bootstrap_study(draw: Draw, n: int) -> Study:
    """The bootstrap's interval of a mean."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        found = mean_bca([[value] for value in draw(chance, n).tolist()])
        return found is not None and held(found.low, found.high, 10.0), None

    return study


def mean_by_job_study(n: int, runs: int, job_share: float) -> Study:
    """Student's by job; the peer takes runs for independent."""

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        luck = 1 + job_share * chance.standard_normal(n)
        jobs = [normal(chance, runs, 10.0 * one).tolist() for one in luck]
        found, plain = mean_by_job(jobs), mean_interval(flat(jobs))
        return held(found.low, found.high, 10.0), held(plain.low, plain.high, 10.0)

    return study


def overhead_study(draw: Draw, n: int, m: int, share: float = 0.05) -> Study:
    """An overhead of 10 %; the peer is scipy's BCa."""

    def study(chance: Chance, with_peer: bool) -> tuple[bool, bool | None]:
        values, base = draw(chance, n, 11.0, share), draw(chance, m, 10.0, share)
        found = overhead(values.tolist(), base.tolist())
        return held(found.low, found.high, 0.1), scipy_held(values, base) if with_peer else None

    return study


def job_study(n: int, runs: int, job_share: float) -> Study:
    """The same, each job with its own luck for all runs in it; the peer takes runs for independent."""

    def side(chance: Chance, mean: float) -> list[list[float]]:
        luck = job_share * chance.standard_normal(n)
        return [normal(chance, runs, mean * (1 + one), 0.05).tolist() for one in luck]

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        ours, base = side(chance, 11.0), side(chance, 10.0)
        found, plain = overhead_by_job(ours, base), overhead(flat(ours), flat(base))
        return held(found.low, found.high, 0.1), held(plain.low, plain.high, 0.1)

    return study


def block_study(blocks: int, runs: int, block_share: float) -> Study:
    """Interleaved blocks, each with its own luck for both sides; the peer does not pair them."""

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        luck = 1 + block_share * chance.standard_normal(blocks)
        pairs = [
            (normal(chance, runs, 11.0 * one).tolist(), normal(chance, runs, 10.0 * one).tolist())
            for one in luck
        ]
        found = overhead_by_block(pairs)
        plain = overhead(flat([a for a, _ in pairs]), flat([b for _, b in pairs]))
        return held(found.low, found.high, 0.1), held(plain.low, plain.high, 0.1)

    return study


def flat(groups: list[list[float]]) -> list[float]:
    return [value for group in groups for value in group]


def scipy_held(values: Values, base: Values) -> bool:
    """The same by scipy.stats.bootstrap with its defaults but fewer resamples."""
    from scipy.stats import bootstrap

    def ratio(a: Values, b: Values, axis: int = -1) -> Values:
        result: Values = a.mean(axis=axis) / b.mean(axis=axis)
        return result

    interval = bootstrap(
        (values, base), ratio, n_resamples=1999, vectorized=True, rng=np.random.default_rng(1)
    ).confidence_interval
    return bool(interval.low <= 1.1 <= interval.high)


LEVELS = np.repeat([0.0, 0.025, 0.05, 0.075, 0.1], 5)


def slope_study(grows: float) -> Study:
    """12 s per s of delay over five levels, five runs each; the spread grows with the delay."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        noise = 0.1 * (1 + grows * LEVELS / 0.1) * chance.standard_normal(len(LEVELS))
        found = line_slope(LEVELS.tolist(), (10 + 12 * LEVELS + noise).tolist())
        return found is not None and found.low <= 12 <= found.high, None

    return study


def effect_study(n: int, size: float) -> Study:
    """Hedges' g."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        found = hedges(
            (size + chance.standard_normal(n)).tolist(), chance.standard_normal(n).tolist()
        )
        return found is not None and found.low <= size <= found.high, None

    return study


def job_effect_study(n: int, runs: int, job_share: float, size: float) -> Study:
    """The same of jobs' means; the peer takes runs for independent."""
    sd = math.sqrt(job_share + (1 - job_share) / runs)  # of a job's mean

    def side(chance: Chance, shift: float) -> Values:
        luck = math.sqrt(job_share) * chance.standard_normal((n, 1))
        noise = math.sqrt(1 - job_share) * chance.standard_normal((n, runs))
        return shift * sd + luck + noise

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        ours, base = side(chance, size), side(chance, 0.0)
        found = hedges(ours.mean(axis=1).tolist(), base.mean(axis=1).tolist())
        plain = hedges(ours.ravel().tolist(), base.ravel().tolist())
        # In standard deviations of runs, which are 1.
        return (
            found is not None and found.low <= size <= found.high,
            plain is not None and plain.low <= size * sd <= plain.high,
        )

    return study


def split_study(runs: int, transfers: int) -> Study:
    """30 % of a difference of 50 s are throughput; 1 GB read, 25 and 10 ns a byte."""

    def side(chance: Chance, rest_s: float, s_per_byte: float) -> Side:
        moved = normal(chance, runs, 1e9, 0.02)
        seconds = (rest_s + moved * s_per_byte) * normal(chance, runs, 1.0, 0.05)
        rates = normal(chance, transfers, s_per_byte, 0.05)
        return Side(*([[v] for v in values.tolist()] for values in (seconds, moved, rates)))

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        found = split(side(chance, 55.0, 2.5e-8), side(chance, 20.0, 1e-8)).throughput_share
        return found is not None and held(found.low, found.high, 0.3), None

    return study


def share_study(share: float, packets: int) -> Study:
    """Lost packets."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        found = wilson(int(chance.binomial(packets, share)), packets)
        return found.low <= share <= found.high, None

    return study


def stopping_study(draw: Draw, share: float, runs: int) -> Study:
    """Stopped when narrow enough, after about `runs`; the peer stops at the first 95 % interval."""
    wanted = 1.96 * 10.0 * share / math.sqrt(runs)

    def study(chance: Chance, with_peer: bool) -> tuple[bool, bool | None]:
        values = draw(chance, 40 * runs, 10.0, share).tolist()
        n = 2
        while not enough(values[:n], wanted):
            n += 1
        found = stopped_interval(values[:n])
        return held(found.low, found.high, 10.0), plain_stop(values, wanted) if with_peer else None

    return study


def plain_stop(values: list[float], wanted: float) -> bool:
    """Look after each run from the third on, stop at the first 95 % interval narrow enough."""
    for n in range(3, len(values)):
        found = mean_interval(values[:n])
        if (found.half_width or 0.0) <= wanted:
            return held(found.low, found.high, 10.0)
    return False


def verdict_study(draw: Draw, n: int, family: int) -> Study:
    """Any difference told among conditions that are all like the baseline; the peer: any p < 0.05."""

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        base = draw(chance, n).tolist()
        conditions = [draw(chance, n).tolist() for _ in range(family)]
        tests = [welch(values, base) or 0.0 for values in conditions]
        corrected = holm(tests)
        told = any(
            verdict(overhead(values, base), "s", "lower", p=p).direction is not Direction.NOT_SHOWN
            for values, p in zip(conditions, corrected, strict=True)
            if p <= 0.05  # above it the verdict is the same whatever the interval
        )
        return told, min(tests) < 0.05

    return study


def series_study(draw: Draw, n: int, finds: Callable[[list[float]], object]) -> Study:
    """Anything found in a series of one steady distribution."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        return finds(draw(chance, n).tolist()) is not None, None

    return study


def drift_study(draw: Draw, conditions: int, n: int) -> Study:
    """What SY16 tells of conditions in turns: any of each by itself, all together, come and go.

    The peer: any Spearman's p < 0.05 of a condition by itself.
    """

    def study(chance: Chance, _: bool) -> tuple[bool, bool]:
        turns = (
            np.argsort(chance.random((n, conditions)), axis=1) + conditions * np.arange(n)[:, None]
        )
        series = [
            Timed(np.sort(turns[:, c]).tolist(), draw(chance, n, 10.0 * (1 + c)).tolist())
            for c in range(conditions)
        ]
        alone = [found.p for one in series if (found := trend([one])) is not None]
        together, wandering = trend(series) if conditions > 1 else None, wander(series)
        tests = [*alone, *([together.p] if together else []), wandering or 1.0]
        return min(holm(tests)) <= DRIFT_LEVEL, min(alone, default=1.0) < 0.05

    return study


def breaks(noise: list[float]) -> object:
    """A break in a straight line."""
    return line_break(LEVELS.tolist(), (np.asarray(noise) + 12 * LEVELS).tolist())


INTERVALS: dict[str, Study] = {
    "mean, normal, n = 5": mean_study(normal, 5),
    "mean, skewed, n = 35": mean_study(skewed, 35),
    "mean by bootstrap, normal, n = 10": bootstrap_study(normal, 10),
    "mean by bootstrap, skewed, n = 35": bootstrap_study(skewed, 35),
    "mean by job, 5 of 4": mean_by_job_study(5, 4, 0.05),
    "mean by job, 10 of 5": mean_by_job_study(10, 5, 0.1),
    "overhead, normal, 5 + 5": overhead_study(normal, 5, 5),
    "overhead, normal 20 %, 10 + 10": overhead_study(normal, 10, 10, 0.2),
    "overhead, skewed, 10 + 35": overhead_study(skewed, 10, 35, 0.15),
    "overhead, skewed, 35 + 35": overhead_study(skewed, 35, 35, 0.3),
    "overhead by job, 5 + 5 of 4": job_study(5, 4, 0.05),
    "overhead by job, 10 + 10 of 5": job_study(10, 5, 0.1),
    "overhead by block, 10 of 1 + 1": block_study(10, 1, 0.1),
    "overhead by block, 35 of 1 + 1": block_study(35, 1, 0.2),
    "overhead by block, 10 of 3 + 3": block_study(10, 3, 0.0),
    "slope, even spread, 5 x 5": slope_study(0.0),
    "slope, growing spread, 5 x 5": slope_study(3.0),
    "effect size, g = 0.8, 10 + 10": effect_study(10, 0.8),
    "effect size, g = 0, 35 + 35": effect_study(35, 0.0),
    "effect size by job, 10 + 10 of 5": job_effect_study(10, 5, 0.5, 0.8),
    "share of latency, 5 + 5, 5 + 5": split_study(5, 5),
    "share of latency, 20 + 20, 5 + 5": split_study(20, 5),
    "loss, 1 % of 4000 packets": share_study(0.01, 4000),
    "stopped, normal, about 10": stopping_study(normal, 0.05, 10),
    "stopped, normal, about 25": stopping_study(normal, 0.05, 25),
    "stopped, skewed, about 35": stopping_study(skewed, 0.3, 35),
}


def inner_study(runs: int, iterations: int) -> Study:
    """A warm-up told of iterations that have none, but resemble the one before (0.6)."""

    def study(chance: Chance, _: bool) -> tuple[bool, None]:
        noise = chance.standard_normal((runs, iterations))
        for place in range(1, iterations):
            noise[:, place] = 0.6 * noise[:, place - 1] + 0.8 * noise[:, place]
        found = inner_warm_up({run: [series] for run, series in enumerate((10 + noise).tolist())})
        return found is not None and found.p <= 0.05, None

    return study


ALARMS: dict[str, Study] = {
    "verdict, normal, 5 + 5": verdict_study(normal, 5, 1),
    "verdict, skewed, 35 + 35": verdict_study(skewed, 35, 1),
    f"any of {FAMILY} verdicts, 10 + 10": verdict_study(normal, 10, FAMILY),
    "warm-up, n = 12": series_study(normal, 12, warm_up),
    "warm-up, skewed, n = 35": series_study(skewed, 35, warm_up),
    "two humps, normal, n = 35": series_study(normal, 35, two_humps),
    "two humps, skewed, n = 100": series_study(skewed, 100, two_humps),
    "break in a line, 5 x 5": series_study(normal, len(LEVELS), breaks),
    "warm-up inside, 5 runs of 3": inner_study(5, 3),
    "warm-up inside, 20 runs of 30": inner_study(20, 30),
    "drift, 1 condition, n = 35": drift_study(skewed, 1, 35),
    "drift, 2 conditions, n = 10": drift_study(normal, 2, 10),
    "drift, 10 conditions, n = 5": drift_study(normal, 10, 5),
}
SETTINGS = INTERVALS | ALARMS
