"""Which runs of a comparison are independent: from the study's blocks and the runs' jobs.

Decided by the design alone, never by the values: to take the narrower of two intervals would make
both cover less than they say.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis.stats import CONFIDENCE
from steelyard.analysis.stats_clusters import (
    MIN_BLOCKS,
    block_mean,
    overhead_by_block,
    overhead_by_job,
    paired_p,
)
from steelyard.analysis.stats_overhead import Overhead, overhead
from steelyard.analysis.stats_tests import Effect, hedges, hedges_paired, welch

if TYPE_CHECKING:
    from steelyard.analysis.summary import Row

Groups = dict[object, list[float]]


def compare_means(row: Row, base: Row) -> Overhead:
    """The overhead of the row, by blocks or jobs where runs are not independent."""
    pairs = pairs_of(row, base)
    if pairs is not None:
        return overhead_by_block(pairs, row.confidence)
    if shares_jobs(row, base):
        ours, theirs = (list(jobs_of(side).values()) for side in (row, base))
        return overhead_by_job(ours, theirs, row.confidence)
    return overhead(row.values, base.values, row.confidence)


def p_of_means(row: Row, base: Row) -> float | None:
    """The p that goes with it, uncorrected for other comparisons; None where there is no test.

    One that is told at 5 %: of a study that stopped early a level of 4 % keeps to that.
    """
    pairs = pairs_of(row, base)
    if pairs is not None:
        p = paired_p(pairs)
    elif shares_jobs(row, base):
        p = welch(job_means(row), job_means(base))
    else:
        p = welch(row.values, base.values)
    return p and min(p * (1 - CONFIDENCE) / (1 - row.confidence), 1.0)


def effect_of(row: Row, base: Row) -> Effect | None:
    """Hedges' g; of blocks' means where they are paired, of jobs' where runs share jobs."""
    pairs = pairs_of(row, base)
    if pairs is not None:
        sides = [[block_mean(values) for values in side] for side in zip(*pairs, strict=True)]
        found = hedges_paired(*sides)
        return found and replace(found, design=f"paired in {len(pairs)} blocks")
    if not shares_jobs(row, base):
        return hedges(row.values, base.values)
    ours, theirs = job_means(row), job_means(base)
    found = hedges(ours, theirs)
    return found and replace(found, design=f"by {len(ours)} + {len(theirs)} jobs")


def job_means(row: Row) -> list[float]:
    """What a job's runs have in common is one sample, however many there are.

    In the order in which the jobs started; where each run is a job of its own, the values.
    """
    return [statistics.fmean(values) for values in jobs_of(row).values()]


def pairs_of(row: Row, base: Row) -> list[tuple[list[float], list[float]]] | None:
    """(row's, base's) values by block; None where a block lacks a side, or blocks are few."""
    ours, theirs = grouped(row, row.group.blocks), grouped(base, base.group.blocks)
    if None in ours or ours.keys() != theirs.keys() or len(ours) < MIN_BLOCKS:
        return None
    return [(values, theirs[block]) for block, values in ours.items()]


def jobs_of(row: Row) -> Groups:
    """Values by job; a run without one (a local run) stands alone."""
    return grouped(row, row.group.jobs)


def sample_word(row: Row) -> str:
    """What one of job_means() is of."""
    return "run" if row.jobs is None else "job"


def shares_jobs(row: Row, base: Row) -> bool:
    """Whether any job holds several runs of a side."""
    return any(len({side.group.jobs[run] for run in side.run_ids}) < side.n for side in (row, base))


def grouped(row: Row, keys: Mapping[str, object]) -> Groups:
    """The row's values by a property of their runs."""
    groups: Groups = {}
    for run_id, value in zip(row.run_ids, row.values, strict=True):
        groups.setdefault(keys[run_id], []).append(value)
    return groups
