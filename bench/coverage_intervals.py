"""Studies of bench/coverage.py on whether an interval contains the true value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from coverage_draws import (
    PLACES,
    Chance,
    Draw,
    Study,
    Values,
    flat,
    grown,
    held,
    normal,
)

from steelyard.analysis.stats.basics import mean_interval, wilson
from steelyard.analysis.stats.effect_size import hedges, hedges_paired
from steelyard.analysis.stats.grouped_runs import mean_by_group, overhead_by_block, overhead_by_job
from steelyard.analysis.stats.latency_share import Side, split_difference
from steelyard.analysis.stats.margin_crossing import find_crossing
from steelyard.analysis.stats.overhead import compute_overhead
from steelyard.analysis.stats.planning import STOPPING_CONFIDENCE, can_stop
from steelyard.analysis.stats.slope import line_slope, slope_by_block


def mean_study(draw: Draw, n: int, share: float | None = None) -> Study:
    """Study the interval of a mean of nonnegative values; the peer is Student's."""
    more = {} if share is None else {"share": share}

    def study(chance: Chance, _: bool) -> tuple[bool | None, bool | None]:
        values = draw(chance, n, **more).tolist()
        found, plain = mean_interval(values, never_negative=True), mean_interval(values)
        return held(found.low, found.high, 10.0), held(plain.low, plain.high, 10.0)

    return study


def mean_by_group_study(n: int, runs: int, group_share: float) -> Study:
    """Study a mean with varying jobs or blocks; the peer takes runs for independent."""

    def study(chance: Chance, _: bool) -> tuple[bool | None, bool | None]:
        luck = 1 + group_share * chance.standard_normal(n)
        groups = [normal(chance, runs, 10.0 * one).tolist() for one in luck]
        found = mean_by_group(groups, never_negative=True)
        plain = mean_interval(flat(groups))
        return held(found.low, found.high, 10.0), held(plain.low, plain.high, 10.0)

    return study


def overhead_study(
    draw: Draw, n: int, m: int, share: float = 0.05, base_share: float | None = None
) -> Study:
    """Study an overhead of 10 %; the peer is scipy's BCa."""
    theirs = share if base_share is None else base_share

    def study(chance: Chance, with_peer: bool) -> tuple[bool | None, bool | None]:
        values, base = draw(chance, n, 11.0, share), draw(chance, m, 10.0, theirs)
        found = compute_overhead(values.tolist(), base.tolist())
        return held(found.low, found.high, 0.1), scipy_held(values, base) if with_peer else None

    return study


def plain_held(ours: list[float], base: list[float]) -> bool | None:
    """Return the result if all runs are taken for independent."""
    plain = compute_overhead(ours, base)
    return held(plain.low, plain.high, 0.1)


def job_study(n: int, runs: int, job_share: float, least: int | None = None) -> Study:
    """Study an overhead with varying jobs; the peer takes runs for independent.

    `least`: jobs have from this number of runs to `runs`.
    """

    def side(chance: Chance, mean: float) -> list[list[float]]:
        luck = job_share * chance.standard_normal(n)
        sizes = chance.integers(runs if least is None else least, runs, n, endpoint=True)
        return [
            normal(chance, size, mean * (1 + one), 0.05).tolist()
            for one, size in zip(luck, sizes, strict=True)
        ]

    def study(chance: Chance, with_peer: bool) -> tuple[bool | None, bool | None]:
        ours, base = side(chance, 11.0), side(chance, 10.0)
        found = overhead_by_job(ours, base)
        peer = plain_held(flat(ours), flat(base)) if with_peer else None
        return held(found.low, found.high, 0.1), peer

    return study


def few_blocks_study(blocks: int, runs: int, block_share: float) -> Study:
    """Study so few interleaved blocks that runs count as independent, although they are not."""
    paired = block_study(blocks, runs, block_share)

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        return paired(chance, True)[1], None  # there, this is the peer

    return study


def block_study(blocks: int, runs: int, block_share: float, draw: Draw = normal) -> Study:
    """Study interleaved blocks that vary both sides together; the peer does not pair them."""

    def study(chance: Chance, with_peer: bool) -> tuple[bool | None, bool | None]:
        luck = 1 + block_share * chance.standard_normal(blocks)
        pairs = [
            (draw(chance, runs, 11.0 * one).tolist(), draw(chance, runs, 10.0 * one).tolist())
            for one in luck
        ]
        found = overhead_by_block(pairs)
        sides = flat([a for a, _ in pairs]), flat([b for _, b in pairs])
        return held(found.low, found.high, 0.1), plain_held(*sides) if with_peer else None

    return study


def scipy_held(values: Values, base: Values) -> bool:
    """Return the result of scipy.stats.bootstrap with its defaults but fewer resamples."""
    from scipy.stats import bootstrap

    def ratio(a: Values, b: Values, axis: int = -1) -> Values:
        result: Values = a.mean(axis=axis) / b.mean(axis=axis)
        return result

    interval = bootstrap(
        (values, base), ratio, n_resamples=1999, vectorized=True, rng=np.random.default_rng(1)
    ).confidence_interval
    return bool(interval.low <= 1.1 <= interval.high)


def slope_study(grows: float, levels: int = 5, runs: int = 5, draw: Draw | None = None) -> Study:
    """Study a slope of 12 s per s of delay over five levels; the spread grows with the delay."""
    x = np.repeat(PLACES[:levels], runs)

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        plain = chance.standard_normal(len(x)) if draw is None else draw(chance, len(x)) - 10
        found = line_slope(x.tolist(), (10 + 12 * x + 0.1 * (1 + grows * x / 0.1) * plain).tolist())
        return found is not None and found.low <= 12 <= found.high, None

    return study


def block_slope_study(blocks: int, block_sd: float) -> Study:
    """Study a slope with varying blocks; the peer takes runs for independent."""

    def study(chance: Chance, _: bool) -> tuple[bool | None, bool | None]:
        luck = block_sd * chance.standard_normal((blocks, 1))
        y = 10 + 12 * PLACES + luck + 0.1 * chance.standard_normal((blocks, len(PLACES)))
        places = PLACES.tolist()
        found = slope_by_block(
            [{place: [v] for place, v in zip(places, row, strict=True)} for row in y.tolist()]
        )
        plain = line_slope(places * blocks, y.ravel().tolist())
        return (
            found is not None and found.low <= 12 <= found.high,
            plain is not None and plain.low <= 12 <= plain.high,
        )

    return study


def effect_study(n: int, size: float) -> Study:
    """Study Hedges' g."""

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        found = hedges(
            (size + chance.standard_normal(n)).tolist(), chance.standard_normal(n).tolist()
        )
        return found is not None and found.low <= size <= found.high, None

    return study


def paired_effect_study(blocks: int, size: float, shared: float) -> Study:
    """Study Hedges' g of blocks with common variance; the peer takes sides for independent."""

    def study(chance: Chance, _: bool) -> tuple[bool | None, bool | None]:
        luck = math.sqrt(shared) * chance.standard_normal(blocks)
        noise = math.sqrt(1 - shared) * chance.standard_normal((2, blocks))
        sides = (size + luck + noise[0]).tolist(), (luck + noise[1]).tolist()
        found, plain = hedges_paired(*sides), hedges(*sides)
        return (
            found is not None and found.low <= size <= found.high,
            plain is not None and plain.low <= size <= plain.high,
        )

    return study


def job_effect_study(n: int, runs: int, job_share: float, size: float) -> Study:
    """Study Hedges' g of jobs' means; the peer takes runs for independent."""
    sd = math.sqrt(job_share + (1 - job_share) / runs)  # of a job's mean

    def side(chance: Chance, shift: float) -> Values:
        luck = math.sqrt(job_share) * chance.standard_normal((n, 1))
        noise = math.sqrt(1 - job_share) * chance.standard_normal((n, runs))
        return shift * sd + luck + noise

    def study(chance: Chance, _: bool) -> tuple[bool | None, bool | None]:
        ours, base = side(chance, size), side(chance, 0.0)
        found = hedges(ours.mean(axis=1).tolist(), base.mean(axis=1).tolist())
        plain = hedges(ours.ravel().tolist(), base.ravel().tolist())
        # In standard deviations of runs, which are 1.
        return (
            found is not None and found.low <= size <= found.high,
            plain is not None and plain.low <= size * sd <= plain.high,
        )

    return study


def split_study(runs: int, transfers: int, draw: Draw = normal, share: float = 0.05) -> Study:
    """Study a difference of 50 s with 30 % of throughput; 1 GB read, 25 and 10 ns per byte."""

    def side(chance: Chance, rest_s: float, s_per_byte: float) -> Side:
        moved = normal(chance, runs, 1e9, 0.02)
        seconds = (rest_s + moved * s_per_byte) * draw(chance, runs, 1.0, share)
        rates = draw(chance, transfers, s_per_byte, share)
        return Side(*([[v] for v in values.tolist()] for values in (seconds, moved, rates)))

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        found = split_difference(
            side(chance, 55.0, 2.5e-8), side(chance, 20.0, 1e-8)
        ).throughput_share
        return found is not None and held(found.low, found.high, 0.3), None

    return study


def share_study(share: float, packets: int) -> Study:
    """Study the share of lost packets."""

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        found = wilson(int(chance.binomial(packets, share)), packets)
        return found.low <= share <= found.high, None

    return study


def stopping_study(draw: Draw, share: float, runs: int) -> Study:
    """Study a stop when narrow enough, after about `runs`; the peer stops at the first interval."""
    wanted = 1.96 * 10.0 * share / math.sqrt(runs)

    def study(chance: Chance, with_peer: bool) -> tuple[bool | None, bool | None]:
        values = draw(chance, 40 * runs, 10.0, share).tolist()
        n = 2
        while not can_stop(values[:n], wanted):
            n += 1
        found = mean_interval(values[:n], STOPPING_CONFIDENCE)
        return held(found.low, found.high, 10.0), plain_stop(values, wanted) if with_peer else None

    return study


def grown_study(share: float, half_width: float, tells: Callable[..., bool]) -> Study:
    """Study the report of two conditions after a study with [study] stop."""

    def study(chance: Chance, _: bool) -> tuple[bool | None, None]:
        return tells(*grown(chance, share, half_width)), None

    return study


def tells_mean(_: list[float], base: list[float]) -> bool | None:
    found = mean_interval(base, STOPPING_CONFIDENCE)
    return held(found.low, found.high, 10.0)


def tells_overhead(ours: list[float], base: list[float]) -> bool | None:
    found = compute_overhead(ours, base, STOPPING_CONFIDENCE)
    return held(found.low, found.high, 0.1)


def plain_stop(values: list[float], wanted: float) -> bool | None:
    """Stop at the first 95 % interval that is narrow enough, from the third run on."""
    for n in range(3, len(values)):
        found = mean_interval(values[:n])
        if (found.half_width or 0.0) <= wanted:
            return held(found.low, found.high, 10.0)
    return False


TRIED = (0.0, 10.0, 20.0, 50.0, 100.0)  # levels of a factor, such as ms of delay


def tolerance_study(
    curve: Callable[[float], float], limit: float, n: int, share: float, block_share: float = 0.0
) -> Study:
    """Study the level at which a curve of this overhead is 10 % above its baseline.

    Each level has `n` runs.
    """
    truth = np.array([10.0 * (1 + curve(place)) for place in TRIED])

    def study(chance: Chance, _: bool) -> tuple[bool | None, bool | None]:
        values = truth[:, None] * (1 + share * chance.standard_normal((len(TRIED), n)))
        values *= 1 + block_share * chance.standard_normal(n)
        levels = [[[value] for value in row] for row in values.tolist()]
        found = find_crossing(TRIED, levels, 1.1, by_block=block_share > 0)
        low = -math.inf if found.low is None else found.low
        return held(low, math.inf if found.high is None else found.high, limit), None

    return study
