"""The report's section on scaling: sentences, a table, and the same for programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from steelyard.analysis.report.links import anchor_of, run_anchors
from steelyard.analysis.report.phrases import joined, to
from steelyard.analysis.report.tables import Table
from steelyard.analysis.stats.basics import Estimate, Interval
from steelyard.analysis.stats.number_format import MISSING, mean_words, times
from steelyard.analysis.stats.overhead import percent, percent_range
from steelyard.analysis.stats.scaling import LEAST_EFFICIENCY, Choice
from steelyard.analysis.stats.scaling_laws import GUSTAFSON, Law
from steelyard.analysis.summary.optimum import ENERGY, Optimum
from steelyard.analysis.summary.scaling import (
    WEAK,
    Point,
    ScalingCurve,
    scaling_curves,
)
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
class ScalingPart:
    """What the page and the terminal show of scaling."""

    method: str
    sentences: Sequence[str]
    table: Table


def scaling_part(summary: Summary) -> ScalingPart | None:
    """None where the study does not scale, or no variant over its factors."""
    curves = scaling_curves(summary)
    if not curves:
        return None
    anchors = run_anchors(summary)
    points = [(curve, point) for curve in curves for point in curve.points]
    return ScalingPart(
        METHOD[curves[0].kind],
        [curve_words(curve) for curve in curves],
        without_empty(
            Table(
                HEADINGS,
                [table_row(curve, point) for curve, point in points],
                [anchor_of(anchors, point.row) for _, point in points],
            )
        ),
    )


def without_empty(table: Table) -> Table:
    """Without columns that say nothing, such as joules where no meter is: the others need the room."""
    columns = range(len(table.headings))
    kept = [n for n in columns if any(row[n] != MISSING for row in table.rows)]
    rows = [tuple(row[n] for n in kept) for row in table.rows]
    return Table(tuple(table.headings[n] for n in kept), rows, table.anchors)


def curve_words(curve: ScalingCurve) -> str:
    """All sentences of one curve."""
    where = f" ({curve.others})" if curve.others else ""
    lead = f"{curve.variant}{where}, {curve.metric.name}: "
    left_out = f" Left out: {'; '.join(curve.left_out)}." if curve.left_out else ""
    if curve.reason:
        return f"{lead}no scaling can be judged: {curve.reason}.{left_out}"
    found = [
        largest_words(curve),
        efficient_words(curve),
        optima_words(curve.over, (curve.shortest, curve.least_energy)),
        *(law_words(law, curve) for law in curve.laws),
    ]
    return lead + " ".join(one for one in found if one) + left_out


def largest_words(curve: ScalingCurve) -> str:
    """`with 8 instead of 1 nodes 5.9 times as fast (5.7 to 6.1), an efficiency of 74 % (71 to 76 %).`"""
    last, first = curve.points[-1], curve.reference
    where = f"{counted(curve.over, last.scale)} against {first.scale:g}"
    if last.speed_up is None or last.efficiency is None:
        return f"{where} cannot be judged: {last.reason}."
    work = " for work that grows with it" if curve.kind == WEAK else ""
    fast = f"{times_words(last.speed_up)} as fast{work}"
    kind = "" if not is_superlinear(last) else ", which is superlinear"
    reason = "" if last.speed_up.low is not None else f" (no interval: {last.reason})"
    return f"{where}: {fast}, an efficiency of {share_words(last.efficiency)}{kind}{reason}."


def is_superlinear(point: Point) -> bool:
    """Whether more than linear scaling is shown."""
    found = point.efficiency
    return found is not None and found.low is not None and found.low > 1


def efficient_words(curve: ScalingCurve) -> str:
    """`The largest scale with an efficiency of at least 70 %: 8 nodes (4 to 8).`"""
    if curve.efficient is None:
        return ""
    words = chosen(curve.over, curve.efficient, [point.scale for point in curve.points])
    return (
        f"The largest scale with an efficiency of at least {100 * LEAST_EFFICIENCY:g} %: {words}."
    )


def optima_words(over: Sequence[str], found: Sequence[Optimum | None]) -> str:
    """`Shortest at 8 nodes, the largest with values; least joules at 4 nodes (2 to 4).`"""
    parts = [
        f"{'least joules' if one.metric == ENERGY else best_word(one)} at "
        f"{chosen(over, one.choice, one.tried)}"
        for one in found
        if one is not None and one.is_shown
    ]
    words = "; ".join(parts)
    return f"{words[:1].upper()}{words[1:]}." if words else ""


def best_word(one: Optimum) -> str:
    """Of a time or a rate."""
    return "fastest" if one.is_rate else "shortest"


def chosen(over: Sequence[str], choice: Choice, tried: Sequence[float]) -> str:
    """`8 nodes (4 to 8)`, `16 nodes, the largest with values`."""
    is_open = choice.low == choice.high
    ends = "" if is_open else f" ({choice.low:g} to {choice.high:g})"
    edge = ", the largest with values" if choice.value == max(tried) else ""
    return f"{counted(over, choice.value)}{ends}{edge}"


def counted(over: Sequence[str], scale: float) -> str:
    """`8 nodes`, `1 node`; `size=8`; of several factors `scale 8`."""
    if len(over) > 1:
        return f"scale {scale:g}"
    name = over[0]
    if name not in PLURALS:
        return f"{name}={scale:g}"
    return f"{scale:g} {name if scale != 1 else SINGULARS.get(name, name[:-1])}"


SINGULARS = {"processes": "process"}


def law_words(law: Law, curve: ScalingCurve) -> str:
    """`Amdahl's law fits: serial fraction 5.1 % (4.9 to 5.3 %), so at most 20 times as fast (19 to 20).`"""
    name = f"{law.name}'s law" if "Law" not in law.name else f"The {law.name}"
    if law.serial is None:
        return f"{name} is not used: {law.reason}."
    found = f"{name} fits: serial fraction {share_words(law.serial)}"
    if law.name == GUSTAFSON:
        return f"{found}."
    if law.crosstalk is None:
        return f"{found}{limit_words(law.serial)}."
    crosstalk = "crosstalk not shown to be above 0"
    if law.crosstalk.low is not None and law.crosstalk.low > 0:
        crosstalk = f"crosstalk {share_words(law.crosstalk)}"
    return f"{found}, {crosstalk}{peak_words(law, curve)}."


def limit_words(serial: Estimate) -> str:
    """The law's bound, where the data give one."""
    if not serial.low or serial.low <= 0 or serial.high is None:
        return ""
    most = Estimate(1 / serial.value, 1 / serial.high, 1 / serial.low)
    return f", by which no scale is more than {times_words(most)} as fast as the reference"


def peak_words(law: Law, curve: ScalingCurve) -> str:
    """Where speed-up is largest; beyond the scales that were measured it is the law's word alone."""
    peak = law.peak
    if peak is None or peak.low is None or peak.high is None:
        return ""
    first, last = curve.reference.scale, curve.points[-1].scale
    low, high = peak.low * first, peak.high * first
    beyond = ", beyond what was measured: the law alone says so" if high > last else ""
    return f", fastest at {peak.value * first:.2g} ({low:.2g} to {high:.2g}){beyond}"


def times_words(found: Estimate) -> str:
    """`5.9 times (5.7 to 6.1)`."""
    if found.low is None or found.high is None:
        return f"{found.value:.3g} times"
    ratio, ends = times(found.value, found.low, found.high)
    return f"{ratio} times" + (f" ({to(ends)})" if ends else "")


def share_words(found: Estimate) -> str:
    """`74 % (71 to 76 %)`."""
    if found.low is None or found.high is None:
        return f"{100 * found.value:.3g} %".replace("-", "−")
    value = percent(found.value, found.low, found.high)
    if found.low == found.high:
        return f"{100 * found.value:.3g} %".replace("-", "−")
    return f"{value} % ({to(percent_range(found.low, found.high))} %)"


def table_row(curve: ScalingCurve, point: Point) -> tuple[str, ...]:
    """One scale of a curve; the reference has no ratios."""
    interval = point.row.interval
    is_reference = point is curve.reference
    return (
        scale_words(curve, point),
        curve.variant,
        curve.metric.name,
        curve.others or MISSING,
        mean_words(interval, curve.metric.unit) if interval else MISSING,
        "reference" if is_reference else cell(point.speed_up, times_words),
        MISSING if is_reference else cell(point.efficiency, share_words),
        cell(point.serial_fraction, share_words),
        mean_words(point.energy.interval, "J")
        if point.energy and point.energy.interval
        else MISSING,
        MISSING if is_reference else cell(point.energy_ratio, times_words),
        hours_words(point.node_hours),
        point.row.n_words,
    )


def scale_words(curve: ScalingCurve, point: Point) -> str:
    """`8 nodes`; of several factors `8 (nodes=4, tasks_per_node=2)`."""
    if len(curve.over) > 1:
        return f"{point.scale:g} ({point.level})"
    return counted(curve.over, point.scale)


def cell(found: Estimate | None, words: Callable[[Estimate], str]) -> str:
    return MISSING if found is None else words(found)


def hours_words(found: Interval | None) -> str:
    """`0.0123 ± 0.0004`; node-hours of short runs are small."""
    if found is None:
        return MISSING
    half = found.half_width
    if not half:
        return f"{found.mean:.3g}"
    return mean_words(found, None) if half > 1e-4 else f"{found.mean:.3g} ± {half:.1g}"


def numeric_optima_words(found: Sequence[Optimum]) -> list[str]:
    """A sentence a variant: `app over threads: shortest at 8 threads; least joules at 4 threads (3 to 6).`"""
    by_curve: dict[tuple[str, str, str], list[Optimum]] = {}
    for one in found:
        by_curve.setdefault((one.variant, one.others, one.factor), []).append(one)
    sentences = []
    for (variant, others, factor), members in by_curve.items():
        where = f" ({others})" if others else ""
        names = joined(dict.fromkeys(one.metric for one in members))
        words = optima_words((factor,), members)
        sentences.append(f"{variant}{where}, {names} over {factor}: {words[:1].lower()}{words[1:]}")
    return sentences
