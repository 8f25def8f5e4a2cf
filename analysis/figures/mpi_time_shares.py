"""Stacked bars of an MPI program's time by condition: computation, communication,
initialization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, HATCHES, Drawing
from steelyard.jobscripts.plurals import counted_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from steelyard.analysis.summary.rows import Group, Row
    from steelyard.analysis.summary.summary import Summary

# The profiler's metrics (shares of the program's time), in the order of the stack.
PARTS = {
    "compute_share": "computation",
    "communication_share": "communication",
    "init_share": "initialization",
}
COLUMNS = ("variant", "condition", "unit", "n", "part", "share_mean", "low", "high")
LEGIBLE = 6.0  # percent, below which a number does not fit into its segment


def draw_stack(summary: Summary, variant: str) -> Drawing | None:
    """Draw one variant; None if nothing was profiled."""
    groups = [
        group
        for group in summary.groups
        if group.variant == variant and any(select_component_rows(summary, group).values())
    ]
    if not groups:
        return None
    with drawing.use_style():
        return plot_stack(summary, variant, groups)


def select_component_rows(summary: Summary, group: Group) -> dict[str, Row | None]:
    """Return the row of each segment; None without values."""
    rows = {name: summary.row(group.variant, group.label, name) for name in PARTS}
    return {name: row if row and row.interval else None for name, row in rows.items()}


def plot_stack(summary: Summary, variant: str, groups: list[Group]) -> Drawing:
    figure = drawing.new_figure(1.2 + 0.36 * len(groups))
    axes = figure.add_subplot()
    starts = [0.0] * len(groups)
    for number, (name, label) in enumerate(PARTS.items()):
        parts = [select_component_rows(summary, group)[name] for group in groups]
        widths = [100 * row.interval.mean if row and row.interval else 0.0 for row in parts]
        starts = draw_component(axes, widths, starts, number, label)
    labels, names = label_fitting.format_short_labels(summary, groups)
    axes.set_yticks(range(len(groups)), labels)
    axes.set_ylabel(names)
    axes.set_ylim(len(groups) - 0.4, -0.6)
    axes.set_xlim(0, max(100.0, *starts))
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("share of the program's time (%)")
    label_fitting.set_title(figure, variant)
    figure.legend(loc="outside lower center", ncols=len(PARTS))
    rows = [
        row for group in groups for row in select_component_rows(summary, group).values() if row
    ]
    n = counted_range((row.n for row in rows), "run")
    return Drawing(
        name=drawing.make_slug("stack", variant),
        title=f"{variant}: computation, communication and initialization",
        caption=(
            "Mean shares of the program's time that its processes computed, were in MPI's "
            f"communication, and in its initialization, by condition (n = {n}); intervals are in "
            "the figure's CSV."
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[cells(row) for row in rows],
    )


def draw_component(
    axes: Axes,
    widths: list[float],
    starts: list[float],
    number: int,
    label: str,
    points: float = 8.5,
) -> list[float]:
    """Draw one segment of every bar after the existing ones, with its width (%) as text of so many
    points; return where the next begins."""
    axes.barh(
        range(len(widths)), widths, 0.62, left=starts, color=COLOURS[number], alpha=0.6,
        hatch=HATCHES[number], edgecolor="#333333", linewidth=0.7, label=label,
    )  # fmt: skip
    for index, (start, width) in enumerate(zip(starts, widths, strict=True)):
        if width >= LEGIBLE:
            axes.text(
                start + width / 2, index, f"{width:.0f}", ha="center", va="center", fontsize=points,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 1.0, "alpha": 0.85},
            )  # fmt: skip
    return [start + width for start, width in zip(starts, widths, strict=True)]


def cells(row: Row) -> tuple[object, ...]:
    interval = row.interval
    assert interval is not None  # select_component_rows() leaves out rows without an interval
    component = PARTS[row.metric.name]
    group = row.group
    ends = (interval.low, interval.high)
    return (group.variant, group.label, row.metric.unit, row.n, component, interval.mean, *ends)
