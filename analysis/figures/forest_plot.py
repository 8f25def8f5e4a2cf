"""Forest plot: every overhead with its 95 % interval, the study's answer in one picture.

Lewis & Clarke (2001), "Forest Plots: Trying to See the Wood and the Trees", BMJ 322.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing, label_fitting
from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.sources.records import COUNTS_STOLEN_TIME
from steelyard.analysis.stats.overhead_verdict import (
    Direction,
    format_percent,
    format_percent_range,
)
from steelyard.analysis.summary.numeric_factors import format_n
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary, is_main

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMNS = (
    "variant", "condition", "baseline", "metric", "unit", "better", "overhead", "low", "high", "n",
    "n_baseline", "meaning",
)  # fmt: skip
MAX_ROWS = 40  # the CSV has all
FARTHEST = 2.5  # times the largest overhead: longer intervals end in an arrow
LEAST = 0.05  # share of the axis on each side
LETTERS, NARROW_LETTERS = 46, 40  # of a row's name
LONG_LABEL = 24  # letters of a condition above which only its levels are shown
NUMBER = re.compile(r"[-+.0-9eE]+|true|false")
NARROW_LINE, LEAST_NAME = 54, 16  # letters of a line, and least letters of the name in it
# Color and marker carry the same information; the colors are Okabe and Ito's.
LOOKS = {
    Direction.WORSE: ("#D55E00", "s", True),
    Direction.BETTER: ("#0072B2", "o", True),
    Direction.DIFFERENT: ("#CC79A7", "^", True),
    Direction.EQUIVALENT: ("#009E73", "D", True),
    Direction.NON_INFERIOR: ("#009E73", "D", False),
    Direction.PERHAPS: ("#777777", "s", False),
    Direction.NOT_SHOWN: ("#777777", "o", False),
}
BAND = "#009E73"
PANELS = {
    "lower": ("less is better", "← better", "worse →"),
    "higher": ("more is better", "← worse", "better →"),
    None: ("neither is better", "← less", "more →"),
}


@dataclass(frozen=True)
class Line:
    """One line of a panel: a group's heading, or a row with its name."""

    name: str
    row: Row | None = None


def draw_forest(summary: Summary, narrow: bool = False) -> Drawing | None:
    """Draw all main overheads that have an interval; None without any."""
    stolen = has_stolen_time(summary)
    every = [
        row
        for row in summary.compared_rows()
        if is_main(row) and has_interval(row) and not (stolen and row.metric.name == "cpu_s")
    ]
    if not every:
        return None
    with drawing.use_style():
        return plot_forest(summary, every, narrow)


def has_stolen_time(summary: Summary) -> bool:
    """Return whether any node's CPU seconds include stolen time (SY32); they are then not shown."""
    return any(record.vm in COUNTS_STOLEN_TIME for record in summary.data.records)


def has_interval(row: Row) -> bool:
    found = row.overhead
    return found is not None and found.low is not None and row.verdict is not None


def read_overhead(row: Row) -> tuple[float, float, float]:
    """Return overhead, low and high, as shares."""
    found = row.overhead
    assert found is not None and found.value is not None
    assert found.low is not None and found.high is not None
    return found.value, found.low, found.high


def select_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows to draw: main figures first, then the others, the largest overheads first."""
    ranked = sorted(rows, key=lambda row: (not row.metric.is_primary, -abs(read_overhead(row)[0])))
    return ranked[:MAX_ROWS]


def plot_forest(summary: Summary, every: list[Row], narrow: bool) -> Drawing:
    rows = select_rows(every)
    panels = {
        better: build_lines(summary, mine)
        for better in PANELS
        if (mine := [row for row in rows if row.metric.better == better])
    }
    each = 0.34 if narrow else 0.21
    heights = [each * len(lines) + 0.75 for lines in panels.values()]
    figure = drawing.new_figure(sum(heights) + 0.45)
    if narrow:
        figure.set_figwidth(drawing.NARROW_IN)
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": heights})[
        :, 0
    ]
    for axes, (better, lines) in zip(grid, panels.items(), strict=True):
        draw_panel(axes, lines, better, narrow)
    draw_legend(figure, rows, 1 if narrow else 3)
    title = f"{summary.data.meta.study}: overheads against the baseline"
    label_fitting.set_title(
        figure, label_fitting.shorten_name(title, NARROW_LETTERS if narrow else 84)
    )
    return Drawing(
        name=drawing.make_slug("overheads", *(("narrow",) if narrow else ())),
        title="Overheads against the baseline",
        caption=format_caption(rows, every, has_stolen_time(summary)),
        figure=figure,
        columns=COLUMNS,
        rows=[data_row(row) for row in every],
        page_only=narrow,
    )


def build_lines(summary: Summary, rows: Sequence[Row]) -> list[Line]:
    """Return sorted lines under a heading per condition, or per variant if those are fewer."""
    conditions, variants = ({of(row) for row in rows} for of in (format_label, format_variant))
    head, tail = (format_label, format_variant)
    if len(conditions) > len(variants):
        head, tail = format_variant, format_label
    groups: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (not row.metric.is_primary, -read_overhead(row)[0])):
        groups.setdefault(head(row), []).append(row)
    has_one = len({tail(row) for row in rows}) == 1 and len(groups) > 1
    lines = []
    for name, members in groups.items():
        lines.append(Line(name))
        lines += [
            Line(row.metric.name if has_one else f"{tail(row)} · {row.metric.name}", row)
            for row in members
        ]
    return lines


def format_label(row: Row) -> str:
    """Return the condition; in a long one only numbers keep their factors: `virtual, threads=2`."""
    label = row.group.label or "all runs"
    if len(label) <= LONG_LABEL or not row.group.levels:
        return label
    return ", ".join(
        f"{name}={level}" if NUMBER.fullmatch(level) else level
        for name, level in row.group.levels.items()
    )


def format_variant(row: Row) -> str:
    return row.group.variant


def draw_panel(axes: Axes, lines: Sequence[Line], better: str | None, narrow: bool) -> None:
    """Draw intervals below each other; names are next to them, or above on a narrow page."""
    low, high = find_span([line.row for line in lines if line.row])
    axes.set_xlim(100 * low, 100 * high)
    axes.set_ylim(len(lines) - 0.4, -0.8)
    axes.axvline(0, color="#000000", linewidth=0.9)
    margin = next((line.row.margin for line in lines if line.row), None)
    if margin is not None:
        axes.axvspan(-100 * margin, 100 * margin, color=BAND, alpha=0.13, linewidth=0)
    for y, line in enumerate(lines):
        if line.row is not None:
            draw_interval(axes, y, line.row, (low, high))
    write_names(axes, lines, narrow)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    title, left, right = PANELS[better]
    axes.set_xlabel(f"{left} · overhead (%){'' if narrow else f', {title}'} · {right}")


def find_span(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the ends of the axis, as shares: all overheads, and what intervals need."""
    found = [read_overhead(row) for row in rows]
    reach = max(FARTHEST * max(abs(v) for v, _, _ in found), LEAST)
    low = max(min(min(low for _, low, _ in found), 0.0), -reach)
    high = min(max(max(high for _, _, high in found), 0.0), reach)
    if low == high:  # all overheads are exactly 0
        low, high = -reach, reach
    room = 0.06 * (high - low)
    return min(low, -LEAST * (high - low)) - room, max(high, LEAST * (high - low)) + room


def draw_interval(axes: Axes, y: int, row: Row, ends: tuple[float, float]) -> None:
    """Draw an interval with its overhead, and arrows if it extends beyond the axis."""
    middle, low, high = (100 * v for v in read_overhead(row))
    assert row.verdict is not None
    colour, marker, filled = LOOKS[row.verdict.direction]
    left, right = (100 * end for end in ends)
    axes.plot([max(low, left), min(high, right)], [y, y], color=colour, linewidth=1.6)
    for end, limit, arrow in ((low, left, "<"), (high, right, ">")):
        if (end < limit) if arrow == "<" else (end > limit):
            axes.plot([limit], [y], marker=arrow, color=colour, markersize=6, clip_on=False)
        else:
            axes.plot([end], [y], marker="|", color=colour, markersize=5)
    axes.plot(
        [middle], [y], marker=marker, markersize=6 if row.metric.is_primary else 4.5,
        color=colour, markerfacecolor=colour if filled else "#ffffff", linestyle="",
    )  # fmt: skip


def write_names(axes: Axes, lines: Sequence[Line], narrow: bool) -> None:
    """Write headings in bold, and rows with their overhead and interval."""
    axes.set_yticks([])
    most = count_name_letters(lines) if narrow else LETTERS
    short = label_fitting.shorten_names(list(dict.fromkeys(line.name for line in lines)), most)
    for y, line in enumerate(lines):
        name, text = short[line.name], format_overhead(line.row) if line.row else ""
        weight = "normal" if line.row else "bold"
        if narrow:
            both = f"{name}: {text}" if text else name
            axes.annotate(
                both, (0, y), (0, 5 if text else -3), xycoords=("axes fraction", "data"),
                textcoords="offset points", fontsize=8, weight=weight, annotation_clip=False,
                bbox={"facecolor": "#ffffff", "edgecolor": "none", "pad": 0.5},
            )  # fmt: skip
            continue
        axes.annotate(
            name, (0, y), (-8 if text else -14, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", ha="right", va="center", fontsize=8.5, weight=weight,
            annotation_clip=False,
        )  # fmt: skip
        axes.annotate(
            text, (1, y), (8, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center", fontsize=8.5, annotation_clip=False,
        )  # fmt: skip


def count_name_letters(lines: Sequence[Line]) -> int:
    """Return the letters of a name on a narrow page, where its overhead follows it."""
    longest = max((len(format_overhead(line.row)) + 2 for line in lines if line.row), default=0)
    return max(LEAST_NAME, min(NARROW_LETTERS, NARROW_LINE - longest))


def format_overhead(row: Row) -> str:
    """Format `+12 % (9 … 15)`, in the axis' unit, however large it is."""
    middle, low, high = read_overhead(row)
    sign = "+" if middle > 0 else ""
    text = f"{sign}{format_percent(middle, low, high)} %"
    return text if low == high else f"{text} ({format_percent_range(low, high)})"


def draw_legend(figure: Figure, rows: Sequence[Row], columns: int) -> None:
    """Draw the legend of the colors, markers and the band that occur."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    found = {row.verdict.direction for row in rows if row.verdict}
    handles: list[Line2D | Patch] = [
        Line2D(
            [], [], color=colour, marker=marker, markersize=6, linewidth=1.6,
            markerfacecolor=colour if filled else "#ffffff", label=direction.value,
        )
        for direction, (colour, marker, filled) in LOOKS.items()
        if direction in found
    ]  # fmt: skip
    margin = next((row.margin for row in rows if row.margin is not None), None)
    if margin is not None:
        handles.append(Patch(color=BAND, alpha=0.2, label=f"within ± {100 * margin:g} %"))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=columns, title="line: 95 % interval",
        title_fontsize=8.5,
    )  # fmt: skip


def format_caption(rows: Sequence[Row], every: Sequence[Row], stolen: bool) -> str:
    remark = " CPU seconds are left out: see SY32 among the findings." if stolen else ""
    if len(rows) < len(every):
        remark += (
            f" Shown are {len(rows)} of {len(every)} overheads: main figures first, then the largest; "
            "the figure's CSV has all."
        )
    return (
        f"Overhead against the baseline with its 95 % interval ({format_n(rows, 'condition')}), "
        "the benchmarks' main figures first, then the largest; an arrow means that "
        "the interval goes on. Large markers are the benchmarks' main figures, small ones what every "
        f"run has.{remark}"
    )


def data_row(row: Row) -> tuple[object, ...]:
    group, metric, found = row.group, row.metric, row.overhead
    assert found is not None and row.verdict is not None
    return (
        group.variant, group.label, group.baseline_label, metric.name, metric.unit, metric.better,
        *read_overhead(row), found.n_condition, found.n_baseline, row.verdict.direction.value,
    )  # fmt: skip
