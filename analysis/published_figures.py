"""The figures of published data: every iteration of every node, with the averages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from steelyard.analysis import figures
from steelyard.analysis.figures import COLOURS, MARKERS, Drawing
from steelyard.analysis.published import FACTORS, Published, Series
from steelyard.analysis.quantities import unit_text
from steelyard.analysis.stats import Interval, mean_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
LOOKS: dict[str, tuple[str, Any]] = {"physical": (COLOURS[0], "-"), "virtual": (COLOURS[1], "--")}
MARK_EVERY = 6  # iterations between the marks that tell nodes apart
TESTS = {
    "large_file_copy": "Copy of a large file",
    "small_file_copy": "Copy of small files",
    "small_file_write": "Writing small files",
}


def draw_published(published: Published) -> list[Drawing]:
    """Tests of file systems by nodes at once, then the benchmarks of computing."""
    with figures.style():
        return [*filesystem_drawings(published), *hpc_drawings(published)]


def filesystem_drawings(published: Published) -> Iterator[Drawing]:
    """A figure per test and number of nodes at once, a panel per file system."""
    for test, words in TESTS.items():
        for at_once in FACTORS["concurrent_nodes"]:
            members = [
                one
                for one in published.series
                if one.variant.endswith(f"test={test}")
                and one.condition["concurrent_nodes"] == at_once
            ]
            nodes = "one node" if at_once == 1 else f"{at_once} nodes at once"
            yield filesystem_drawing(published, members, f"{words}, {nodes}")


def filesystem_drawing(published: Published, members: list[Series], title: str) -> Drawing:
    names = FACTORS["filesystem"]
    figure = figures.new_figure(3.0)
    grid: Sequence[Axes] = figure.subplots(1, len(names), sharey=True)
    for axes, name in zip(grid, names, strict=True):
        here = [one for one in members if one.condition["filesystem"] == name]
        draw_panel(axes, [one for one in here if one.figure not in published.repeated])
        axes.set_title(name)
        axes.set_xlabel("iteration")
    grid[0].set_ylabel("time (s), lower is better")
    grid[0].set_ylim(bottom=0)
    for axes, name in zip(grid, names, strict=True):
        label_averages(axes, [one for one in members if one.condition["filesystem"] == name])
    figure.suptitle(title, x=0.01, ha="left", fontsize=10)
    nodes = max((one.node_index for one in members), default=1)
    figure.legend(handles=legend(nodes), loc="outside lower center", ncols=6)
    return drawing_of(published, members, title, figure)


def hpc_drawings(published: Published) -> Iterator[Drawing]:
    """A figure per benchmark."""
    series = [one for one in published.series if one.metric.name == "total"]
    for variant in dict.fromkeys(one.variant for one in series):
        members = [one for one in series if one.variant == variant]
        figure = figures.new_figure(2.6)
        axes = figure.add_subplot()
        draw_panel(axes, members)
        axes.set_xlabel("iteration")
        axes.set_ylabel(f"total ({unit_text(members[0].metric.unit)}), higher is better")
        axes.margins(y=0.12)
        label_averages(axes, members)
        axes.set_title(variant)
        figure.legend(handles=legend(1), loc="outside lower center", ncols=6)
        yield drawing_of(published, members, variant, figure)


def draw_panel(axes: Axes, members: list[Series]) -> None:
    """A line per node, and one through the average of each node type."""
    for one in members:
        colour, dash = LOOKS[one.condition["node_type"]]
        axes.plot(
            range(1, len(one.values) + 1), one.values, dash, color=colour, linewidth=0.9,
            marker=MARKERS[one.node_index - 1], markersize=3.5, markeredgecolor="#333333",
            markeredgewidth=0.3, markevery=(one.node_index, MARK_EVERY),
        )  # fmt: skip
    for node_type, interval in averages(members):
        axes.axhline(interval.mean, color="black", linestyle=LOOKS[node_type][1], linewidth=0.9)
    if not members:
        axes.text(0.5, 0.5, "not printed", transform=axes.transAxes, ha="center", style="italic")
    axes.set_xlim(0, 1.22 * max((len(one.values) for one in members), default=35))


def label_averages(axes: Axes, members: list[Series]) -> None:
    """The averages as numbers at the right; when the axes' limits are set."""
    means = [interval.mean for _, interval in averages(members)]
    low, high = axes.get_ylim()
    for mean, place in zip(means, apart(means, 0.12 * (high - low)), strict=True):
        axes.annotate(
            f"{mean:.4g}", (1.0, place), xycoords=("axes fraction", "data"),
            xytext=(-2, 0), textcoords="offset points", ha="right", va="center", fontsize=8,
            bbox={"facecolor": "white", "edgecolor": "#999999", "pad": 1.2, "linewidth": 0.5},
        )  # fmt: skip


def apart(means: Sequence[float], gap: float) -> list[float]:
    """Where labels of two means stand so that they do not hide each other."""
    if len(means) < 2 or abs(means[0] - means[1]) >= gap:
        return list(means)
    middle, sign = sum(means) / 2, 1 if means[0] > means[1] else -1
    return [middle + sign * gap / 2, middle - sign * gap / 2]


def averages(members: Sequence[Series]) -> Iterator[tuple[str, Interval]]:
    """(node type, mean of all its values, with Student's interval) where there are any."""
    for node_type in FACTORS["node_type"]:
        values = [v for s in members if s.condition["node_type"] == node_type for v in s.values]
        if values:
            yield node_type, mean_interval(values)


def legend(nodes: int) -> list[Any]:
    """Node types by colour and dashes, nodes by marks."""
    from matplotlib.lines import Line2D

    types = [
        Line2D([], [], color=colour, linestyle=dash, label=node_type)
        for node_type, (colour, dash) in LOOKS.items()
    ]
    marks = [
        Line2D([], [], color="#333333", linestyle="", marker=MARKERS[i], label=f"node {i + 1}")
        for i in range(nodes if nodes > 1 else 0)
    ]
    return types + marks


def drawing_of(published: Published, members: list[Series], title: str, figure: Any) -> Drawing:
    """With words and numbers; series that repeat another are in the numbers only."""
    numbers = ", ".join(dict.fromkeys(one.figure for one in members))
    shown = [one for one in members if one.figure not in published.repeated]
    counts = [
        f"{sum(len(s.values) for s in shown if s.condition['node_type'] == t)} {t}"
        for t in FACTORS["node_type"]
    ]
    left_out = [one.figure for one in members if one.figure in published.repeated]
    more = f" Not drawn: {', '.join(left_out)}, printed twice." if left_out else ""
    if members[0].metric.name == "total":
        more += " The axis does not start at 0."
    return Drawing(
        name=figures.slug("published", title),
        title=title,
        caption=(
            f"Iterations of each node in the order in which they ran; black lines and numbers are "
            f"the averages of a node type over all its nodes (n = {' + '.join(counts)} "
            f"iterations). From {numbers}.{more}"
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[cells for one in members for cells in data_rows(published, one, shown)],
    )


def data_rows(
    published: Published, one: Series, shown: Sequence[Series]
) -> Iterator[tuple[object, ...]]:
    """Each value, with the average that is drawn through its panel and node type."""
    condition = one.condition
    alike = [s for s in shown if s.condition == condition]
    ((_, average),) = averages(alike)
    drawn = (average.n, average.low, average.high, average.mean)
    fixed = (
        one.figure,
        one.variant,
        condition.get("filesystem"),
        condition.get("concurrent_nodes"),
        condition["node_type"],
        one.host,
        one.metric.unit,
    )
    for number, value in enumerate(one.values, start=1):
        yield (*fixed, number, value, *drawn, published.repeated.get(one.figure))
