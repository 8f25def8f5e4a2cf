"""Scaling in three panels: speed-up with the ideal line (log–log), efficiency, and joules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, MARKERS, Drawing
from steelyard.analysis.stats.basics import Estimate
from steelyard.analysis.stats.number_format import choose_prefix, format_level_number
from steelyard.analysis.stats.scaling import LEAST_EFFICIENCY
from steelyard.analysis.summary.numeric_factors import MAX_SERIES, format_n
from steelyard.analysis.summary.scaling import Point, ScalingCurve, build_scaling_curves
from steelyard.analysis.summary.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "variant", "metric", "kind", "others", "scale", "n", "speed_up", "speed_up_low",
    "speed_up_high", "efficiency", "efficiency_low", "efficiency_high", "energy_j", "energy_low_j",
    "energy_high_j",
)  # fmt: skip
MAX_FIGURES = 12  # variants × metrics; tables have all
PANEL_IN = 2.3
NARROW_TITLE = 44  # letters
IDEAL = "#777777"

Curves = Sequence[ScalingCurve]
Spot = tuple[float, Estimate]  # a scale and its value


def list_scaling_draws(
    summary: Summary, narrow: bool = False
) -> Iterator[Callable[[], Drawing | None]]:
    """Yield functions that draw a variant's metric, a line per combination of other factors."""
    found: dict[tuple[str, str], list[ScalingCurve]] = {}
    for curve in build_scaling_curves(summary):
        if curve.reason is None:
            found.setdefault((curve.variant, curve.metric.name), []).append(curve)
    for curves in list(found.values())[:MAX_FIGURES]:
        yield partial(draw_curves, curves, narrow)


@drawing.use_style()
def draw_curves(curves: Curves, narrow: bool) -> Drawing:
    """Draw one figure: panels next to each other, or below each other on a narrow page."""
    first = curves[0]
    has_energy = any(select_energy(curve) for curve in curves)
    count = 3 if has_energy else 2
    legend = label_fitting.make_legend([one.others for one in curves[:MAX_SERIES]])
    figure = drawing.new_figure((PANEL_IN * count if narrow else 2.6) + legend.height_in + 0.2)
    if narrow:
        figure.set_figwidth(drawing.NARROW_IN)
    panels = figure.subplots(*((count, 1) if narrow else (1, count)), squeeze=False).flat
    draw_speed_ups(panels[0], curves, legend.labels)
    draw_efficiencies(panels[1], curves)
    if has_energy:
        draw_energy(panels[2], curves)
    for axes in panels:
        set_scales(axes, curves)
    title = f"{first.variant}: {first.metric.name}, {first.kind} scaling"
    label_fitting.set_title(
        figure, label_fitting.shorten_name(title, NARROW_TITLE if narrow else 84)
    )
    if len(curves) > 1:
        figure.legend(loc="outside lower center", ncols=1 if narrow else legend.columns)
    name = ("scaling", first.variant, first.metric.name, *(("narrow",) if narrow else ()))
    return Drawing(
        name=drawing.make_slug(*name),
        title=title,
        caption=format_caption(curves),
        figure=figure,
        columns=COLUMNS,
        rows=[data_row(curve, point) for curve in curves for point in curve.points],
        page_only=narrow,
    )


def format_caption(curves: Curves) -> str:
    """Return the explanation of the panels."""
    rows = [point.row for curve in curves for point in curve.points]
    most = f" Shown are {MAX_SERIES} of {len(curves)} lines; the CSV has all."
    return (
        f"Speed-up of {curves[0].metric.name} over {format_axis_label(curves[0])} against the smallest scale, "
        f"both axes logarithmic (dashed: linear scaling); efficiency (dotted: "
        f"{100 * LEAST_EFFICIENCY:g} %); joules of a run where a meter counts. Bars are 95 % "
        f"intervals ({format_n(rows, 'scale')}).{most if len(curves) > MAX_SERIES else ''}"
    )


def format_axis_label(curve: ScalingCurve) -> str:
    """Return `nodes`, `nodes × tasks_per_node`."""
    return " × ".join(curve.over)


def set_scales(axes: Axes, curves: Curves) -> None:
    """Set a logarithmic axis with ticks at the measured scales."""
    scales = sorted({point.scale for curve in curves for point in curve.points})
    axes.set_xscale("log")
    labeled = scales if len(scales) <= 7 else scales[:: -(-len(scales) // 7)]
    axes.set_xticks(labeled, list(map(format_level_number, labeled)))
    axes.set_xticks([], minor=True)
    axes.set_xlim(scales[0] / 1.25, scales[-1] * 1.25)
    axes.set_xlabel(label_fitting.shorten_name(format_axis_label(curves[0]), 28))


def draw_speed_ups(axes: Axes, curves: Curves, names: Sequence[str]) -> None:
    """Draw speed-ups with the ideal line of the widest curve."""
    widest = max(curves, key=lambda one: one.points[-1].scale / one.reference.scale)
    ends = [widest.reference.scale, widest.points[-1].scale]
    axes.plot(ends, [one / ends[0] for one in ends], "--", color=IDEAL, linewidth=1.0)
    for number, (curve, name) in enumerate(zip(curves, names, strict=False)):
        spots = [(p.scale, p.speed_up) for p in curve.points if p.speed_up is not None]
        draw_line(axes, spots, number, name)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    ticks = [2.0**power for power in range(-4, 21) if low <= 2.0**power <= high]
    labeled = ticks[:: -(-len(ticks) // 8)] if ticks else []
    axes.set_yticks(labeled, [f"{tick:g}" for tick in labeled])
    axes.set_yticks([], minor=True)
    axes.set_ylabel("speed-up")


def draw_efficiencies(axes: Axes, curves: Curves) -> None:
    """Draw efficiencies in percent; above 100 they are superlinear."""
    for level, style in ((1.0, "--"), (LEAST_EFFICIENCY, ":")):
        axes.axhline(100 * level, linestyle=style, color=IDEAL, linewidth=1.0)
    for number, curve in enumerate(curves[:MAX_SERIES]):
        spots = [
            (p.scale, to_percent(p.efficiency)) for p in curve.points if p.efficiency is not None
        ]
        draw_line(axes, spots, number)
    drawing.start_axis_at(axes)
    axes.set_ylabel("efficiency (%)")


def to_percent(found: Estimate) -> Estimate:
    ends = [None if end is None else 100 * end for end in (found.low, found.high)]
    return Estimate(100 * found.value, *ends)


def select_energy(curve: ScalingCurve) -> list[Spot]:
    """Return the mean energy at each scale that has any."""
    return [
        (point.scale, Estimate(found.mean, found.low, found.high))
        for point in curve.points
        if point.energy and (found := point.energy.interval)
    ]


def draw_energy(axes: Axes, curves: Curves) -> None:
    """Draw joules on an axis from 0."""
    every = [select_energy(curve) for curve in curves[:MAX_SERIES]]
    factor, unit = choose_prefix(max(one.value for spots in every for _, one in spots), "J")
    for number, spots in enumerate(every):
        in_unit = [
            (x, Estimate(e.value / factor, *(end and end / factor for end in (e.low, e.high))))
            for x, e in spots
        ]
        draw_line(axes, in_unit, number)
    drawing.start_axis_at(axes)
    axes.set_ylabel(f"energy of a run ({unit})")


def draw_line(axes: Axes, spots: Sequence[Spot], number: int, name: str = "") -> None:
    """Draw values with error bars, joined if each scale has one condition."""
    if not spots:
        return
    places = [x for x, _ in spots]
    values = [one.value for _, one in spots]
    below = [one.value - one.low if one.low is not None else 0.0 for _, one in spots]
    above = [one.high - one.value if one.high is not None else 0.0 for _, one in spots]
    axes.errorbar(
        places, values, yerr=[below, above], color=COLOURS[number], marker=MARKERS[number],
        linestyle="-" if len(set(places)) == len(places) else "none", markersize=4.5,
        linewidth=1.3, capsize=2.5, label=name or None,
    )  # fmt: skip


def data_row(curve: ScalingCurve, point: Point) -> tuple[object, ...]:
    energy = point.energy.interval if point.energy else None
    return (
        curve.variant, curve.metric.name, curve.kind, curve.others, point.scale, point.row.n,
        *list_ends(point.speed_up), *list_ends(point.efficiency),
        energy and energy.mean, energy and energy.low, energy and energy.high,
    )  # fmt: skip


def list_ends(found: Estimate | None) -> tuple[float | None, ...]:
    """Return value and interval; unknown ones are empty cells."""
    return (None,) * 3 if found is None else (found.value, found.low, found.high)
