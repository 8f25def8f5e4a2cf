"""Box plots of time and energy over a numeric factor, such as the network's delay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, HATCHES, Drawing
from steelyard.analysis.stats.number_format import choose_prefix, format_level_number
from steelyard.analysis.summary.numeric_factors import (
    OverFactor,
    describe_omissions,
    format_n,
    select_first_series,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "variant", "factor", "level", "others", "metric", "unit", "n", "min", "p25", "median", "p75",
    "max", "low_whisker", "high_whisker",
)  # fmt: skip
WHISKER = 1.5  # interquartile ranges: Tukey (1977), "Exploratory Data Analysis"
MAX_TICKS = 12
Y_LETTERS = 24  # that fit next to a panel
BOX = ("whislo", "q1", "med", "q3", "whishi")


@drawing.use_style()
def draw_boxes(panels: list[OverFactor]) -> Drawing:
    """Draw one variant and factor, with a panel per metric."""
    first = panels[0]
    legend = label_fitting.make_legend([one.others for one in select_first_series(first)])
    figure = drawing.new_figure(0.7 + 2.0 * len(panels) + legend.height_in)
    grid = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, found in zip(grid, panels, strict=True):
        draw_panel(axes, found)
    label_fitting.set_title(figure, first.variant)
    grid[-1].set_xlabel(first.factor_label)
    if len(legend.labels) > 1:
        handles = make_legend_boxes(legend.labels)
        figure.legend(handles=handles, loc="outside lower center", ncols=legend.columns)
    names = " and ".join(found.metric for found in panels)
    return Drawing(
        name=drawing.make_slug("boxes", first.variant, first.factor, *(f.metric for f in panels)),
        title=f"{first.variant}: {names} over {first.factor_label}",
        caption=(
            f"{names} over {first.factor_label}: line at the median, box over the middle half, "
            f"whiskers to the farthest run within {WHISKER} times its height, dots beyond "
            f"({format_n([row for found in panels for row in found.rows])}).{describe_omissions(first)}"
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[cells for found in panels for cells in data_rows(found)],
    )


def draw_panel(axes: Axes, found: OverFactor) -> None:
    """Draw the boxes of a metric, with series next to each other at each level."""
    series = select_first_series(found)
    levels = sorted({one_level for one in series for one_level in one.places})
    most = max(row.maximum or 0.0 for one in series for row in one.rows)
    factor, unit = choose_prefix(most, found.unit)
    width = 0.8 / len(series)
    for number, one in enumerate(series):
        spots = [levels.index(p) + (number - (len(series) - 1) / 2) * width for p in one.places]
        boxes_of = [compute_box(row.values, factor) for row in one.rows]
        draw_series(axes, spots, boxes_of, 0.85 * width, number)
    step = -(-len(levels) // MAX_TICKS)
    axes.set_xticks(
        range(0, len(levels), step), [format_level_number(level) for level in levels[::step]]
    )
    axes.grid(visible=False, axis="x")
    if min(row.minimum or 0 for row in found.rows) >= 0:
        drawing.start_axis_at(axes)
    axes.set_ylabel(label_fitting.wrap_label(f"{found.metric} ({unit})", Y_LETTERS))


def draw_series(
    axes: Axes, spots: list[float], found: list[dict[str, Any]], width: float, number: int
) -> None:
    """Draw the boxes of a series with six artists; Axes.bxp() creates seven for every box."""
    from matplotlib.collections import PolyCollection

    left, right = [x - width / 2 for x in spots], [x + width / 2 for x in spots]
    ends = {name: [box[name] for box in found] for name in BOX}
    corners = zip(left, right, ends["q1"], ends["q3"], strict=True)
    boxes = [[(a, low), (b, low), (b, high), (a, high)] for a, b, low, high in corners]
    axes.add_collection(PolyCollection(
        boxes, facecolor=COLOURS[number], alpha=0.6, hatch=HATCHES[number], edgecolor="black",
        linewidth=0.7,
    ))  # fmt: skip
    for quartile, far in (("q1", "whislo"), ("q3", "whishi")):
        axes.vlines(spots, ends[quartile], ends[far], color="black", linewidth=0.7)
        caps = [(x - width / 4, x + width / 4) for x in spots]
        axes.hlines(ends[far], *zip(*caps, strict=True), color="black", linewidth=0.7)
    axes.hlines(ends["med"], left, right, color="black", linewidth=1.4)
    beyond = [(x, y) for x, box in zip(spots, found, strict=True) for y in box["fliers"]]
    if beyond:
        axes.plot(*zip(*beyond, strict=True), ".", markersize=3, color="#222222")


def compute_box(values: tuple[float, ...], factor: float) -> dict[str, Any]:
    """Return whiskers' ends, quartiles (linear interpolation) and the values beyond."""
    import numpy as np

    low, middle, high = np.quantile(values, (0.25, 0.5, 0.75))
    reach = WHISKER * (high - low)
    inside = [value for value in values if low - reach <= value <= high + reach]
    beyond = [value / factor for value in values if not low - reach <= value <= high + reach]
    return {
        "med": middle / factor,
        "q1": low / factor,
        "q3": high / factor,
        "whislo": min(inside) / factor,
        "whishi": max(inside) / factor,
        "fliers": beyond,
    }


def make_legend_boxes(names: list[str]) -> list[Any]:
    from matplotlib.patches import Patch

    return [
        Patch(
            facecolor=COLOURS[number], alpha=0.6, hatch=HATCHES[number], edgecolor="black",
            label=name,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip


def data_rows(found: OverFactor) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for one in found.series:
        for level, row in zip(one.places, one.rows, strict=True):
            box = compute_box(row.values, 1.0)
            rows.append(
                (
                    found.variant, found.factor, level, one.others, found.metric, found.unit, row.n,
                    row.minimum, float(box["q1"]), float(box["med"]), float(box["q3"]), row.maximum,
                    box["whislo"], box["whishi"],
                )
            )  # fmt: skip
    return rows
