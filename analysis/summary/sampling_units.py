"""Decides which runs of a comparison are independent, from the study's blocks and the runs' jobs.

The design alone decides, never the values: a choice of the narrower interval would make both cover
less than their nominal share. If most blocks hold both sides, only these blocks are compared: a
failed run removes its own block from the comparison, and the other blocks stay paired (Cochran &
Cox (1957), "Experimental Designs", chapter 9: intra-block information).
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import CONFIDENCE, Interval, is_rate, rate_interval, to_costs
from steelyard.analysis.stats.effect_size import Effect, hedges, hedges_paired
from steelyard.analysis.stats.grouped_runs import (
    MIN_BLOCKS,
    block_mean,
    mean_by_group,
    overhead_by_block,
    overhead_by_job,
    paired_p,
)
from steelyard.analysis.stats.hypothesis_tests import (
    Sides,
    compute_past_margin_p,
    independent_sides,
    paired_sides,
    tost,
    welch,
)
from steelyard.analysis.stats.number_format import is_never_negative
from steelyard.analysis.stats.overhead import Overhead, compute_overhead, rate_overhead
from steelyard.jobscripts.plurals import counted

if TYPE_CHECKING:
    from steelyard.analysis.summary.rows import Group, Row

Groups = dict[object, list[float]]
Pairs = list[tuple[list[float], list[float]]]  # (row's, base's) values of each block


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of a row that a comparison uses."""

    group: Group
    run_ids: tuple[str, ...]
    values: tuple[float, ...]

    @property
    def n(self) -> int:
        return len(self.values)


def compare_means(row: Row, base: Row) -> Overhead:
    """Return the overhead of the row, by blocks or jobs if runs are not independent.

    It is not below −100 % if neither side can be negative.
    """
    found = compare_row(row, base)
    if found.low is not None and found.low < -1 and has_no_negative_mean(row):
        return replace(found, low=-1.0)
    return found


def compare_row(row: Row, base: Row) -> Overhead:
    """Return the overhead of the row without limits on its ends."""
    plain = ratio_of_means(row, base)
    if not are_rates(row, base):
        return plain
    return rate_overhead(plain, ratio_of_means(*convert_to_costs(row, base)))


def are_rates(row: Row, base: Row) -> bool:
    """Return whether both sides are rates that have a cost; a rate of 0 has none."""
    return all(is_rate_row(side) for side in (row, base))


def is_rate_row(row: Row) -> bool:
    """Return whether the row's mean is a harmonic one."""
    return is_rate(row.metric.unit, row.metric.better) and min(row.values) > 0


def convert_to_costs(row: Row, base: Row) -> tuple[Row, Row]:
    """Return the rows that tests and ratios use.

    Rates become costs with the sides exchanged, which is the ratio of the rates.
    """
    if not are_rates(row, base):
        return row, base
    ours, theirs = (replace(side, values=to_costs(side.values)) for side in (row, base))
    return theirs, ours


def ratio_of_means(row: Row, base: Row) -> Overhead:
    """Return the overhead of arithmetic means."""
    pairs = build_pairs(row, base)
    if pairs is not None:
        found = overhead_by_block(pairs, row.confidence)
        return replace(found, design=describe_pairs(pairs, row, base))
    ours, theirs = select_compared_runs(row, base)
    what, our_groups, their_groups = independent_groups(ours, theirs)
    if what == "run":
        found = compute_overhead(ours.values, theirs.values, row.confidence)
    else:
        found = overhead_by_job(our_groups, their_groups, row.confidence, what)
    where = describe_omitted_blocks(ours, theirs, row, base)
    return replace(found, design=f"{found.design or ''} {where}".strip()) if where else found


def select_compared_runs(row: Row, base: Row) -> tuple[Side, Side]:
    """Return the runs to compare: all, or only those in blocks that hold both sides.

    The latter are used if a side has several runs per block and most blocks hold both. What a block
    does to its runs then affects both means alike.
    """
    ours, theirs = group_by_block(row), group_by_block(base)
    shared = ours.keys() & theirs.keys()
    is_by_block = any(group_samples(side)[0] == "block" for side in (row, base))
    if not is_by_block or 2 * len(shared) <= max(len(ours), len(theirs)):
        shared = ours.keys() | theirs.keys()
    return select_runs(row, shared), select_runs(base, shared)


def select_runs(row: Row, blocks: AbstractSet[object]) -> Side:
    """Return the row's runs in these blocks."""
    pairs = [
        (run, value)
        for run, value in zip(row.run_ids, row.values, strict=True)
        if row.group.blocks[run] in blocks
    ]
    return Side(row.group, tuple(run for run, _ in pairs), tuple(value for _, value in pairs))


def describe_omitted_blocks(ours: Side, theirs: Side, row: Row, base: Row) -> str:
    """Return `in 4 of 5 blocks` if select_compared_runs() left blocks out; else an empty text."""
    if ours.n + theirs.n == row.n + base.n:
        return ""
    every = group_by_block(row).keys() | group_by_block(base).keys()
    return f"in {len(group_by_block(ours))} of {counted(len(every), 'block')}"


def independent_groups(row: Side, base: Side) -> tuple[str, list[list[float]], list[list[float]]]:
    """Return (`run`, `job` or `block`; each side's values by it): the independent unit.

    Runs of the same blocks count as independent. What a block does affects both sides, so this is
    conservative. Sides in separate blocks (levels that were added later) share no such effect:
    there blocks count, as for the mean.
    """
    sides = [group_samples(side) for side in (row, base)]
    blocks = [group_by_block(side) for side in (row, base)]
    if any(what == "block" for what, _ in sides) and blocks[0].keys() != blocks[1].keys():
        return "block", list(blocks[0].values()), list(blocks[1].values())
    if shares_jobs(row, base):
        return "job", list(group_by_job(row).values()), list(group_by_job(base).values())
    return "run", [[v] for v in row.values], [[v] for v in base.values]


def compute_means_p(row: Row, base: Row) -> float | None:
    """Return the p of the comparison, uncorrected for other comparisons; None without a test.

    It is to be judged at 5 %: for a study that stopped early it is scaled from a level of 4 %.
    """
    row, base = convert_to_costs(row, base)
    pairs = build_pairs(row, base)
    p = paired_p(pairs) if pairs is not None else welch(*describe_separate_means(row, base)[1:])
    return p if p is None else check_level(p, row)


def compute_equivalence_p(row: Row, base: Row, margin: float) -> float | None:
    """Return the p that the overhead is beyond ± margin, by the same design."""
    sides = build_sides(row, base)
    p = None if sides is None else tost(sides, margin)
    return p if p is None else check_level(p, row)


def compute_non_inferiority_p(row: Row, base: Row, margin: float) -> float | None:
    """Return the p that the overhead is at or past the margin on the worse side.

    Returns None if neither side is worse, or without a test.
    """
    sides = build_sides(row, base)
    if sides is None or row.metric.better is None:
        return None
    p = compute_past_margin_p(sides, margin, 1 if row.metric.better == "lower" else -1)
    return p if p is None else check_level(p, row)


def build_sides(row: Row, base: Row) -> Sides | None:
    """Return both means in the form that the tests of a margin need."""
    row, base = convert_to_costs(row, base)
    pairs = build_pairs(row, base)
    return (
        paired_sides(pairs)
        if pairs is not None
        else independent_sides(*compared_groups(row, base)[1:])
    )


def check_level(p: float, row: Row) -> float:
    """Return a p to be judged at 5 %, whatever the confidence of the row's intervals."""
    return min(p * (1 - CONFIDENCE) / (1 - row.confidence), 1.0)


def compute_effect(row: Row, base: Row) -> Effect | None:
    """Return Hedges' g: of blocks' means if they are paired, of jobs' means if runs share jobs."""
    ours_of, theirs_of = convert_to_costs(row, base)
    pairs = build_pairs(ours_of, theirs_of)
    if pairs is not None:
        sides = [[block_mean(values) for values in side] for side in zip(*pairs, strict=True)]
        found = hedges_paired(*sides, confidence=row.confidence)
        return found and replace(found, design=describe_pairs(pairs, row, base))
    found = hedges(*describe_separate_means(ours_of, theirs_of)[1:], confidence=row.confidence)
    what, ours, theirs = describe_separate_means(row, base)
    design = "" if what == "run" else f"by {len(ours)} + {len(theirs)} {what}s"
    where = describe_omitted_blocks(*select_compared_runs(row, base), row, base)
    return found and replace(found, design=f"{design} {where}".strip() or None)


def compared_groups(row: Row, base: Row) -> tuple[str, list[list[float]], list[list[float]]]:
    """Return independent_groups() of the runs that are compared."""
    return independent_groups(*select_compared_runs(row, base))


def describe_separate_means(row: Row, base: Row) -> tuple[str, list[float], list[float]]:
    """Return compared_groups() with the mean of each group."""
    what, ours, theirs = compared_groups(row, base)
    return what, [block_mean(values) for values in ours], [block_mean(values) for values in theirs]


def job_means(row: Row) -> list[float]:
    """Return the mean of each job, in the order of the jobs' starts.

    What the runs of a job have in common is one sample, however many runs there are. If each run
    has its own job, the means are the values.
    """
    return [statistics.fmean(values) for values in group_by_job(row).values()]


def build_pairs(row: Row, base: Row) -> Pairs | None:
    """Return (row's, base's) values of each block that holds both; None if these blocks are few."""
    ours, theirs = group_by_block(row), group_by_block(base)
    pairs = [(values, theirs[block]) for block, values in ours.items() if block in theirs]
    return None if None in ours or len(pairs) < MIN_BLOCKS else pairs


def describe_pairs(pairs: Pairs, row: Row, base: Row) -> str:
    """Format `paired in 35 blocks`, `paired in 34 of 35 blocks`."""
    every = len(group_by_block(row).keys() | group_by_block(base).keys())
    return f"paired in {len(pairs)} {'' if every == len(pairs) else f'of {every} '}blocks"


def group_by_block(row: Row | Side) -> Groups:
    """Return the values by block."""
    return group_values(row, row.group.blocks)


def group_by_job(row: Row | Side) -> Groups:
    """Return the values by job; a run without a job (a local run) is its own group."""
    return group_values(row, row.group.jobs)


def group_samples(row: Row | Side) -> tuple[str, list[list[float]]]:
    """Return (`run`, `job` or `block`; the values by it): the independent unit of the row's mean.

    If a block holds several jobs of a row, what the block does to all of them (the hour, the load)
    makes them alike: then blocks are the sampling units, not jobs. A single block gives no
    information about the spread of blocks.
    """
    jobs, blocks = group_by_job(row), group_by_block(row)
    if None not in blocks and 2 <= len(blocks) < len(jobs):
        return "block", list(blocks.values())
    return "run" if len(jobs) == row.n else "job", list(jobs.values())


def sample_means(row: Row) -> list[float]:
    """Return the means of the independent units."""
    return [statistics.fmean(values) for values in group_samples(row)[1]]


def compute_mean(row: Row) -> Interval:
    """Return the row's mean with its interval; rates have the harmonic mean."""
    if is_rate_row(row):
        by_cost = group_samples(replace(row, values=to_costs(row.values)))[1]
        return rate_interval(mean_by_group(by_cost, row.confidence, never_negative=True))
    return mean_by_group(group_samples(row)[1], row.confidence, has_no_negative_mean(row))


def has_no_negative_mean(row: Row) -> bool:
    """Return whether the row's quantity cannot have a negative mean."""
    return is_never_negative(row.group.variant, row.metric.unit, min(row.values))


def sample_word(row: Row) -> str:
    """Return the unit of one of job_means(): `run` or `job`."""
    return "run" if len(group_by_job(row)) == row.n else "job"


def shares_jobs(row: Side, base: Side) -> bool:
    """Return whether any job holds several runs of a side."""
    return any(len({side.group.jobs[run] for run in side.run_ids}) < side.n for side in (row, base))


def group_values(row: Row | Side, keys: Mapping[str, object]) -> Groups:
    """Return the row's values by a property of their runs."""
    groups: Groups = {}
    for run_id, value in zip(row.run_ids, row.values, strict=True):
        groups.setdefault(keys[run_id], []).append(value)
    return groups
