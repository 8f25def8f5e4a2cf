"""The report's section on scaling: sentences, a table, and plain values for `--json` and exports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.analysis.report.latency_share import estimate_document
from steelyard.analysis.report.links import find_anchor, run_anchors
from steelyard.analysis.report.phrases import format_range, join_phrases
from steelyard.analysis.report.tables import Table
from steelyard.analysis.stats.basics import Estimate, Interval
from steelyard.analysis.stats.number_format import (
    MISSING,
    count_decimals,
    format_level_number,
    format_mean,
    format_number,
    format_times,
)
from steelyard.analysis.stats.overhead_verdict import format_percent, format_percent_range
from steelyard.analysis.stats.scaling import GUSTAFSON, LEAST_EFFICIENCY, Choice, Law
from steelyard.analysis.summary.optimum import ENERGY, Optimum
from steelyard.analysis.summary.scaling import WEAK, Point, ScalingCurve, build_scaling_curves
from steelyard.analysis.summary.summary import Summary

HEADINGS = (
    "Scale",
    "Variant",
    "Metric",
    "Other factors",
    "Mean",
    "Speed-up",
    "Efficiency",
    "Serial fraction",
    "Energy",
    "Energy, same work",
    "Node-hours",
    "n",
)
METHOD = {
    "strong": (
        "Strong scaling: the same problem at every scale. Speed-up is the reference's mean time by "
        "that of a scale, efficiency is speed-up by scale; the reference is the smallest scale with "
        "values."
    ),
    WEAK: (
        "Weak scaling: the problem grows with the scale. The speed-up is the scaled one: scale × the "
        "reference's mean time by that of a scale (of rates, which are of the whole job, their "
        "ratio); efficiency is speed-up by scale; the reference is the smallest scale with values."
    ),
}
PLURALS = frozenset(("nodes", "threads", "ranks", "tasks", "processes", "clients", "cores", "cpus"))


@dataclass(frozen=True)
class ScalingSection:
    """The content on scaling for the page and the terminal."""

    method: str
    sentences: Sequence[str]
    table: Table


def build_scaling_section(summary: Summary) -> ScalingSection | None:
    """Return the section; None if the study does not scale, or no variant over its factors."""
    curves = build_scaling_curves(summary)
    if not curves:
        return None
    anchors = run_anchors(summary)
    points = [(curve, point) for curve in curves for point in curve.points]
    return ScalingSection(
        METHOD[curves[0].kind],
        [describe_curve(curve) for curve in curves],
        drop_empty_columns(
            Table(
                HEADINGS,
                [table_row(curve, point) for curve, point in points],
                [find_anchor(anchors, point.row) for _, point in points],
            )
        ),
    )


def drop_empty_columns(table: Table) -> Table:
    """Return the table without empty columns, such as joules without a meter."""
    columns = range(len(table.headings))
    nonempty = [n for n in columns if any(row[n] != MISSING for row in table.rows)]
    rows = [tuple(row[n] for n in nonempty) for row in table.rows]
    return Table(tuple(table.headings[n] for n in nonempty), rows, table.anchors)


def describe_curve(curve: ScalingCurve) -> str:
    """Return all sentences of one curve."""
    where = f" ({curve.others})" if curve.others else ""
    lead = f"{curve.variant}{where}, {curve.metric.name}: "
    omitted = f" Left out: {'; '.join(curve.omitted)}." if curve.omitted else ""
    if curve.reason:
        return f"{lead}no scaling can be judged: {curve.reason}.{omitted}"
    found = [
        describe_largest(curve),
        describe_efficient(curve),
        describe_optima(curve.over, (curve.shortest, curve.least_energy)),
        *(describe_law(law, curve) for law in curve.laws),
    ]
    return lead + " ".join(one for one in found if one) + omitted


def describe_largest(curve: ScalingCurve) -> str:
    """Return `8 nodes against 1: 5.9 times as fast (5.7 to 6.1), an efficiency of 74 % (…)`."""
    last, first = curve.points[-1], curve.reference
    where = f"{format_scale(curve.over, last.scale)} against {format_level_number(first.scale)}"
    if last.speed_up is None or last.efficiency is None:
        return f"{where} cannot be judged: {last.reason}."
    work = " for work that grows with it" if curve.kind == WEAK else ""
    fast = f"{format_ratio(last.speed_up)} as fast{work}"
    kind = "" if not is_superlinear(last) else ", which is superlinear"
    reason = "" if last.speed_up.low is not None else f" (no interval: {last.reason})"
    return f"{where}: {fast}, an efficiency of {format_share(last.efficiency)}{kind}{reason}."


def is_superlinear(point: Point) -> bool:
    """Return whether more than linear scaling is shown."""
    found = point.efficiency
    return found is not None and found.low is not None and found.low > 1


def describe_efficient(curve: ScalingCurve) -> str:
    """Return `The largest scale with an efficiency of at least 70 %: 8 nodes (4 to 8).`."""
    if curve.efficient is None:
        return ""
    choice = describe_choice(curve.over, curve.efficient, [point.scale for point in curve.points])
    return (
        f"The largest scale with an efficiency of at least {100 * LEAST_EFFICIENCY:g} %: {choice}."
    )


def describe_optima(over: Sequence[str], found: Sequence[Optimum | None]) -> str:
    """Return `Shortest at 8 nodes, the largest with values; least joules at 4 nodes (2 to 4).`."""
    parts = [
        ("least joules" if one.metric == ENERGY else "fastest" if one.is_rate else "shortest")
        + f" at {describe_choice(over, one.choice, one.tried)}"
        for one in found
        if one is not None and one.is_distinct
    ]
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def describe_choice(over: Sequence[str], choice: Choice, tried: Sequence[float]) -> str:
    """Return `8 nodes (4 to 8)`, `16 nodes, the largest with values`."""
    is_open = choice.low == choice.high
    low, high = format_level_number(choice.low), format_level_number(choice.high)
    ends = "" if is_open else f" ({low} to {high})"
    edge = ", the largest with values" if choice.value == max(tried) else ""
    return f"{format_scale(over, choice.value)}{ends}{edge}"


def format_scale(over: Sequence[str], scale: float) -> str:
    """Return `8 nodes`, `1 node`; `size=8`; for several factors `scale 8`."""
    number = format_level_number(scale)
    if len(over) > 1:
        return f"scale {number}"
    name = over[0]
    if name not in PLURALS:
        return f"{name}={number}"
    return f"{number} {name if scale != 1 else SINGULARS.get(name, name[:-1])}"


SINGULARS = {"processes": "process"}


def describe_law(law: Law, curve: ScalingCurve) -> str:
    """Return `Amdahl's law fits: serial fraction 5.1 % (4.9 to 5.3 %), by which no scale is …`."""
    name = f"{law.name}'s law" if "Law" not in law.name else f"The {law.name}"
    if law.serial is None:
        return f"{name} is not used: {law.reason}."
    found = f"{name} fits: serial fraction {format_share(law.serial)}"
    if law.name == GUSTAFSON:
        return f"{found}."
    if law.crosstalk is None:
        return f"{found}{describe_limit(law.serial)}."
    crosstalk = "crosstalk not shown to be above 0"
    if law.crosstalk.low is not None and law.crosstalk.low > 0:
        crosstalk = f"crosstalk {format_share(law.crosstalk)}"
    return f"{found}, {crosstalk}{describe_peak(law, curve)}."


def describe_limit(serial: Estimate) -> str:
    """Describe the upper limit of the speed-up by the law, if the data give one."""
    if not serial.low or serial.low <= 0 or serial.high is None:
        return ""
    most = Estimate(1 / serial.value, 1 / serial.high, 1 / serial.low)
    return f", by which no scale is more than {format_ratio(most)} as fast as the reference"


def describe_peak(law: Law, curve: ScalingCurve) -> str:
    """Describe the scale of the largest speed-up, and whether it is beyond the measured scales."""
    peak = law.peak
    if peak is None or peak.low is None or peak.high is None:
        return ""
    first, last = curve.reference.scale, curve.points[-1].scale
    low, high = peak.low * first, peak.high * first
    beyond = ", beyond what was measured: the law alone says so" if high > last else ""
    best = peak.value * first
    places = count_decimals(best, (high - low) / 2)
    at, start, end = (format_number(scale, 1.0, places) for scale in (best, low, high))
    return f", fastest at {at} ({start} to {end}){beyond}"


def format_ratio(found: Estimate) -> str:
    """Return `5.9 times (5.7 to 6.1)`."""
    if found.low is None or found.high is None:
        return f"{found.value:.3g} times"
    ratio, ends = format_times(found.value, found.low, found.high)
    return f"{ratio} times" + (f" ({format_range(ends)})" if ends else "")


def format_share(found: Estimate) -> str:
    """Return `74 % (71 to 76 %)`."""
    if found.low is None or found.high is None:
        return f"{100 * found.value:.3g} %".replace("-", "−")
    value = format_percent(found.value, found.low, found.high)
    if found.low == found.high:
        return f"{100 * found.value:.3g} %".replace("-", "−")
    return f"{value} % ({format_range(format_percent_range(found.low, found.high))} %)"


def table_row(curve: ScalingCurve, point: Point) -> tuple[str, ...]:
    """Return one scale of a curve; the reference has no ratios."""
    interval = point.row.interval
    is_reference = point is curve.reference
    return (
        format_scale_cell(curve, point),
        curve.variant,
        curve.metric.name,
        curve.others or MISSING,
        format_mean(interval, curve.metric.unit) if interval else MISSING,
        "reference" if is_reference else format_cell(point.speed_up, format_ratio),
        MISSING if is_reference else format_cell(point.efficiency, format_share),
        format_cell(point.serial_fraction, format_share),
        format_mean(point.energy.interval, "J")
        if point.energy and point.energy.interval
        else MISSING,
        MISSING if is_reference else format_cell(point.energy_ratio, format_ratio),
        format_hours(point.node_hours),
        point.row.format_n,
    )


def format_scale_cell(curve: ScalingCurve, point: Point) -> str:
    """Return `8 nodes`; for several factors `8 (nodes=4, tasks_per_node=2)`."""
    if len(curve.over) > 1:
        return f"{format_level_number(point.scale)} ({point.level})"
    return format_scale(curve.over, point.scale)


def format_cell(found: Estimate | None, format_value: Callable[[Estimate], str]) -> str:
    return MISSING if found is None else format_value(found)


def format_hours(found: Interval | None) -> str:
    """Return `0.0123 ± 0.0004`; node-hours of short runs are small."""
    if found is None:
        return MISSING
    half = found.half_width
    if not half:
        return f"{found.mean:.3g}"
    return format_mean(found, None) if half > 1e-4 else f"{found.mean:.3g} ± {half:.1g}"


def describe_numeric_optima(found: Sequence[Optimum]) -> list[str]:
    """Return a sentence per variant: `app, seconds over threads: shortest at 8 threads; …`."""
    by_curve: dict[tuple[str, str, str], list[Optimum]] = {}
    for one in found:
        by_curve.setdefault((one.variant, one.others, one.factor), []).append(one)
    sentences = []
    for (variant, others, factor), members in by_curve.items():
        where = f" ({others})" if others else ""
        names = join_phrases(dict.fromkeys(one.metric for one in members))
        text = describe_optima((factor,), members)
        sentences.append(f"{variant}{where}, {names} over {factor}: {text[:1].lower()}{text[1:]}")
    return sentences


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
