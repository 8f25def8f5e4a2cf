"""Iterations inside the runs: a line per node, and one through their overall mean."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import ceil, nan
from typing import TYPE_CHECKING, Any

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.bar_chart import describe_direction
from steelyard.analysis.figures.drawing import COLOURS, DASHES, MARKERS, Drawing
from steelyard.analysis.stats.number_format import choose_prefix
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted_range

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "variant", "condition", "metric", "unit", "node", "iteration", "runs", "value",
    "average_n", "average_low", "average_high", "average",
)  # fmt: skip
MAX_LEVELS = len(DASHES)  # that gray print distinguishes; with more a panel per condition
MAX_NODES = len(MARKERS)  # lines of one color that are distinguishable
MAX_PANELS, ACROSS = 9, 3
LETTERS = 78  # letters of all titles in a row of panels
LINE_IN = 0.14
Y_LETTERS = 30  # that fit next to a row of panels
RASTER = 3000  # more points are drawn as an image, to limit the size of the file
MARK_EVERY = 6  # iterations between the markers of a node
GAP = 0.12  # share of the axes' height between the numbers of two averages

# Means over a node's runs and clients: {condition: {node: {iteration: (runs, mean)}}}
Nodes = dict[str, dict[str, dict[int, tuple[int, float]]]]


@dataclass(frozen=True)
class Level:
    """The lines of one color: nodes under one condition, and their average."""

    name: str
    style_index: int  # index of its color and dashes
    average: float | None  # None: no values
    lines: Sequence[tuple[int, Sequence[float]]]  # (number of the node from 0, its iterations)

    @property
    def find_style(self) -> dict[str, Any]:
        return {"color": COLOURS[self.style_index], "linestyle": DASHES[self.style_index]}

    @property
    def points(self) -> int:
        return sum(len(values) for _, values in self.lines)


@dataclass(frozen=True)
class Panel:
    """Conditions that differ only in the factor of the colors."""

    title: str
    rows: Sequence[Row]
    names: Sequence[str]  # of the rows' levels
    places: Sequence[int]


def draw_iterations(summary: Summary, rows: list[Row]) -> Drawing | None:
    """Draw one variant and metric; `rows` are its conditions. Returns None without iterations."""
    measured = [row for row in rows if has_iterations(summary, row)]
    if not measured:
        return None
    found = read_nodes(summary, measured)
    with drawing.use_style():
        return plot_iterations(group_panels(summary, measured), found)


def plot_iterations(panels: list[Panel], found: Nodes) -> Drawing:
    chosen = panels[:MAX_PANELS]
    rows = [row for panel in panels for row in panel.rows]
    first, numbers = rows[0], number_nodes(chosen, found)
    factor, unit = choose_prefix(find_largest(found), first.metric.unit)
    levels = [build_levels(panel, found, numbers, factor) for panel in chosen]
    columns = 2 if len(chosen) == 4 else min(len(chosen), ACROSS)
    shelves = ceil(len(chosen) / columns)
    keys, names = list_legend_entries(chosen, numbers)
    key = label_fitting.make_legend([*(level.name for level in keys), *names])
    titles = label_fitting.wrap_titles([panel.title for panel in chosen], LETTERS // columns)
    lines = max(title.count("\n") for title in titles)
    figure = drawing.new_figure(0.7 + (1.9 + LINE_IN * lines) * shelves + key.height_in)
    grid = figure.subplots(shelves, columns, sharey=True, squeeze=False)
    raster = sum(level.points for panel in levels for level in panel) > RASTER
    for axes in grid.flat[len(chosen) :]:
        axes.set_visible(False)
    for axes, title, of_panel in zip(grid.flat, titles, levels, strict=False):
        draw_panel(axes, of_panel, "no value", raster)
        axes.set_title(title, fontsize=8.5)
        axes.set_xlabel("iteration")
        axes.xaxis.get_major_locator().set_params(integer=True)
    for line in grid:
        label = f"{first.metric.name} ({unit})" + describe_direction(first)
        line[0].set_ylabel(label_fitting.wrap_label(label, Y_LETTERS))
    for axes, of_panel in zip(grid.flat, levels, strict=False):
        label_averages(axes, of_panel)
    label_fitting.set_title(figure, first.group.variant)
    if key.labels:
        named_levels = [
            replace(level, name=name) for level, name in zip(keys, key.labels, strict=False)
        ]
        handles = list(make_legend(named_levels, key.labels[len(keys) :]))
        figure.legend(handles=handles, loc="outside lower center", ncols=key.columns)
    return Drawing(
        name=drawing.make_slug("iterations", first.group.variant, first.metric.name),
        title=f"{first.group.variant}: {first.metric.name}, iterations of each node",
        caption=format_caption(panels, found, numbers),
        figure=figure,
        columns=COLUMNS,
        rows=[cells for row in rows for cells in data_rows(row, found)],
    )


def find_largest(found: Nodes) -> float | None:
    every = (v for nodes in found.values() for line in nodes.values() for _, v in line.values())
    return max(every, default=None)


def group_panels(summary: Summary, rows: list[Row]) -> list[Panel]:
    """Return a panel for rows that are equal in all factors except that of the colors."""
    meta, factor = summary.data.meta, drawing.colour_factor(summary)
    levels = meta.factors[factor] if factor else []
    if factor is None or len(levels) > MAX_LEVELS:
        labels = [row.group.label for row in rows]
        return [Panel(label, [row], [""], [0]) for label, row in zip(labels, rows, strict=True)]
    members: dict[str, list[Row]] = {}
    for row in rows:
        others = (f"{n}={v}" for n, v in row.group.levels.items() if n != factor)
        members.setdefault(", ".join(others), []).append(row)
    return [
        Panel(
            others,
            alike,
            [f"{factor}={row.group.levels.get(factor)}" for row in alike],
            [drawing.level_index(summary, row.group) for row in alike],
        )
        for others, alike in members.items()
    ]


def number_nodes(panels: Sequence[Panel], found: Nodes) -> dict[int, dict[str, int]]:
    """Return {level: {node: its number from 0}}, the same in all panels."""
    names: dict[int, set[str]] = {}
    for panel in panels:
        for row, position in zip(panel.rows, panel.places, strict=True):
            names.setdefault(position, set()).update(found.get(row.group.label, {}))
    return {
        position: {node: number for number, node in enumerate(sorted(nodes, key=natural_sort_key))}
        for position, nodes in sorted(names.items())
    }


def natural_sort_key(node: str) -> tuple[int, str]:
    """Return a sort key with n2 before n10."""
    return len(node), node


def build_levels(
    panel: Panel, found: Nodes, numbers: dict[int, dict[str, int]], factor: float
) -> list[Level]:
    """Return the levels of a panel, with values divided by `factor`."""
    levels = []
    for row, name, position in zip(panel.rows, panel.names, panel.places, strict=True):
        lines = [
            (number, [value / factor for value in align_values(found[row.group.label][node])])
            for node, number in numbers[position].items()
            if number < MAX_NODES and node in found.get(row.group.label, {})
        ]
        mean = row.interval.mean / factor if row.interval else None
        levels.append(Level(name, position, mean, lines))
    return levels


def align_values(line: dict[int, tuple[int, float]]) -> list[float]:
    """Return the values from the first iteration on; nan if one is missing."""
    return [line[i][1] if i in line else nan for i in range(1, max(line) + 1)]


def list_legend_entries(
    panels: Sequence[Panel], numbers: dict[int, dict[str, int]]
) -> tuple[list[Level], list[str]]:
    """Return the legend's levels, if there are several, and the nodes of each marker."""
    looks = {
        position: Level(name, position, None, ())
        for panel in panels
        for name, position in zip(panel.names, panel.places, strict=True)
    }
    most = min(max(map(len, numbers.values()), default=0), MAX_NODES)
    alike = [
        list(dict.fromkeys(n for nodes in numbers.values() for n, i in nodes.items() if i == rank))
        for rank in range(most)
    ]
    names = [" / ".join(nodes) for nodes in alike] if most > 1 else []
    return [looks[position] for position in sorted(looks)] if len(looks) > 1 else [], names


def has_iterations(summary: Summary, row: Row) -> bool:
    return any((run, row.metric.name) in summary.data.iterations for run in row.run_ids)


def read_nodes(summary: Summary, rows: list[Row]) -> Nodes:
    """Return the means by condition and node, with nodes in the order of their names.

    Clients are counted node by node (docs/formats.md part 7), as many on each. If there are fewer
    clients than nodes, all nodes of the run are joined.
    """
    ids = [run for row in rows for run in row.run_ids]
    with open_database(summary.data.folder) as connection:
        lines = connection.execute(
            """
            WITH placed AS (
                SELECT r.condition_label AS label, s.run_id, s.iteration, s.value, CASE
                    WHEN coalesce(len(a.nodes), 0) = 0 THEN ''
                    WHEN s.client < a.clients AND a.clients % len(a.nodes) = 0
                    THEN a.nodes[1 + s.client * len(a.nodes) // a.clients]
                    ELSE array_to_string(a.nodes, '+') END AS node
                FROM results AS s JOIN runs AS r USING (run_id, attempt)
                    JOIN attempts AS a USING (run_id, attempt)
                WHERE s.metric = ? AND isfinite(s.value) AND run_id IN (SELECT unnest(?)))
            SELECT label, node, iteration, count(DISTINCT run_id), avg(value)
            FROM placed GROUP BY label, node, iteration ORDER BY label, length(node), node, iteration
            """,
            [rows[0].metric.name, ids],
        ).fetchall()
    found: Nodes = {}
    for label, node, iteration, runs, value in lines:
        found.setdefault(label, {}).setdefault(node, {})[iteration] = (runs, value)
    return found


def format_caption(panels: list[Panel], found: Nodes, numbers: dict[int, dict[str, int]]) -> str:
    rows = [row for panel in panels for row in panel.rows]
    n = f"n = {counted_range((row.n for row in rows), 'run')}"
    longest = max(max(line) for nodes in found.values() for line in nodes.values())
    caption = (
        f"Up to {longest} iterations inside the runs, in the order in which they ran: each line with "
        "marks is a node, the mean of its runs at that iteration; black lines and numbers are the "
        f"means of the conditions over their runs ({n}). The axis need not start at 0."
    )
    most = max(map(len, numbers.values()))
    if most > MAX_NODES:
        caption += f" The first {MAX_NODES} of {most} nodes; the CSV has all."
    if len(panels) > MAX_PANELS:
        caption += f" The first {MAX_PANELS} of {len(panels)} panels; the CSV has all."
    return caption


def data_rows(row: Row, found: Nodes) -> Iterator[tuple[object, ...]]:
    """Yield each node's iterations, with the average that is drawn through them."""
    group, metric, mean = row.group, row.metric, row.interval
    fixed = (group.variant, group.label, metric.name, metric.unit)
    average = (row.n, mean.low, mean.high, mean.mean) if mean else (row.n, None, None, None)
    for node, line in found.get(group.label, {}).items():
        for iteration, (runs, value) in line.items():
            yield (*fixed, node, iteration, runs, value, *average)


def draw_panel(axes: Axes, levels: Sequence[Level], without: str, raster: bool = False) -> None:
    """Draw a line per node and one through each average; `without`: the text without lines."""
    longest = 0
    for level in levels:
        for node, values in level.lines:
            longest = max(longest, len(values))
            axes.plot(
                range(1, len(values) + 1), values, **level.find_style, linewidth=0.9,
                marker=MARKERS[node], markersize=3.5, markeredgecolor="#333333",
                markeredgewidth=0.3, markevery=choose_marks(node, len(values)), rasterized=raster,
            )  # fmt: skip
        if level.average is not None:
            dashes = level.find_style["linestyle"]
            axes.axhline(level.average, color="black", linestyle=dashes, linewidth=0.9)
    if not longest:
        axes.text(0.5, 0.5, without, transform=axes.transAxes, ha="center", style="italic")
    axes.set_xlim(0, 1.28 * (longest or 35))  # room for the numbers


def choose_marks(node: int, length: int) -> tuple[int, int]:
    """Return (first, step) of a node's markers; with few iterations each has one."""
    return (node + 1, MARK_EVERY) if length > 2 * MARK_EVERY else (0, 1)


def label_averages(axes: Axes, levels: Sequence[Level]) -> None:
    """Write the averages as numbers at the right; the axes' limits must be set."""
    means = [level.average for level in levels if level.average is not None]
    low, high = axes.get_ylim()
    for mean, y in zip(means, separate_labels(means, GAP * (high - low)), strict=True):
        axes.annotate(
            f"{mean:#.4g}".rstrip("."), (1.0, y), xycoords=("axes fraction", "data"),
            xytext=(-2, 0), textcoords="offset points", ha="right", va="center", fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "#999999", "pad": 1.2, "linewidth": 0.5},
        )  # fmt: skip


def separate_labels(means: Sequence[float], gap: float) -> list[float]:
    """Return label positions near the means, at least `gap` apart so that they do not overlap.

    Neighbors that are too close form a block around their common middle (Barlow et al. (1972),
    "Statistical Inference under Order Restrictions", pool adjacent violators).
    """
    order = sorted(range(len(means)), key=lambda i: means[i])
    blocks: list[list[float]] = []  # of means minus the room that the labels below need
    for rank, i in enumerate(order):
        blocks.append([means[i] - rank * gap])
        while len(blocks) > 1 and compute_mean(blocks[-2]) > compute_mean(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    fitted = [compute_mean(block) for block in blocks for _ in block]
    places = {i: fitted[rank] + rank * gap for rank, i in enumerate(order)}
    return [places[i] for i in range(len(means))]


def compute_mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def make_legend(levels: Sequence[Level], nodes: Sequence[str]) -> Iterator[Any]:
    """Yield legend entries: levels by color and dashes, nodes by markers."""
    from matplotlib.lines import Line2D

    for level in levels:
        yield Line2D([], [], **level.find_style, label=level.name)
    for number, name in enumerate(nodes):
        yield Line2D([], [], color="#333333", linestyle="", marker=MARKERS[number], label=name)
