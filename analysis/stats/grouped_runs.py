"""Means and overheads of runs that are not independent: several in one job, or in blocks.

The sampling unit is then the job, or the block with both conditions in it, and not the run: Cochran
(1977), "Sampling Techniques", chapters 6 and 9. Limits are Fieller's as in overhead.py, with jobs
or blocks instead of runs. bench/coverage.py has a setting for each.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace

from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    Interval,
    check_values,
    compute_ends,
    fieller,
    mean_interval,
    student_quantile,
)
from steelyard.analysis.stats.overhead import (
    MeanError,
    Overhead,
    compute_fieller_overhead,
    with_interval,
    without_interval,
)

Group = Sequence[float]  # the runs of a job, or of a block
Groups = Sequence[Group]

# With fewer blocks the interval of pairs is wider than that of runs taken as independent, which is
# conservative for interleaved blocks: t(9) = 2.26 and t(18) = 2.10, but t(4) = 2.78.
MIN_BLOCKS = 10
MIN_JOBS = 3


def mean(groups: Groups) -> float:
    """Return the mean of all members."""
    return math.fsum(math.fsum(group) for group in groups) / size(groups)


def size(groups: Groups) -> int:
    """Return the number of members of all groups."""
    return sum(map(len, groups))


def residuals(groups: Groups) -> list[float]:
    """Return how far each group moves the mean of all runs from where the other groups have it."""
    middle, n = mean(groups), size(groups)
    return [(math.fsum(group) - middle * len(group)) / n for group in groups]


def covariance(ours: Sequence[float], others: Sequence[float]) -> float:
    """Return the covariance of two means from their residuals.

    Cochran (1977), "Sampling Techniques", equation 6.13.
    """
    m = len(ours)
    return m / (m - 1) * math.fsum(a * b for a, b in zip(ours, others, strict=True))


def mean_by_group(
    groups: Groups, confidence: float = CONFIDENCE, never_negative: bool = False
) -> Interval:
    """Return the mean of all runs and Student's interval with the degrees of freedom of the groups.

    With one run per group it is mean_interval(). With fewer than 2 groups it has no ends.
    """
    middle, n = mean(groups), size(groups)
    if len(groups) == n:
        return mean_interval([group[0] for group in groups], confidence, never_negative)
    if len(groups) < 2:
        return Interval(middle, None, None, n)
    errors = residuals(groups)
    quantile = student_quantile((1 + confidence) / 2, len(groups) - 1)
    half = quantile * math.sqrt(covariance(errors, errors))
    return Interval(middle, *compute_ends(middle, half, len(groups), never_negative), n)


def overhead_by_job(
    condition: Groups, baseline: Groups, confidence: float = CONFIDENCE, what: str = "job"
) -> Overhead:
    """Return the overhead of the means of all runs; each group holds the runs of one job.

    A group may also be a block, if the two sides have separate blocks.
    """
    ours, base = [check_values(job) for job in condition], [check_values(job) for job in baseline]
    runs = [v for job in ours for v in job], [v for job in base for v in job]
    # The value and the special cases (too few, a mean of 0, no spread) do not depend on the jobs.
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


def compute_mean_error(jobs: Groups) -> MeanError:
    """Return the mean of all runs and its error, with jobs as sampling units."""
    errors = residuals(jobs)
    return MeanError(mean(jobs), covariance(errors, errors), len(jobs) - 1)


def overhead_by_block(
    blocks: Sequence[tuple[Group, Group]], confidence: float = CONFIDENCE
) -> Overhead:
    """Return the overhead of blocks that hold runs of both: (condition, baseline) of each block.

    What affects all runs of a block (the hour, the node) affects both sides and cancels out.
    """
    ours, base = [condition for condition, _ in blocks], [baseline for _, baseline in blocks]
    # All values are checked together, because a report has thousands of blocks of one run.
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
    """Return the two-sided p of Student's test of the differences of block means.

    Student (1908), "The Probable Error of a Mean", Biometrika 6(1). Returns None without spread.
    """
    from scipy.special import stdtr

    differences = [block_mean(a) - block_mean(b) for a, b in blocks]
    spread = statistics.stdev(differences)
    if spread == 0:
        return None
    t = statistics.fmean(differences) / (spread / math.sqrt(len(differences)))
    return 2 * float(stdtr(len(differences) - 1, -abs(t)))


def block_mean(values: Group) -> float:
    """Return the mean of a block's values; most blocks have one value."""
    return values[0] if len(values) == 1 else statistics.fmean(values)
