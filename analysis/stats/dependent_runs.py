"""Overhead where runs are not independent: several in one job, or interleaved in blocks.

What is drawn is then the job, or the block with both conditions in it, and not the run: Cochran
(1977), "Sampling Techniques", chapters 6 and 9. Limits are Fieller's as in overhead.py, with jobs
or blocks in the place of runs. bench/coverage.py has a setting for each.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from steelyard.analysis.stats.basics import CONFIDENCE, check_values, fieller, student_quantile
from steelyard.analysis.stats.grouped_mean import covariance, mean, residuals
from steelyard.analysis.stats.overhead import (
    MeanError,
    Overhead,
    compute_fieller_overhead,
    with_interval,
    without_interval,
)

# Below this the interval of pairs is wider than that of runs taken as independent, which in
# interleaved blocks errs on the safe side: t(9) = 2.26 where t(18) = 2.10, but t(4) = 2.78.
MIN_BLOCKS = 10
MIN_JOBS = 3

Group = Sequence[float]


def overhead_by_job(
    condition: Sequence[Group],
    baseline: Sequence[Group],
    confidence: float = CONFIDENCE,
    what: str = "job",
) -> Overhead:
    """Overhead of the means of all runs; each member of an argument holds the runs of one job.

    Or of one block, where the sides are in blocks of their own.
    """
    ours, base = [check_values(job) for job in condition], [check_values(job) for job in baseline]
    runs = [v for job in ours for v in job], [v for job in base for v in job]
    # Value and odd cases (too few, a mean of 0, no spread) do not depend on the jobs.
    plain, is_final = without_interval(*runs)
    if is_final:
        return plain
    jobs = len(ours), len(base)
    if min(jobs) < MIN_JOBS:
        reason = f"all runs are of {jobs[0]} + {jobs[1]} {what}s: {MIN_JOBS} each are needed"
        return replace(plain, low=None, high=None, method="none", reason=reason)
    errors = compute_mean_error(ours), compute_mean_error(base)
    design = f"by {jobs[0]} + {jobs[1]} {what}s"
    return replace(compute_fieller_overhead(plain, *errors, confidence), design=design)


def compute_mean_error(jobs: Sequence[Group]) -> MeanError:
    """Of all runs, jobs drawn as wholes."""
    errors = residuals(jobs)
    return MeanError(mean(jobs), covariance(errors, errors), len(jobs) - 1)


def overhead_by_block(
    blocks: Sequence[tuple[Group, Group]], confidence: float = CONFIDENCE
) -> Overhead:
    """The same of blocks that hold runs of both; (condition, baseline) of each block.

    What a block does to all runs in it (the hour, the node) hits both sides and drops out.
    """
    ours, base = [condition for condition, _ in blocks], [baseline for _, baseline in blocks]
    # Checked together: a report has thousands of blocks of one run.
    plain, is_final = without_interval(
        *(check_values([v for block in side for v in block]) for side in (ours, base))
    )
    if is_final:
        return plain
    m = len(blocks)
    errors, base_errors = residuals(ours), residuals(base)
    spread = (
        covariance(errors, errors),
        covariance(errors, base_errors),
        covariance(base_errors, base_errors),
    )
    quantile = student_quantile((1 + confidence) / 2, m - 1)
    found = with_interval(plain, fieller(mean(ours), mean(base), spread, quantile))
    return replace(found, design=f"paired in {m} blocks")


def paired_p(blocks: Sequence[tuple[Group, Group]]) -> float | None:
    """Two-sided p of Student's test of the differences of the blocks' means; None without spread.

    Student (1908), "The Probable Error of a Mean", Biometrika 6(1).
    """
    from scipy.special import stdtr

    differences = [block_mean(a) - block_mean(b) for a, b in blocks]
    spread = statistics.stdev(differences)
    if spread == 0:
        return None
    t = statistics.fmean(differences) / (spread / math.sqrt(len(differences)))
    return 2 * float(stdtr(len(differences) - 1, -abs(t)))


def block_mean(values: Group) -> float:
    """Of most blocks the one value."""
    return values[0] if len(values) == 1 else statistics.fmean(values)
