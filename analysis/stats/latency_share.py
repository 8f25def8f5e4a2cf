"""Split of a difference in time into lower throughput and waiting for answers (latency).

This is a model, not a measurement: a run takes computing + waiting for answers + bytes /
throughput, one after the other. The throughput is measured separately from the run, under the same
condition (one bulk transfer). It explains the difference of bytes x seconds per byte of both sides;
the remainder is waiting, which latency causes. The 70 / 30 split of XRootD's wide-area study is
such a split. It holds as far as computing is the same on both sides and requests do not overlap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    Estimate,
    fieller,
    student_quantile,
    welch_degrees,
)
from steelyard.analysis.stats.grouped_runs import Groups, covariance, mean, residuals

MIN_GROUPS = 3  # jobs of runs, and of transfers, on each side


@dataclass(frozen=True, slots=True)
class Side:
    """One condition by job: each group of a list holds the runs of one job."""

    seconds: Groups
    bytes_moved: Groups  # of the same runs
    s_per_byte: Groups  # of the bulk transfers


@dataclass(frozen=True, slots=True)
class Split:
    """A difference in seconds and its two terms; shares add up to 1 and are not cut to 0 … 1."""

    difference_s: Estimate
    throughput_s: Estimate
    latency_s: Estimate
    throughput_share: Estimate | None  # None: no difference is shown

    @property
    def latency_share(self) -> Estimate | None:
        """The share that throughput does not explain."""
        share = self.throughput_share
        if share is None or share.low is None or share.high is None:
            return share and Estimate(1 - share.value)
        return Estimate(1 - share.value, 1 - share.high, 1 - share.low)


@dataclass(frozen=True, slots=True)
class Part:
    """The contribution of one sample to the variance of a x throughput term + b x difference."""

    squares: float  # times a²
    products: float  # times 2 a b
    differences: float  # times b²
    degrees: int

    def variance(self, a: float, b: float) -> float:
        """Return the variance in s²."""
        return a * a * self.squares + 2 * a * b * self.products + b * b * self.differences


def split_difference(condition: Side, baseline: Side, *, confidence: float = CONFIDENCE) -> Split:
    """Split mean(condition) − mean(baseline) into its terms, each with a 95 % interval.

    Shares are ratios of correlated estimates: they have Fieller's interval with Welch's and
    Satterthwaite's degrees of freedom. Jobs are independent, not runs. Raises ValueError for fewer
    than 3 jobs of runs or of transfers on a side.
    """
    sides = (condition, baseline)
    if (
        min(len(groups) for side in sides for groups in (side.seconds, side.s_per_byte))
        < MIN_GROUPS
    ):
        raise ValueError(f"{MIN_GROUPS} jobs of runs and of transfers are needed on each side")
    parts = [component for side in sides for component in list_parts(side)]
    slower = mean(condition.seconds) - mean(baseline.seconds)
    carried = transfer_s(condition) - transfer_s(baseline)
    difference = interval(slower, parts, 0.0, 1.0, confidence)
    return Split(
        difference_s=difference,
        throughput_s=interval(carried, parts, 1.0, 0.0, confidence),
        latency_s=interval(slower - carried, parts, -1.0, 1.0, confidence),
        throughput_share=compute_share(carried, slower, parts, confidence)
        if is_nonzero(difference)
        else None,
    )


def difference(condition: Groups, baseline: Groups, *, confidence: float = CONFIDENCE) -> Estimate:
    """Return mean(condition) − mean(baseline) with Welch's interval by job."""
    errors = [(residuals(side), len(side) - 1) for side in (condition, baseline)]
    parts = [Part(0.0, 0.0, covariance(each, each), degrees) for each, degrees in errors]
    return interval(mean(condition) - mean(baseline), parts, 0.0, 1.0, confidence)


def is_nonzero(found: Estimate) -> bool:
    """Return whether the interval excludes 0."""
    return found.low is not None and found.high is not None and not found.low <= 0 <= found.high


def transfer_s(side: Side) -> float:
    """Return how many seconds the bytes of a run take at the throughput of the bulk transfers."""
    return mean(side.bytes_moved) * mean(side.s_per_byte)


def list_parts(side: Side) -> list[Part]:
    """Return the contributions of the runs, whose seconds and bytes correlate, and transfers."""
    rate, moved = mean(side.s_per_byte), mean(side.bytes_moved)
    seconds, carried = residuals(side.seconds), residuals(side.bytes_moved)
    runs = Part(
        squares=rate**2 * covariance(carried, carried),
        products=rate * covariance(carried, seconds),
        differences=covariance(seconds, seconds),
        degrees=len(seconds) - 1,
    )
    rates = residuals(side.s_per_byte)
    return [runs, Part(moved**2 * covariance(rates, rates), 0.0, 0.0, len(rates) - 1)]


def quantile(parts: Sequence[Part], a: float, b: float, confidence: float) -> float:
    """Return Student's quantile with this combination's degrees of freedom; 0 without spread."""
    variances = [max(component.variance(a, b), 0.0) for component in parts]
    total = math.fsum(variances)
    if total <= 0:
        return 0.0
    degrees = welch_degrees(variances, [component.degrees for component in parts])
    return student_quantile((1 + confidence) / 2, degrees)


def interval(
    value: float, parts: Sequence[Part], a: float, b: float, confidence: float
) -> Estimate:
    """Return the interval of a x throughput term + b x difference."""
    variance = math.fsum(max(component.variance(a, b), 0.0) for component in parts)
    half = quantile(parts, a, b, confidence) * math.sqrt(variance)
    return Estimate(value, value - half, value + half)


def compute_share(
    carried: float, slower: float, parts: Sequence[Part], confidence: float
) -> Estimate:
    """Return carried / slower; without ends if Fieller's interval is unbounded."""
    share = carried / slower
    sums = [(component.squares, component.products, component.differences) for component in parts]
    of_top, of_both, of_bottom = (math.fsum(column) for column in zip(*sums, strict=True))
    t = quantile(parts, 1.0, -share, confidence)
    ends = fieller(carried, slower, (of_top, of_both, of_bottom), t)
    return Estimate(share, *ends) if ends else Estimate(share)
