"""Lines with bands over a numeric factor: how a figure scales, and throughput over delay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import COLOURS, DASHES, MARKERS, Drawing
from steelyard.analysis.stats.margin_crossing import Crossing
from steelyard.analysis.stats.number_format import choose_prefix, format_level_number
from steelyard.analysis.summary.numeric_factors import (
    OverFactor,
    Series,
    describe_omissions,
    format_n,
    select_first_series,
)
from steelyard.analysis.summary.tolerated_levels import Tolerance

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMNS = (
    "variant", "factor", "level", "others", "metric", "unit", "n", "mean", "low", "high",
)  # fmt: skip
BAND_ALPHA = 0.2
LIMIT_ALPHA = 0.08
Y_LETTERS = 30  # that fit next to the lines


def draw_lines(found: OverFactor, limits: Sequence[Tolerance] = ()) -> Drawing:
    """Draw one variant, metric and factor; `limits` of this metric are marked."""
    with drawing.use_style():
        return plot_lines(found, [one for one in limits if one.metric == found.metric])


def plot_lines(found: OverFactor, limits: Sequence[Tolerance]) -> Drawing:
    factor, unit = choose_prefix(
        max((row.maximum or 0.0 for row in found.rows), default=None), found.unit
    )
    series = select_first_series(found)
    legend = label_fitting.make_legend([one.others for one in series])
    figure = drawing.new_figure(2.9 + legend.height_in)
    axes = figure.add_subplot()
    for number, (one, name) in enumerate(zip(series, legend.labels, strict=True)):
        draw_series(axes, one, number, factor, name)
        for limit in limits:
            if limit.others == one.others and limit.crossing.value is not None:
                draw_limit(axes, limit.crossing, COLOURS[number])
    better = found.series[0].rows[0].metric.better
    label = f"{found.metric} ({unit})" + (f", {better} is better" if better else "")
    axes.set_ylabel(label_fitting.wrap_label(label, Y_LETTERS))
    axes.set_xlabel(found.factor_label)
    drawing.start_axis_at(axes, min(0.0, axes.get_ylim()[0]))
    label_fitting.set_title(figure, found.variant)
    levels = sorted({one_level for one in found.series for one_level in one.places})
    if len(levels) <= 8:
        axes.set_xticks(levels, [format_level_number(level) for level in levels])
    if len(series) > 1:
        figure.legend(loc="outside lower center", ncols=legend.columns)
    return Drawing(
        name=drawing.make_slug("lines", found.variant, found.factor, found.metric),
        title=f"{found.variant}: {found.metric} over {found.factor_label}",
        caption=(
            f"Mean {found.metric} over {found.factor_label}, with the band of its 95 % confidence "
            f"interval (Student; {format_n(found.rows)}).{describe_limits(limits)}{describe_omissions(found)}"
        ),
        figure=figure,
        columns=COLUMNS,
        rows=[cells for one in found.series for cells in data_rows(found, one)],
    )


def draw_series(axes: Axes, one: Series, number: int, factor: float, name: str) -> None:
    """Draw a line through the means, and a band where there are intervals."""
    means = [row.interval.mean / factor if row.interval else float("nan") for row in one.rows]
    axes.plot(
        one.places, means, DASHES[number % len(DASHES)], color=COLOURS[number], linewidth=1.4,
        marker=MARKERS[number], markersize=4.5, markeredgecolor="#333333", markeredgewidth=0.4,
        label=name or None,
    )  # fmt: skip
    known = [
        (level, row.interval.low / factor, row.interval.high / factor)
        for level, row in zip(one.places, one.rows, strict=True)
        if row.interval and row.interval.low is not None and row.interval.high is not None
    ]
    if known:
        places, low, high = zip(*known, strict=True)
        axes.fill_between(places, low, high, color=COLOURS[number], alpha=BAND_ALPHA, linewidth=0)


def draw_limit(axes: Axes, found: Crossing, colour: str) -> None:
    """Mark where the figure is worse by the tolerated share, with the interval of that place."""
    assert found.value is not None
    axes.axvline(found.value, color=colour, linewidth=1.0, linestyle=(0, (2, 2)))
    if found.low is not None and found.high is not None:
        axes.axvspan(found.low, found.high, color=colour, alpha=LIMIT_ALPHA, linewidth=0)


def describe_limits(limits: Sequence[Tolerance]) -> str:
    """Return the caption's sentence on the vertical lines."""
    if not any(one.crossing.value is not None for one in limits):
        return ""
    return (
        " Vertical lines are where it is as much worse than at the baseline as is tolerated, with the "
        "95 % interval of that place."
    )


def data_rows(found: OverFactor, one: Series) -> list[tuple[object, ...]]:
    return [
        (
            found.variant, found.factor, level, one.others, found.metric, found.unit, row.n,
            row.interval and row.interval.mean, row.interval and row.interval.low,
            row.interval and row.interval.high,
        )
        for level, row in zip(one.places, one.rows, strict=True)
    ]  # fmt: skip
