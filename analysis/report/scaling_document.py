"""Converts scaling and optima to plain values, for `--json` and exported tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from steelyard.analysis.report.latency_share import estimate_document
from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.scaling import LEAST_EFFICIENCY, Law
from steelyard.analysis.summary.optimum import Optimum
from steelyard.analysis.summary.scaling import Point, ScalingCurve


def scaling_document(curve: ScalingCurve) -> dict[str, Any]:
    """Return a curve for `--json`; unknown ratios are null, and `reason` states why."""
    return {
        "variant": curve.variant,
        "metric": curve.metric.name,
        "unit": curve.metric.unit,
        "kind": curve.kind,
        "over": list(curve.over),
        "others": curve.others,
        "reference_scale": curve.reference.scale if curve.points else None,
        "reason": curve.reason,
        "left_out": list(curve.omitted),
        "points": [point_document(point) for point in curve.points],
        "laws": [law_document(law) for law in curve.laws],
        "least_efficiency": LEAST_EFFICIENCY,
        "largest_efficient": estimate_document(curve.efficient),
    }


def point_document(point: Point) -> dict[str, Any]:
    """Return one scale."""
    interval = point.row.interval
    energy = point.energy.interval if point.energy else None
    return {
        "scale": point.scale,
        "condition": point.row.group.label,
        "n": point.row.n,
        "mean": mean_document(interval),
        "speed_up": estimate_document(point.speed_up),
        "efficiency": estimate_document(point.efficiency),
        "serial_fraction": estimate_document(point.serial_fraction),
        "energy_j": mean_document(energy),
        "energy_ratio": estimate_document(point.energy_ratio),
        "node_hours": mean_document(point.node_hours),
        "reason": point.reason,
    }


def law_document(law: Law) -> dict[str, Any]:
    """Return a law; its parameters are null if it is refused."""
    return {
        "law": law.name,
        "serial": estimate_document(law.serial),
        "crosstalk": estimate_document(law.crosstalk),
        "peak": estimate_document(law.peak),
        "p_misfit": law.p,
        "reason": law.reason,
    }


def optimum_document(one: Optimum) -> dict[str, Any]:
    """Return the best level, and the levels that the data allow."""
    return {
        "variant": one.variant,
        "metric": one.metric,
        "factor": one.factor,
        "others": one.others,
        **(estimate_document(one.choice) or {}),
        "allowed": list(one.allowed),
        "tried": list(one.tried),
    }


def mean_document(found: Interval | None) -> dict[str, float | None] | None:
    return None if found is None else {"value": found.mean, "low": found.low, "high": found.high}


def scaling_rows(curves: Sequence[ScalingCurve]) -> Iterator[dict[str, Any]]:
    """Yield a flat row for each scale of each curve."""
    for curve in curves:
        head = scaling_document(curve)
        for point in head.pop("points"):
            yield {**head, **point, "over": list(curve.over)}


def law_rows(curves: Sequence[ScalingCurve]) -> Iterator[dict[str, Any]]:
    """Yield a flat row for each law of each curve."""
    names = ("variant", "metric", "others", "reference_scale")
    for curve in curves:
        head = scaling_document(curve)
        for law in head["laws"]:
            yield {**{name: head[name] for name in names}, **law}
