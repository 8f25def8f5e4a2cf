"""Energy against time: the joules of a run over its seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, MARKERS, Drawing
from steelyard.analysis.figures.label_fitting import name_points
from steelyard.analysis.stats.number_format import choose_prefix, compute_reaches
from steelyard.analysis.summary.numeric_factors import format_n
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TIME, ENERGY = "elapsed_s", "energy_j"
COLUMNS = (
    "variant", "condition", "n_time", "time_s", "time_low_s", "time_high_s", "n_energy", "energy_j",
    "energy_low_j", "energy_high_j", "power_w",
)  # fmt: skip
MAX_PANELS = 4  # variants; the CSV has all
MAX_NAMED = 8  # conditions in a panel with their names next to them
PANEL_IN = 2.2

Pair = tuple[Row, Row]  # of time and energy


def draw_energy_time(summary: Summary) -> Drawing | None:
    """Draw a panel per variant; None if no condition has both."""
    found = {variant: find_pairs(summary, variant) for variant in summary.variants}
    found = {variant: both for variant, both in found.items() if both}
    if not found:
        return None
    with drawing.use_style():
        return plot_energy_time(summary, found)


def find_pairs(summary: Summary, variant: str) -> list[Pair]:
    """Return the conditions with means of both."""
    every = (
        (summary.row(variant, label, TIME), summary.row(variant, label, ENERGY))
        for label in summary.labels
    )
    return [(t, e) for t, e in every if t and e and t.interval and e.interval]


def plot_energy_time(summary: Summary, found: dict[str, list[Pair]]) -> Drawing:
    chosen = list(found)[:MAX_PANELS]
    columns = min(len(chosen), 2)
    lines = -(-len(chosen) // columns)
    figure = drawing.new_figure(PANEL_IN * lines + 0.5)
    grid = figure.subplots(lines, columns, squeeze=False)
    for axes in grid.flat[len(chosen) :]:
        axes.set_visible(False)
    spots = {}
    for axes, variant in zip(grid.flat, chosen, strict=False):
        spots[axes] = draw_panel(axes, summary, found[variant])
        axes.set_title(label_fitting.shorten_name(variant, 92 // columns), fontsize=8.5)
    figure.draw_without_rendering()  # computes the layout
    for (axes, mine), variant in zip(spots.items(), chosen, strict=True):
        if len(mine) <= MAX_NAMED:
            groups = [time.group for time, _ in found[variant]]
            name_points(axes, mine, label_fitting.format_short_labels(summary, groups, 28)[0])
    omission = f" Shown are {len(chosen)} of {len(found)} variants; the CSV has all."
    return Drawing(
        name="energy-time",
        title="Energy against time",
        caption=(
            "Joules of a run against its seconds: means "
            f"({format_n([row for mine in found.values() for pair in mine for row in pair], 'condition')}), crosses are "
            "the 95 % intervals. Right: slower; up: more energy. The axes do not begin at 0."
            + (omission if len(chosen) < len(found) else "")
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[data_row(*pair) for mine in found.values() for pair in mine],
    )


def draw_panel(axes: Axes, summary: Summary, found: list[Pair]) -> list[tuple[float, float]]:
    """Draw points with crosses and return their positions; the axes do not begin at 0."""
    scales = [
        choose_prefix(max(read_mean(pair[side]) for pair in found), unit)
        for side, unit in ((0, "s"), (1, "J"))
    ]
    spots = []
    for time, energy in found:
        assert time.interval is not None and energy.interval is not None
        level = drawing.level_index(summary, time.group)
        spot = time.interval.mean / scales[0][0], energy.interval.mean / scales[1][0]
        spans = [
            [[reach / factor] for reach in compute_reaches(interval)]
            for interval, (factor, _) in zip((time.interval, energy.interval), scales, strict=True)
        ]
        axes.errorbar(
            *spot, xerr=spans[0], yerr=spans[1], color=COLOURS[level], marker=MARKERS[level],
            markersize=5, linewidth=1.2, capsize=2.5,
        )  # fmt: skip
        spots.append(spot)
    axes.margins(x=0.3, y=0.2)
    axes.set_xlabel(f"time of a run ({scales[0][1]})\nmeans, crosses: 95 % intervals")
    axes.set_ylabel(f"energy of a run ({scales[1][1]})")
    return spots


def read_mean(row: Row) -> float:
    """Return the mean of a row that has one."""
    assert row.interval is not None
    return row.interval.mean


def data_row(time: Row, energy: Row) -> tuple[object, ...]:
    assert time.interval is not None and energy.interval is not None
    t, e = time.interval, energy.interval
    return (
        time.group.variant, time.group.label, t.n, t.mean, t.low, t.high, e.n, e.mean, e.low, e.high,
        e.mean / t.mean if t.mean else None,
    )  # fmt: skip
