"""Redraws the thesis' figures: every iteration of every node, with the averages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.figures.iterations import Level, draw_panel, label_averages, make_legend
from steelyard.analysis.papers.jungels2012.thesis_study import (
    FACTORS,
    NODE_TYPES,
    Measurements,
    Series,
)
from steelyard.analysis.stats.basics import Interval, mean_interval
from steelyard.analysis.stats.number_format import format_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    "figure",
    "variant",
    "filesystem",
    "concurrent_nodes",
    "node_type",
    "node",
    "unit",
    "iteration",
    "value",
    "average_n",
    "average_low",
    "average_high",
    "average",
    "repeats_figure",
)
NOT_PRINTED = "not printed"
TESTS = {
    "large_file_copy": "Copy of a large file",
    "small_file_copy": "Copy of small files",
    "small_file_write": "Writing small files",
}


def thesis_draws(measurements: Measurements) -> Iterator[Callable[[], Drawing]]:
    """Yield functions that draw a figure: tests by concurrent nodes, then benchmarks."""
    for test, subject in TESTS.items():
        for at_once in FACTORS["concurrent_nodes"]:
            yield partial(filesystem_drawing, measurements, test, subject, at_once)
    series = [one for one in measurements.series if one.metric.name == "total"]
    for variant in dict.fromkeys(one.variant for one in series):
        members = [one for one in series if one.variant == variant]
        yield partial(hpc_drawing, measurements, members)


def filesystem_drawing(
    measurements: Measurements, test: str, subject: str, at_once: int
) -> Drawing:
    """Draw a panel per file system."""
    members = [
        one
        for one in measurements.series
        if one.variant.endswith(f"test={test}") and one.condition["concurrent_nodes"] == at_once
    ]
    names = FACTORS["filesystem"]
    panels = [
        build_levels(
            one
            for one in members
            if one.condition["filesystem"] == name and one.figure not in measurements.repeated
        )
        for name in names
    ]
    title = f"{subject}, {'one node' if at_once == 1 else f'{at_once} nodes at once'}"
    with drawing.use_style():
        figure = drawing.new_figure(3.0)
        grid: Sequence[Axes] = figure.subplots(1, len(names), sharey=True)
        for axes, name, levels in zip(grid, names, panels, strict=True):
            draw_panel(axes, levels, NOT_PRINTED)
            axes.set_title(name)
            axes.set_xlabel("iteration")
        grid[0].set_ylabel("time (s), lower is better")
        grid[0].set_ylim(bottom=0)
        for axes, levels in zip(grid, panels, strict=True):
            label_averages(axes, levels)
        figure.suptitle(title, x=0.01, ha="left", fontsize=10)
        nodes = max((one.node_index for one in members), default=1)
        add_legend(figure, panels[0], nodes)
    return make_drawing(measurements, members, title, figure)


def hpc_drawing(measurements: Measurements, members: list[Series]) -> Drawing:
    """Draw the figure of one benchmark."""
    variant, levels = members[0].variant, build_levels(members)
    with drawing.use_style():
        figure = drawing.new_figure(2.6)
        axes = figure.add_subplot()
        draw_panel(axes, levels, NOT_PRINTED)
        axes.set_xlabel("iteration")
        axes.set_ylabel(f"total ({format_unit(members[0].metric.unit)}), higher is better")
        axes.margins(y=0.12)
        label_averages(axes, levels)
        axes.set_title(variant)
        add_legend(figure, levels, 1)
    return make_drawing(measurements, members, variant, figure)


def add_legend(figure: Figure, levels: Sequence[Level], nodes: int) -> None:
    names = [f"node {number}" for number in range(1, nodes + 1)] if nodes > 1 else []
    figure.legend(handles=list(make_legend(levels, names)), loc="outside lower center", ncols=6)


def build_levels(members: Iterable[Series]) -> list[Level]:
    """Return nodes and averages of both node types; the average is None without printed values."""
    every = list(members)
    found = []
    for index, node_type in enumerate(NODE_TYPES):
        selected = [one for one in every if one.node_type == node_type]
        lines = [(one.node_index - 1, one.values) for one in selected]
        average = compute_average(selected)
        found.append(Level(node_type, index, average.mean if average else None, lines))
    return found


def compute_average(members: Iterable[Series]) -> Interval | None:
    """Return the mean of all values, with Student's interval."""
    values = [value for one in members for value in one.values]
    return mean_interval(values) if values else None


def make_drawing(
    measurements: Measurements, members: list[Series], title: str, figure: Any
) -> Drawing:
    """Return the figure with its texts and numbers; repeated series are only in the numbers."""
    numbers = ", ".join(dict.fromkeys(one.figure for one in members))
    distinct = [one for one in members if one.figure not in measurements.repeated]
    counts = [f"{sum(len(s.values) for s in distinct if s.node_type == t)} {t}" for t in NODE_TYPES]
    repeated = [one.figure for one in members if one.figure in measurements.repeated]
    more = f" Not drawn: {', '.join(repeated)}, printed twice." if repeated else ""
    if members[0].metric.name == "total":
        more += " The axis does not start at 0."
    return Drawing(
        name=drawing.make_slug("published", title),
        title=title,
        caption=(
            f"Iterations of each node in the order in which they ran; black lines and numbers are "
            f"the averages of a node type over all its nodes (n = {' + '.join(counts)} "
            f"iterations). From {numbers}.{more}"
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[cells for one in members for cells in data_rows(measurements, one, distinct)],
    )


def measurement_rows(measurements: Measurements) -> Iterator[tuple[object, ...]]:
    """Yield the numbers of all figures."""
    distinct = [one for one in measurements.series if one.figure not in measurements.repeated]
    for one in measurements.series:
        same_variant = [other for other in distinct if other.variant == one.variant]
        yield from data_rows(measurements, one, same_variant)


def data_rows(
    measurements: Measurements, one: Series, candidates: Sequence[Series]
) -> Iterator[tuple[object, ...]]:
    """Yield each value, with the average that is drawn in its panel for its node type."""
    condition = one.condition
    alike = [s for s in candidates if s.condition == condition]
    average = compute_average(alike)
    assert average is not None  # `one`, or the series whose values it repeats, is in the list
    interval = (average.n, average.low, average.high, average.mean)
    fixed = (
        one.figure,
        one.variant,
        condition.get("filesystem"),
        condition.get("concurrent_nodes"),
        one.node_type,
        one.host,
        one.metric.unit,
    )
    for number, value in enumerate(one.values, start=1):
        yield (*fixed, number, value, *interval, measurements.repeated.get(one.figure))
