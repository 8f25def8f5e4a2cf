"""Bar chart: the mean of every condition with its 95 % interval, and every run as a dot."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, HATCHES, Drawing
from steelyard.analysis.stats.number_format import (
    choose_prefix,
    compute_reaches,
    count_common_decimals,
    format_number,
)
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = ("variant", "condition", "metric", "unit", "n", "mean", "low", "high")
DENSE = 15  # with more bars they are closer together
MAX_DOTS = 3000  # with more runs dots would overlap too much
RASTER = 300  # more dots are drawn as an image, to limit the size of the file


@drawing.use_style()
def draw_bars(summary: Summary, rows: list[Row]) -> Drawing:
    """Draw one variant and metric; `rows` are its conditions."""
    first = rows[0]
    factor, unit = choose_prefix(
        max((r.interval.mean for r in rows if r.interval), default=None), first.metric.unit
    )
    pitch = 0.36 if len(rows) <= DENSE else 0.24
    figure = drawing.new_figure(1.0 + pitch * len(rows))
    axes = figure.add_subplot()
    draw_rows(axes, summary, rows, factor)
    draw_dots(axes, rows, factor)
    draw_intervals(axes, rows, factor)
    labels, names = label_fitting.format_short_labels(summary, [row.group for row in rows])
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylabel(names)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    axes.set_xlim(
        find_lowest(rows, factor), 1.3 * max(find_highest(row, factor) for row in rows) or 1
    )
    axes.set_xlabel(
        f"{first.metric.name} ({unit}){describe_direction(row=first)}\n{describe_marks(rows)}"
    )
    label_fitting.set_title(figure, first.group.variant)
    return Drawing(
        name=drawing.make_slug("bars", first.group.variant, first.metric.name),
        title=f"{first.group.variant}: {first.metric.name} by condition",
        caption=format_caption(rows),
        figure=figure,
        columns=COLUMNS,
        rows=[data_row(row) for row in rows],
    )


def describe_marks(rows: list[Row]) -> str:
    """Describe the marks inside the figure, for readers of the file without its caption."""
    dots = ", dots: runs" if has_dots(rows) else ""
    return f"bars: means, brackets: 95 % intervals{dots}"


def has_dots(rows: list[Row]) -> bool:
    return sum(row.n for row in rows) <= MAX_DOTS


def describe_direction(row: Row) -> str:
    """Describe which direction is better."""
    return f", {row.metric.better} is better" if row.metric.better else ""


def draw_rows(axes: Axes, summary: Summary, rows: list[Row], factor: float) -> None:
    """Draw bars and their means as text; `no value` without a mean."""
    by_level: dict[int, list[tuple[int, float]]] = {}
    decimals = count_common_decimals([row.interval for row in rows if row.interval], factor)
    for index, row in enumerate(rows):
        if row.interval is None:
            axes.text(0, index, "no value", va="center", style="italic", color="#444444")
            continue
        mean = row.interval.mean / factor
        level = drawing.level_index(summary, row.group)
        by_level.setdefault(level, []).append((index, mean))
        label = f"{format_number(mean, 1, decimals)} (n = {row.n})"
        axes.annotate(
            label, (find_highest(row, factor), index), (6, 0), textcoords="offset points",
            va="center", fontsize=8.5,
        )  # fmt: skip
    for level, bars_of_level in by_level.items():
        places, means = zip(*bars_of_level, strict=True)
        axes.barh(
            places, means, 0.62, color=COLOURS[level], alpha=0.55, hatch=HATCHES[level],
            edgecolor="#333333", linewidth=0.7,
        )  # fmt: skip


def draw_dots(axes: Axes, rows: list[Row], factor: float) -> None:
    """Draw every run, in five thin lines per bar so that dots do not cover each other."""
    if not has_dots(rows):
        return
    total = sum(row.n for row in rows)
    values = [value / factor for row in rows for value in row.values]
    spots = [index + 0.1 * (i % 5 - 2) for index, row in enumerate(rows) for i in range(row.n)]
    axes.plot(
        values, spots, linestyle="", marker=".", markersize=3, color="#222222", alpha=0.6,
        rasterized=total > RASTER,
    )  # fmt: skip


def draw_intervals(axes: Axes, rows: list[Row], factor: float) -> None:
    """Draw the 95 % intervals of the means."""
    known = [
        (
            row.interval.mean / factor,
            index,
            *(reach / factor for reach in compute_reaches(row.interval)),
        )
        for index, row in enumerate(rows)
        if row.interval is not None and row.interval.half_width is not None
    ]
    if known:
        means, places, below, above = zip(*known, strict=True)
        axes.errorbar(
            means,
            places,
            xerr=(below, above),
            color="black",
            capsize=3.5,
            linewidth=1.3,
            linestyle="",
        )


def find_lowest(rows: list[Row], factor: float) -> float:
    """Return the start of the axis: 0, or below an interval that extends below 0."""
    ends = (row.interval.low for row in rows if row.interval and row.interval.low is not None)
    return 1.05 * min(0.0, min(ends, default=0.0) / factor)


def find_highest(row: Row, factor: float) -> float:
    """Return the largest value drawn in a row."""
    if row.interval is None or row.maximum is None:
        return 0.0
    return max(row.interval.high or 0.0, row.maximum, row.interval.mean) / factor


def format_caption(rows: list[Row]) -> str:
    n = f"n = {counted_range((row.n for row in rows), 'run')}"
    dots = " Each dot is a run." if has_dots(rows) else ""
    return (
        f"Mean {rows[0].metric.name} of the runs of each condition, with its 95 % confidence "
        f"interval (Student), {n}.{dots}"
    )


def data_row(row: Row) -> tuple[object, ...]:
    interval = row.interval
    numbers = (interval.mean, interval.low, interval.high) if interval else (None, None, None)
    group, metric = row.group, row.metric
    return (group.variant, group.label, metric.name, metric.unit, row.n, *numbers)
