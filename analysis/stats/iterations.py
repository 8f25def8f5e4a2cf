"""Warm-up inside runs: whether their first iterations are unlike the rest, run after run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import mean_interval, student_quantile

MIN_ITERATIONS = 3
MIN_JOBS = 5


@dataclass(frozen=True, slots=True)
class InnerWarmUp:
    """The first `length` of so many iterations, as shares of the mean of those behind them."""

    length: int
    iterations: int
    runs: int
    jobs: int
    excess: float  # 0.2: they are 20 % above the rest
    p: float


def inner_warm_up(jobs: Mapping[object, Sequence[Sequence[float]]]) -> InnerWarmUp | None:
    """The cut in the first half of the iterations whose sides differ most; None: not to be judged.

    Each job (the runs in it, a run as its iterations) gives one difference between the sides, in
    means of the iterations behind the cut, and Student's test of these is multiplied by the number
    of cuts (Bonferroni). Iterations of one run resemble each other, so nothing is permuted among
    them. Runs of another length than most are left out; fewer than 3 iterations or 5 jobs: None.
    """
    length = statistics.mode([len(run) for runs in jobs.values() for run in runs] or [0])
    kept = [[run for run in runs if len(run) == length] for runs in jobs.values()]
    kept = [runs for runs in kept if runs]
    if length < MIN_ITERATIONS or len(kept) < MIN_JOBS:
        return None
    cuts = range(1, length // 2 + 1)
    excesses = {cut: [job_excess(runs, cut) for runs in kept] for cut in cuts}

    def contrast(cut: int) -> float:
        """As changes.contrasts(): a cut in the middle has more behind it on both sides."""
        return abs(statistics.fmean(excesses[cut])) * math.sqrt(cut * (length - cut) / length)

    best = max(cuts, key=contrast)
    p = min(student_p(excesses[best]) * len(cuts), 1.0)
    runs = sum(map(len, kept))
    return InnerWarmUp(best, length, runs, len(kept), statistics.fmean(excesses[best]), p)


def job_excess(runs: Sequence[Sequence[float]], cut: int) -> float:
    """(mean of the first − mean of the rest) / mean of the rest, mean over a job's runs; 0 for none."""
    shares = []
    for run in runs:
        rest = statistics.fmean(run[cut:])
        shares.append((statistics.fmean(run[:cut]) - rest) / rest if rest else 0.0)
    return statistics.fmean(shares)


def student_p(values: Sequence[float]) -> float:
    """Two-sided p of a mean of 0: Student (1908); 1.0 where all values are 0, 0.0 where equal else."""
    from scipy.special import stdtr

    found = mean_interval(values)
    if not found.half_width:
        return 0.0 if found.mean else 1.0
    error = found.half_width / student_quantile(0.975, found.n - 1)
    return 2 * float(stdtr(found.n - 1, -abs(found.mean) / error))
