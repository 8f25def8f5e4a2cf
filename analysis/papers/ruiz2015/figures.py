"""Table 1 as bars: shares of computation, communication and MPI_Init, as printed and of a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import Drawing
from steelyard.analysis.figures.mpi_time_shares import draw_component
from steelyard.analysis.papers.conditions import Studies
from steelyard.analysis.papers.printed_comparisons import PrintedComparison, describe_sizes
from steelyard.analysis.report.figures import Draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PARTS = {"cpu": "computation", "comm": "communication", "init": "initialization"}
SHARE_COLUMNS = ("configuration", "benchmark", "our_runs", "part", "printed_percent",
                 "ours_percent", "low", "high", "n", "not_as_printed")  # fmt: skip
Bar = tuple[str, str, str]  # configuration, benchmark, our condition


def draws(studies: Studies, values: Sequence[PrintedComparison]) -> Iterator[Draw]:
    """Yield table 1 as bars."""
    del studies
    yield partial(draw_shares, values)


def draw_shares(values: Sequence[PrintedComparison]) -> Drawing | None:
    """Draw printed shares at the left, ours at the right; None without any of ours."""
    bars: dict[Bar, dict[str, PrintedComparison]] = {}
    for one in values:
        if one.value.column == "share_percent" and one.row is not None:
            configuration, part, benchmark = one.value.place
            label = f"{one.row.group.variant} {one.row.group.label}"
            bars.setdefault((configuration, benchmark, label), {})[part] = one
    if not bars:
        return None
    with drawing.use_style():
        return shares_figure(bars)


def shares_figure(bars: dict[Bar, dict[str, PrintedComparison]]) -> Drawing:
    figure = drawing.new_figure(1.1 + 0.3 * len(bars))
    left, right = figure.subplots(1, 2, sharey=True)
    printed = {
        key: {p: one.value.printed or 0.0 for p, one in bar.items()} for key, bar in bars.items()
    }
    ours = {key: {p: one.ours[0] or 0.0 for p, one in bar.items()} for key, bar in bars.items()}
    for axes, shares, title in ((left, printed, "as printed"), (right, ours, "this study")):
        draw_stacks(axes, list(shares.values()))
        axes.set_title(title)
        axes.set_xlabel("share of the time (%)")
    left.set_yticks(range(len(bars)), list(bar_names(bars)))
    left.set_ylim(len(bars) - 0.4, -0.6)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(PARTS))
    return Drawing(
        name="ruiz2015-table-1",
        title="Table 1 of Ruiz et al.: where the time goes, printed and here",
        caption=(
            "Mean shares of the program's time that its processes computed, communicated, and were in "
            "MPI_Init: at the left as table 1 prints them (16 processes), at the right in this study. "
            f"{describe_sizes([one for bar in bars.values() for one in bar.values()])}"
            "The table below has the intervals, and the milliseconds."
        ),
        figure=figure,
        columns=SHARE_COLUMNS,
        rows=[
            (*key, part, one.value.printed, *one.ours, one.row.n if one.row else 0, one.remark)
            for key, bar in bars.items()
            for part, one in bar.items()
        ],
    )


def bar_names(bars: dict[Bar, dict[str, PrintedComparison]]) -> Iterator[str]:
    """Yield `CG.B  container`, with differences from the paper if several of ours match one."""
    times = Counter((configuration, benchmark) for configuration, benchmark, _ in bars)
    for (configuration, benchmark, _), bar in bars.items():
        label = f"{benchmark}  {configuration}"
        remark = next(iter(bar.values())).remark
        several = times[configuration, benchmark] > 1 and remark
        yield f"{label}\n{remark}" if several else label


def draw_stacks(axes: Axes, bars: Sequence[dict[str, float]]) -> None:
    """Draw a stacked bar for each."""
    start = [0.0] * len(bars)
    for number, (part, name) in enumerate(PARTS.items()):
        widths = [bar.get(part, 0.0) for bar in bars]
        start = draw_component(axes, widths, start, number, name, points=7.5)
    axes.set_xlim(0, 101)
    axes.grid(visible=False, axis="y")
