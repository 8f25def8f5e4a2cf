"""Overhead where runs are not independent: several in one job, or interleaved in blocks.

What is drawn again is then the job, or the block with both conditions in it, and not the run:
Davison & Hinkley (1997), "Bootstrap Methods and their Application", part 3.8; Field & Welsh (2007),
"Bootstrapping Clustered Data", JRSS B 69(3). Limits and widening are those of stats_overhead, with
jobs or blocks in the place of runs, Fieller's for fewer than 10 jobs too. bench/coverage.py has a
setting for each.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from steelyard.analysis.stats import CONFIDENCE, checked, student_quantile
from steelyard.analysis.stats_groups import covariance, drawn_means, mean, residuals
from steelyard.analysis.stats_overhead import (
    MIN_BOOTSTRAP,
    NO_LIMITS,
    SEED,
    Limits,
    MeanError,
    Overhead,
    bca_limits,
    by_fieller,
    found_in,
    weights,
    widened,
    without_bootstrap,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Sums = tuple[Floats, Floats]  # sum and number of the runs of each group

# Below this the interval of pairs is wider than that of runs taken as independent, which in
# interleaved blocks errs on the safe side: t(9) = 2.26 where t(18) = 2.10, but t(4) = 2.78.
MIN_BLOCKS = 10
MIN_JOBS = 3

Group = Sequence[float]


def overhead_by_job(
    condition: Sequence[Group],
    baseline: Sequence[Group],
    confidence: float = CONFIDENCE,
    seed: int = SEED,
) -> Overhead:
    """Overhead of the means of all runs; each member of an argument holds the runs of one job."""
    ours, base = [checked(job) for job in condition], [checked(job) for job in baseline]
    runs = [v for job in ours for v in job], [v for job in base for v in job]
    # Value and odd cases (too few, a mean of 0, no spread) do not depend on the jobs.
    plain, is_final = without_bootstrap(*runs)
    if is_final:
        return plain
    jobs = len(ours), len(base)
    if min(jobs) < MIN_JOBS:
        reason = f"all runs are of {jobs[0]} + {jobs[1]} jobs: {MIN_JOBS} each are needed"
        return replace(plain, low=None, high=None, method="none", reason=reason)
    errors = mean_error(ours), mean_error(base)
    design = f"by {jobs[0]} + {jobs[1]} jobs"
    if min(jobs) < MIN_BOOTSTRAP:
        return replace(by_fieller(plain, *errors, confidence), design=design)
    ratio = errors[0].mean / errors[1].mean
    z = widened(
        [errors[0].variance, ratio**2 * errors[1].variance], [n - 1 for n in jobs], confidence
    )
    sides = tallies(ours), tallies(base)
    draws = [
        drawn(side, n, seed, role) for role, (side, n) in enumerate(zip(sides, jobs, strict=True))
    ]
    found = limits(sides, draws, z, is_paired=False)
    return replace(found_in(plain, found), design=design)


def mean_error(jobs: Sequence[Group]) -> MeanError:
    """Of all runs, jobs drawn as wholes."""
    errors = residuals(jobs)
    return MeanError(mean(jobs), covariance(errors, errors), len(jobs) - 1)


def overhead_by_block(
    blocks: Sequence[tuple[Group, Group]], confidence: float = CONFIDENCE, seed: int = SEED
) -> Overhead:
    """The same of blocks that hold runs of both; (condition, baseline) of each block.

    What a block does to all runs in it (the hour, the node) hits both sides and drops out.
    """
    ours, base = [condition for condition, _ in blocks], [baseline for _, baseline in blocks]
    # Checked together: a report has thousands of blocks of one run.
    plain, is_final = without_bootstrap(
        *(checked([v for block in side for v in block]) for side in (ours, base))
    )
    if is_final:
        return plain
    m = len(blocks)
    sides = tallies(ours), tallies(base)
    z = student_quantile((1 + confidence) / 2, m - 1) * math.sqrt(m / (m - 1))
    # One draw for both: the pairs stay together.
    draws = [drawn(side, m, seed, 0) for side in sides]
    found = limits(sides, draws, z, is_paired=True)
    return replace(found_in(plain, found), design=f"paired in {m} blocks")


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


def tallies(groups: Sequence[Group]) -> Sums:
    """Sum and number of the runs of each group."""
    import numpy as np

    sums = [g[0] if len(g) == 1 else math.fsum(g) for g in groups]
    return np.array(sums), np.array([float(len(g)) for g in groups])


def mean_of(sums: Floats, sizes: Floats) -> float:
    """The mean of all runs."""
    return float(sums.sum() / sizes.sum())


def drawn(side: Sums, m: int, seed: int, role: int) -> Floats:
    """RESAMPLES means, groups drawn with replacement."""
    return drawn_means(weights(m, seed, role), *side)


def left_out(sums: Floats, sizes: Floats) -> Floats:
    """The mean without each group in turn."""
    means: Floats = (sums.sum() - sums) / (sizes.sum() - sizes)
    return means


def limits(sides: tuple[Sums, Sums], draws: Sequence[Floats], z: float, is_paired: bool) -> Limits:
    """BCa limits of the ratio of two means, from the means that were drawn of each."""
    if draws[1].min() <= 0 or left_out(*sides[1]).min() <= 0:
        return NO_LIMITS
    a, b = sides
    if is_paired:
        without = [left_out(*a) / left_out(*b)]
    else:
        without = [left_out(*a) / mean_of(*b), mean_of(*a) / left_out(*b)]
    return bca_limits(draws[0] / draws[1], mean_of(*a) / mean_of(*b), without, z)
