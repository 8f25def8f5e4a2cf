"""Speed-up, efficiency, energy and node-hours over the scales of a study with [study] scaling.

A condition's scale is the product of its levels of the factors that the study scales over. A curve
has one metric of one variant at the same levels of all other factors. Times are for the same work:
in weak scaling a run's time is divided by its scale; a rate is that of the whole job.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from steelyard.analysis.stats.basics import Estimate, Interval, to_costs
from steelyard.analysis.stats.grouped_runs import MIN_BLOCKS
from steelyard.analysis.stats.number_format import format_level_number
from steelyard.analysis.stats.overhead import TOO_CLOSE, Overhead
from steelyard.analysis.stats.scaling import (
    Choice,
    Curve,
    Law,
    efficiency,
    find_largest_efficient,
    fit_amdahl,
    fit_gustafson,
    fit_universal,
    one_sided_confidence,
    scaled_serial_fraction,
    serial_fraction,
    speed_up,
)
from steelyard.analysis.summary.numeric_factors import parse_level_number
from steelyard.analysis.summary.optimum import (
    ENERGY,
    Optimum,
    find_numeric_optima,
    find_optimum,
    is_speed_row,
)
from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.sampling_units import (
    compute_mean,
    group_by_block,
    group_samples,
    is_rate_row,
    ratio_of_means,
)
from steelyard.analysis.summary.study_data import Metric
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

ELAPSED = "elapsed_s"
WEAK = "weak"
# A speed-up is the reference's mean time divided by the scale's: it is the scale's that is close to 0.
WIDE = "the runs at that scale differ too widely"


@dataclass(frozen=True, slots=True)
class Point:
    """One condition of a curve; unknown values are None, and `reason` explains missing ratios."""

    scale: float
    level: str  # `nodes=2, tasks_per_node=4`
    row: Row
    speed_up: Estimate | None = None
    efficiency: Estimate | None = None
    bounded: Estimate | None = None  # the efficiency, with limits that hold for all scales together
    serial_fraction: Estimate | None = None
    energy: Row | None = None
    energy_ratio: Estimate | None = None  # joules for the same work / the reference's
    node_hours: Interval | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ScalingCurve:
    """One metric over scales; the first point is the reference.

    `reason` states why only means exist.
    """

    variant: str
    metric: Metric
    kind: str  # `strong` or `weak`
    over: tuple[str, ...]
    others: str
    points: tuple[Point, ...]
    omitted: tuple[str, ...] = ()  # conditions without a scale or values, with the reason
    laws: tuple[Law, ...] = ()
    efficient: Choice | None = None
    shortest: Optimum | None = None
    least_energy: Optimum | None = None
    reason: str | None = None

    @property
    def reference(self) -> Point:
        """The smallest scale with values."""
        return self.points[0]


def build_scaling_curves(summary: Summary) -> list[ScalingCurve]:
    """Return the curves of all variants with scales; empty without [study] scaling."""
    scaling = summary.data.meta.scaling
    if scaling is None:
        return []
    found: dict[tuple[str, str], list[Group]] = {}
    for group in summary.groups:
        if any(factor in group.condition for factor in scaling.over):
            others = (f"{k}={v}" for k, v in group.levels.items() if k not in scaling.over)
            found.setdefault((group.variant, ", ".join(others)), []).append(group)
    return [
        build_curve(summary, groups, others, metric)
        for (variant, others), groups in found.items()
        for metric in list_scaled_metrics(summary, variant)
    ]


def list_scaled_metrics(summary: Summary, variant: str) -> list[Metric]:
    """Return the main figures that are times or rates; without any, the elapsed time."""
    every = summary.data.metrics.get(variant, [])
    rows = [row for row in summary.rows if row.group.variant == variant]
    speeds = {row.metric.name for row in rows if is_speed_row(row)}
    primary = [metric for metric in every if metric.is_primary and metric.name in speeds]
    return primary or [metric for metric in every if metric.name == ELAPSED]


def build_curve(
    summary: Summary, groups: Sequence[Group], others: str, metric: Metric
) -> ScalingCurve:
    """Compute one curve."""
    scaling = summary.data.meta.scaling
    assert scaling is not None
    over = tuple(factor for factor in scaling.over if factor in groups[0].condition)
    points, omitted = build_points(summary, groups, over, metric)
    plain = ScalingCurve(
        groups[0].variant, metric, scaling.kind, over, others, tuple(points), tuple(omitted)
    )
    if reason := find_incomparable_reason(points):
        return replace(plain, reason=reason)
    times = [work_times(point, scaling.kind) for point in points]
    compared = [compare_points(points, times, index, scaling.kind) for index in range(len(points))]
    found = replace(
        plain,
        points=tuple(compared),
        laws=fit_laws(points, times, scaling.kind),
        efficient=find_efficient(compared),
    )
    return found if scaling.kind == WEAK else add_optima(found)


def build_points(
    summary: Summary, groups: Sequence[Group], over: Sequence[str], metric: Metric
) -> tuple[list[Point], list[str]]:
    """Return (points of conditions with a scale and values, ascending; conditions left out)."""
    points, omitted = [], []
    for group in groups:
        row = summary.row(group.variant, group.label, metric.name)
        scale = compute_scale(group.condition, over)
        level = ", ".join(f"{f}={group.levels.get(f, group.condition.get(f))}" for f in over)
        reason = find_missing_reason(group, row, scale)
        if reason or row is None or scale is None:
            omitted.append(f"{level}: {reason}")
            continue
        energy = summary.row(group.variant, group.label, ENERGY)
        elapsed = summary.row(group.variant, group.label, ELAPSED)
        points.append(
            Point(
                scale,
                level,
                row,
                energy=energy if energy and energy.values and min(energy.values) > 0 else None,
                node_hours=node_hours(elapsed) if elapsed else None,
            )
        )
    return sorted(points, key=lambda point: point.scale), omitted


def compute_scale(condition: Mapping[str, object], over: Sequence[str]) -> float | None:
    """Return the product of the levels; None if one is not a number above 0."""
    numbers = [parse_level_number(condition.get(factor)) for factor in over]
    if any(number is None or number <= 0 for number in numbers):
        return None
    return math.prod(number for number in numbers if number is not None)


def find_missing_reason(group: Group, row: Row | None, scale: float | None) -> str | None:
    """Return why a condition is not on the curve, or None."""
    if scale is None:
        return "its level is no number above 0"
    if row is None or not row.values:
        counts = group.counts
        failed = (
            f", {counts.failed} of {counted(counts.planned, 'run')} failed" if counts.failed else ""
        )
        return f"no values{failed}"
    if min(row.values) <= 0:
        return f"{row.metric.name} has values of 0 or below"
    return None


def node_hours(elapsed: Row) -> Interval | None:
    """Return nodes × hours of a run, for runs whose nodes are known."""
    nodes = {run.run_id: len(run.nodes) for run in elapsed.group.runs}
    known = [
        (run, seconds * nodes[run] / 3600)
        for run, seconds in zip(elapsed.run_ids, elapsed.values, strict=True)
        if nodes.get(run)
    ]
    if not known:
        return None
    runs, hours = zip(*known, strict=True)
    return compute_mean(replace(elapsed, run_ids=runs, values=hours))


def find_incomparable_reason(points: Sequence[Point]) -> str | None:
    """Return why no speed-up exists, or None."""
    if not points:
        return "no scale has values"
    if len({point.scale for point in points}) < 2:
        return f"only scale {format_level_number(points[0].scale)} has values"
    if points[1].scale == points[0].scale:
        return (
            f"{points[0].level} and {points[1].level} are both the smallest scale with values: "
            "which is the reference is open"
        )
    return None


def work_times(point: Point, kind: str) -> Row:
    """Return the row in seconds for the same work.

    Rates become costs; times of weak scaling are divided by their scale.
    """
    row = point.row
    if is_rate_row(row):
        return replace(row, values=to_costs(row.values))
    by = point.scale if kind == WEAK else 1.0
    return replace(row, values=tuple(value / by for value in row.values))


def compare_points(points: Sequence[Point], times: Sequence[Row], index: int, kind: str) -> Point:
    """Return the point with its ratios to the reference."""
    point, first = points[index], points[0]
    if index == 0:
        one = Estimate(1.0, 1.0, 1.0)
        ratio = one if point.energy else None
        return replace(point, speed_up=one, efficiency=one, bounded=one, energy_ratio=ratio)
    q = point.scale / first.scale
    found = ratio_of_means(times[0], times[index])
    speed = speed_up(found)
    confidence = one_sided_confidence(times[0].confidence, len(points))
    bounded = speed_up(ratio_of_means(replace(times[0], confidence=confidence), times[index]))
    fraction = scaled_serial_fraction if kind == WEAK else serial_fraction
    return replace(
        point,
        speed_up=speed,
        efficiency=speed and efficiency(speed, q),
        bounded=bounded and efficiency(bounded, q),
        serial_fraction=speed and fraction(speed, q),
        energy_ratio=energy_ratio(point, first, q if kind == WEAK else 1.0),
        reason=describe_missing_ratio(found, point, first),
    )


def describe_missing_ratio(found: Overhead, point: Point, first: Point) -> str | None:
    """Return why a speed-up, or its interval, does not exist, in terms of the printed values.

    `found` compares the reference with the scale; returns None if it has an interval.
    """
    if found.reason in (None, TOO_CLOSE):
        return found.reason and WIDE
    plain = ratio_of_means(point.row, first.row).reason or found.reason
    return plain and plain.replace("the baseline", "the reference")


def energy_ratio(point: Point, first: Point, work: float) -> Estimate | None:
    """Return the joules for the same work divided by the reference's."""
    if point.energy is None or first.energy is None:
        return None
    found = speed_up(ratio_of_means(point.energy, first.energy))
    return found and efficiency(found, work)


def find_efficient(points: Sequence[Point]) -> Choice | None:
    """Return the largest scale with an efficiency of 70 %; None if a scale has no efficiency."""
    known = [point.bounded for point in points if point.bounded is not None]
    if len(known) < len(points):
        return None
    return find_largest_efficient([point.scale for point in points], known)


def fit_laws(points: Sequence[Point], times: Sequence[Row], kind: str) -> tuple[Law, ...]:
    """Fit Amdahl's law (Gustafson's in weak scaling) and the Universal Scalability Law."""
    scales = [point.scale / points[0].scale for point in points]
    shared = shared_blocks(times)
    if shared:
        groups = [[group_by_block(row)[block] for block in shared] for row in times]
    else:
        groups = [group_samples(row)[1] for row in times]
    curve = Curve.of(scales, groups, is_paired=bool(shared))
    first = fit_gustafson if kind == WEAK else fit_amdahl
    return first(curve, times[0].confidence), fit_universal(curve, times[0].confidence)


def shared_blocks(times: Sequence[Row]) -> list[object]:
    """Return the blocks that hold all scales if they are at least 10 and most blocks; else none."""
    every = [group_by_block(row).keys() for row in times]
    shared = set.intersection(*map(set, every))
    all_blocks = set.union(*map(set, every))
    is_paired = (
        None not in all_blocks and len(shared) >= MIN_BLOCKS and 2 * len(shared) > len(all_blocks)
    )
    return [block for block in every[0] if block in shared] if is_paired else []


def add_optima(curve: ScalingCurve) -> ScalingCurve:
    """Add the scales of the shortest time and of the least energy."""
    return replace(
        curve,
        shortest=find_optimum(*optimum_arguments(curve, [(p.scale, p.row) for p in curve.points])),
        least_energy=find_optimum(
            *optimum_arguments(curve, [(p.scale, p.energy) for p in curve.points if p.energy])
        ),
    )


def optimum_arguments(
    curve: ScalingCurve, pairs: Sequence[tuple[float, Row]]
) -> tuple[str, str, list[float], list[Row]]:
    """Return the curve's factor name, other levels, scales and rows."""
    factor = " × ".join(curve.over)
    return factor, curve.others, [scale for scale, _ in pairs], [row for _, row in pairs]


def find_optima(summary: Summary) -> list[Optimum]:
    """Return the optima of scales that are distinct, and those of other numeric factors."""
    found = [
        one
        for curve in build_scaling_curves(summary)
        for one in (curve.shortest, curve.least_energy)
    ]
    return [*(one for one in found if one and one.is_distinct), *find_numeric_optima(summary)]
