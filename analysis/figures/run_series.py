"""Run series: every run in the order in which the runs started, by condition."""

from __future__ import annotations

import math
from itertools import accumulate, islice
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, MARKERS, Drawing
from steelyard.analysis.stats.basics import MIN_FOR_OUTLIERS
from steelyard.analysis.stats.number_format import choose_prefix
from steelyard.analysis.summary.numeric_factors import format_n
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

COLUMNS = ("variant", "condition", "metric", "unit", "place", "run_id", "value", "outlier")
BANDS = 8  # conditions in a row; more are in further rows
MAX_BANDS = 24  # conditions in the figure; its CSV has all
CROWDED = 75  # letters that fit in a row
LINES = 2  # lines of a level in a crowded label
LINE_IN = 0.15
LEAST_BAND = 0.9  # of the widest band in the row
Y_LETTERS = 16  # that fit next to a row
RASTER = 300  # more points are drawn as an image, to limit the size of the file


@drawing.use_style()
def draw_series(summary: Summary, rows: list[Row]) -> Drawing:
    """Draw one variant and metric; `rows` are its conditions."""
    first, everything = rows[0], rows
    rows = select_rows(rows)
    factor, unit = choose_prefix(
        max((r.maximum or 0.0 for r in rows), default=None), first.metric.unit
    )
    shelves = list(split_into_shelves(rows))
    by_row, names = format_band_labels(summary, rows, len(shelves[0]))
    lines = max(label.count("\n") for label in by_row.values())
    figure = drawing.new_figure(0.75 + (1.5 + LINE_IN * max(lines - 1, 0)) * len(shelves))
    grid = figure.subplots(len(shelves), 1, sharey=True, squeeze=False)
    raster = sum(row.n for row in rows) > RASTER
    for axes, shelf in zip(grid[:, 0], shelves, strict=True):
        draw_shelf(axes, summary, shelf, [by_row[id(row)] for row in shelf], factor, raster)
        axes.set_ylabel(label_fitting.wrap_label(f"{first.metric.name} ({unit})", Y_LETTERS))
    label_fitting.set_title(figure, first.group.variant)
    order = "runs in the order in which they started"
    grid[-1, 0].set_xlabel(f"{names}: {order}" if names else order)
    return Drawing(
        name=drawing.make_slug("series", first.group.variant, first.metric.name),
        title=f"{first.group.variant}: {first.metric.name} run by run",
        caption=format_caption(rows, everything),
        figure=figure,
        columns=COLUMNS,
        rows=[cells for row in everything for cells in data_rows(row)],
    )


def format_band_labels(
    summary: Summary, rows: list[Row], beside: int
) -> tuple[dict[int, str], str]:
    """Return the label of each row by its id, wrapped to fit `beside` bands in a row."""
    groups = [row.group for row in rows]
    most = CROWDED // beside
    labels, names = label_fitting.format_short_labels(summary, groups, CROWDED)
    if max(map(len, labels)) > most:
        factors = names.count(label_fitting.BETWEEN) + 1
        labels, names = label_fitting.format_short_labels(summary, groups, LINES * most * factors)
        labels = [label_fitting.wrap_label(label, most) for label in labels]
    return dict(zip((id(row) for row in rows), labels, strict=True)), names


def select_rows(rows: list[Row]) -> list[Row]:
    """Return all conditions; if there are too many, the first and those with the most outliers."""
    if len(rows) <= MAX_BANDS:
        return rows
    ranked = sorted(range(len(rows)), key=lambda i: (i > 0, -len(rows[i].outliers.indices), i))
    return [rows[i] for i in sorted(ranked[:MAX_BANDS])]


def split_into_shelves(rows: list[Row]) -> Iterator[list[Row]]:
    """Yield rows of about equal length, with at most BANDS bands each."""
    size = math.ceil(len(rows) / math.ceil(len(rows) / BANDS))
    rest = iter(rows)
    while shelf := list(islice(rest, size)):
        yield shelf


def draw_shelf(
    axes: Axes, summary: Summary, rows: list[Row], labels: list[str], factor: float, raster: bool
) -> None:
    """Draw bands of runs, one per condition, with the mean as a line through each."""
    gap = max(max(row.n for row in rows) * 0.08, 0.5)  # in steps from run to run
    widths = compute_band_widths(rows)
    starts = [0.0, *accumulate(width + gap for width in widths)]
    for start in starts[1:-1]:
        axes.axvline(start - gap / 2 - 0.5, color="#bbbbbb", linewidth=0.8)
    centres = [start + (width - 1) / 2 for start, width in zip(starts, widths, strict=False)]
    firsts = [c - (max(row.n, 1) - 1) / 2 for c, row in zip(centres, rows, strict=True)]
    draw_points(axes, summary, rows, firsts, factor, raster)
    for row, start in zip(rows, firsts, strict=True):
        draw_mean(axes, row, start, factor)
    axes.set_xlim(-gap / 2 - 0.5, starts[-1] - gap / 2 - 0.5)
    axes.set_xticks(centres, labels)
    axes.tick_params(axis="x", length=0)
    axes.grid(visible=False, axis="x")


def compute_band_widths(rows: list[Row]) -> list[float]:
    """Return the steps of each band: one per run, and at least LEAST_BAND of the widest."""
    least = LEAST_BAND * max(row.n for row in rows)
    return [max(row.n, least, 1.0) for row in rows]


def draw_points(
    axes: Axes, summary: Summary, rows: list[Row], starts: list[float], factor: float, raster: bool
) -> None:
    """Draw runs in color and shape of their level; one artist per level keeps files small."""
    by_level: dict[int, list[tuple[float, float]]] = {}
    rings: list[tuple[float, float]] = []
    for row, start in zip(rows, starts, strict=False):
        points = [(start + i, value / factor) for i, value in enumerate(row.values)]
        by_level.setdefault(drawing.level_index(summary, row.group), []).extend(points)
        rings += (points[i] for i in row.outliers.indices)
    for level, points in by_level.items():
        axes.plot(
            *columns(points), linestyle="", marker=MARKERS[level], markersize=3.6,
            color=COLOURS[level], markeredgecolor="#333333", markeredgewidth=0.3,
            rasterized=raster,
        )  # fmt: skip
    if rings:  # an empty unclipped artist has an infinite size in matplotlib's layout
        axes.plot(
            *columns(rings), linestyle="", marker="o", markersize=8, markerfacecolor="none",
            markeredgecolor="#B00000", markeredgewidth=1.1, clip_on=False,
        )  # fmt: skip


def columns(points: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def draw_mean(axes: Axes, row: Row, start: float, factor: float) -> None:
    if row.interval is None:
        axes.text(
            start,
            0.5,
            "no value",
            transform=axes.get_xaxis_transform(),
            ha="center",
            style="italic",
        )
        return
    mean = row.interval.mean / factor
    axes.plot([start - 0.4, start + row.n - 0.6], [mean, mean], color="black", linewidth=1.1)


def format_caption(rows: list[Row], everything: list[Row]) -> str:
    marked = sum(len(row.outliers.indices) for row in rows)
    rings = (
        f"Rings mark {counted(marked, 'outlier')} (modified z-score above 3.5), "
        "which stay in the mean."
        if marked
        else "No outliers (modified z-score above 3.5)."
    )
    if max((row.n for row in rows), default=0) < MIN_FOR_OUTLIERS:
        rings = f"Outliers are looked for from {MIN_FOR_OUTLIERS} runs on."
    remark = ""
    if len(rows) < len(everything):
        remark = (
            f" Shown are {len(rows)} of {len(everything)} conditions: the first, and those with "
            "the most outliers; the figure's CSV has all."
        )
    return (
        f"Each point is a run: {rows[0].metric.name} in time order, by condition ({format_n(rows, 'condition')}); "
        f"the line is the condition's mean. {rings}{remark}"
    )


def data_rows(row: Row) -> Iterator[tuple[object, ...]]:
    group, metric = row.group, row.metric
    fixed = (group.variant, group.label, metric.name, metric.unit)
    marked = set(row.outliers.indices)
    for index, (run_id, value) in enumerate(zip(row.run_ids, row.values, strict=True)):
        yield (*fixed, index + 1, run_id, value, int(index in marked))
