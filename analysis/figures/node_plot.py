"""Sorted nodes with their intervals, compared with the median of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, Drawing
from steelyard.analysis.summary.node_comparisons import NodeComparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("variant", "metric", "others", "node", "difference", "low", "high", "n", "differs")
MAX_NAMES = 40  # nodes that each have a line with a name; with more, nodes are points in a row
MOST_LABELS = 8  # of nodes that differ, if nodes are points
LETTERS = 24  # of a node's name
Y_LETTERS = 40
GREY = "#777777"


def draw_nodes(one: NodeComparison) -> Drawing | None:
    """Draw a comparison of nodes; None if nothing could be compared."""
    if not one.nodes:
        return None
    with drawing.use_style():
        return plot_nodes(one)


def plot_nodes(one: NodeComparison) -> Drawing:
    is_long = len(one.nodes) > MAX_NAMES
    figure = drawing.new_figure(3.4 if is_long else 0.9 + 0.19 * len(one.nodes))
    axes = figure.add_subplot()
    (draw_points if is_long else draw_lines)(axes, one)
    label_fitting.set_title(figure, f"{one.variant}{f', {one.others}' if one.others else ''}")
    better = f", {one.metric.better} is better" if one.metric.better else ""
    label = f"{one.metric.name} against the median (%){better}"
    if is_long:
        axes.set_ylabel(label_fitting.wrap_label(label, Y_LETTERS))
    else:
        axes.set_xlabel(label)
    count = sum(found.differs for found in one.nodes.values())
    return Drawing(
        name=drawing.make_slug("nodes", one.variant, one.metric.name, *([one.others] if one.others else [])),
        title=f"{one.variant}: {one.metric.name} of each node against the median of all",
        caption=(
            f"{one.metric.name} of {len(one.nodes)} nodes against their median, sorted, with intervals "
            f"that hold for all of them together in 95 of 100 studies. Colored: the {count} that differ."
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[
            (one.variant, one.metric.name, one.others, name, c.value, c.low, c.high, c.n, c.differs)
            for name, c in one.nodes.items()
        ],
    )  # fmt: skip


def draw_lines(axes: Axes, one: NodeComparison) -> None:
    """Draw a line for each node, with its name next to it."""
    for y, found in enumerate(one.nodes.values()):
        colour = COLOURS[5] if found.differs else GREY
        axes.plot([100 * found.low, 100 * found.high], [y, y], color=colour, linewidth=1.4)
        axes.plot([100 * found.value], [y], "o", color=colour, markersize=4.5)
    axes.axvline(0, color="#000000", linewidth=0.9)
    axes.set_yticks(
        range(len(one.nodes)), [label_fitting.shorten_name(name, LETTERS) for name in one.nodes]
    )
    axes.set_ylim(len(one.nodes) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")


def draw_points(axes: Axes, one: NodeComparison) -> None:
    """Draw sorted points; those that differ are colored, and the farthest of them have names."""
    every = list(one.nodes.items())
    for differs, colour in ((False, GREY), (True, COLOURS[5])):
        mine = [(index, c) for index, (_, c) in enumerate(every) if c.differs is differs]
        if mine:
            places, found = zip(*mine, strict=True)
            axes.vlines(
                places, [100 * c.low for c in found], [100 * c.high for c in found],
                color=colour, alpha=0.9 if differs else 0.35, linewidth=1.0 if differs else 0.5,
            )  # fmt: skip
            axes.plot(places, [100 * c.value for c in found], ".", color=colour, markersize=3)
    axes.axhline(0, color="#000000", linewidth=0.9)
    apart = [(index, name, c) for index, (name, c) in enumerate(every) if c.differs]
    apart.sort(key=lambda item: -abs(item[2].value))
    for index, name, c in apart[:MOST_LABELS]:
        is_right = index > len(every) / 2
        axes.annotate(
            label_fitting.shorten_name(name, LETTERS), (index, 100 * c.value), (-6 if is_right else 6, 0),
            textcoords="offset points", ha="right" if is_right else "left", va="center", fontsize=8,
        )  # fmt: skip
    axes.set_xlabel(f"{len(every)} nodes, sorted")
