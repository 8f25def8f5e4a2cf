"""The shape of the papers' own figures: printed beside ours, where they print numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import COLOURS, HATCHES, Drawing
from steelyard.analysis.figures.iterations import Level, draw_panel, label_averages, legend
from steelyard.analysis.figures.stack import LEGIBLE
from steelyard.analysis.published.facts import Known, fits
from steelyard.analysis.published.measurements import Series, read_preset
from steelyard.analysis.published.printed import Beside
from steelyard.analysis.report.figures import Draw
from steelyard.analysis.stats.readable import scale, unit_text
from steelyard.analysis.summary.opening import opened
from steelyard.analysis.summary.summary import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# --- Ruiz: stacked shares of computing, communication and MPI_Init --------------------------------

PARTS = {"cpu": "computation", "comm": "communication", "init": "initialization"}
SHARE_COLUMNS = ("configuration", "benchmark", "our_runs", "part", "printed_percent",
                 "ours_percent", "low", "high", "n", "not_as_printed")  # fmt: skip
Bar = tuple[str, str, str]  # configuration, benchmark, the condition of ours


def ruiz_draws(known: Known, values: Sequence[Beside]) -> Iterator[Draw]:
    """Table 1 as bars."""
    del known
    yield partial(draw_shares, values)


def draw_shares(values: Sequence[Beside]) -> Drawing | None:
    """Printed shares at the left, ours at the right; None without any of ours."""
    bars: dict[Bar, dict[str, Beside]] = {}
    for one in values:
        if one.value.column == "share_percent" and one.row is not None:
            configuration, part, benchmark = one.value.place
            label = f"{one.row.group.variant} {one.row.group.label}"
            bars.setdefault((configuration, benchmark, label), {})[part] = one
    if not bars:
        return None
    with drawing.style():
        return shares_figure(bars)


def shares_figure(bars: dict[Bar, dict[str, Beside]]) -> Drawing:
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
            f"{sizes_words([one for bar in bars.values() for one in bar.values()])}"
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


def bar_names(bars: dict[Bar, dict[str, Beside]]) -> Iterator[str]:
    """`CG.B  container`; with what is not as printed where several of ours stand beside one."""
    times = Counter((configuration, benchmark) for configuration, benchmark, _ in bars)
    for (configuration, benchmark, _), bar in bars.items():
        words = f"{benchmark}  {configuration}"
        remark = next(iter(bar.values())).remark
        several = times[configuration, benchmark] > 1 and remark
        yield f"{words}\n{remark}" if several else words


def sizes_words(found: Sequence[Beside]) -> str:
    """Which sizes are not the paper's."""
    remarks = list(dict.fromkeys(one.remark for one in found if one.remark))
    return f"Not as printed: {'; '.join(remarks[:3])}. " if remarks else ""


def draw_stacks(axes: Axes, bars: Sequence[dict[str, float]]) -> None:
    """A bar each, its parts behind each other."""
    start = [0.0] * len(bars)
    for number, (part, name) in enumerate(PARTS.items()):
        widths = [bar.get(part, 0.0) for bar in bars]
        axes.barh(
            range(len(bars)), widths, 0.66, left=start, color=COLOURS[number], alpha=0.6,
            hatch=HATCHES[number], edgecolor="#333333", linewidth=0.6, label=name,
        )  # fmt: skip
        for place, (begin, width) in enumerate(zip(start, widths, strict=True)):
            if width >= LEGIBLE:
                axes.text(
                    begin + width / 2, place, f"{width:.0f}", ha="center", va="center", fontsize=7.5,
                    bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85},
                )  # fmt: skip
        start = [a + b for a, b in zip(start, widths, strict=True)]
    axes.set_xlim(0, 101)
    axes.grid(visible=False, axis="y")


# --- Jungels: every run, physical against virtual -------------------------------------------------

RUN_COLUMNS = ("benchmark", "whose", "node_type", "number", "value", "unit")
NODE_TYPES = ("physical", "virtual")


def jungels_draws(known: Known, values: Sequence[Beside]) -> Iterator[Draw]:
    """A figure for each printed series that the study has a counterpart of, and each counterpart."""
    groups: dict[tuple[str, ...], dict[str, list[Beside]]] = {}
    for one in values:
        if one.row is not None:
            mine = groups.setdefault(one.value.place[:-1], {})  # all but the node type
            mine.setdefault(our_side(known, one.row), []).append(one)
    for name, by_side in groups.items():
        for side, found in by_side.items():
            yield partial(draw_runs, name, side if len(by_side) > 1 else "", found)


def our_side(known: Known, row: Row) -> str:
    """What a row is but for its node type: rows that are alike in it stand beside each other."""
    levels = (f"{k}={v}" for k, v in row.group.condition.items() if k != "node_type")
    return known.in_words(known.home(row), " ".join((row.group.variant, *levels)))


def draw_runs(name: tuple[str, ...], side: str, found: Sequence[Beside]) -> Drawing:
    """The printed iterations at the left, our runs at the right; `side`: which of ours, if several."""
    printed = printed_levels(name)
    rows = {one.value.place[-1]: one.row for one in found}
    ours = [
        Level(
            kind,
            place,
            row.interval.mean if (row := rows.get(kind)) and row.interval else None,
            [(0, row.values)] if row else [],
        )
        for place, kind in enumerate(NODE_TYPES)
    ]
    first = found[0].row
    assert first is not None
    words = " ".join(name)
    unit = unit_text(first.metric.unit)
    with drawing.style():
        figure = drawing.new_figure(2.8)
        left, right = figure.subplots(1, 2)
        for axes, levels, title in ((left, printed, "as printed"), (right, ours, "this study")):
            draw_panel(axes, levels, "not measured")
            axes.set_title(title)
            axes.set_xlabel("run")
            axes.margins(y=0.15)
            label_averages(axes, levels)
        left.set_ylabel(f"{words} ({unit})")
        figure.legend(handles=list(legend(ours, ())), loc="outside lower center", ncols=2)
    return Drawing(
        name=drawing.slug("jungels2012", *name, *([side] if side else [])),
        title=f"{words}: every run, physical and virtual nodes, printed and here"
        + (f" ({side})" if side else ""),
        caption=(
            f"Every run in the order in which it ran; black lines and numbers are means. At the left the "
            f"thesis' iterations (of all nodes), at the right this study's runs. {sizes_words(found)}"
            "The axes have scales of their own and need not start at 0."
        ),
        figure=figure,
        columns=RUN_COLUMNS,
        rows=[*run_rows(words, "printed", printed, unit), *run_rows(words, "ours", ours, unit)],
    )


def printed_levels(name: tuple[str, ...]) -> list[Level]:
    """The thesis' own iterations."""
    series = [one for one in read_preset("jungels2012").series if is_of(one, name)]
    found = []
    for place, kind in enumerate(NODE_TYPES):
        here = [one for one in series if one.condition["node_type"] == kind]
        values = [value for one in here for value in one.values]
        mean = sum(values) / len(values) if values else None
        found.append(Level(kind, place, mean, [(one.node_index - 1, one.values) for one in here]))
    return found


def is_of(one: Series, name: tuple[str, ...]) -> bool:
    """Whether a printed series is of this row of the tables."""
    if len(name) == 1:
        variant = "hpl" if name[0] == "XHPL" else f"npb kernel={name[0]} class=B"
        return one.variant == variant and one.metric.name == "total"
    test, filesystem, at_once = name
    condition = {"filesystem": filesystem, "concurrent_nodes": int(at_once)}
    return one.variant.endswith(f"test={test}") and fits(one.condition, condition)


def run_rows(
    words: str, whose: str, levels: Sequence[Level], unit: str
) -> Iterator[tuple[object, ...]]:
    for level in levels:
        for _, values in level.lines:
            for number, value in enumerate(values, start=1):
                yield (words, whose, level.name, number, value, unit)


# --- Bourilkov: rates in turn, stacked, beside those at once --------------------------------------

STACK_COLUMNS = ("variant", "condition", "client", "runs", "mean_rate", "unit")
RATES = ("received_bits_per_s", "read", "bytes_per_s")
Stack = list[tuple[str, int, float]]  # client, runs, mean


def bourilkov_draws(known: Known, values: Sequence[Beside]) -> Iterator[Draw]:
    """The clients of each condition on each other."""
    del values
    for metric in RATES:
        rows: dict[str, list[Row]] = {}
        for row in known.rows.get(metric, []):
            rows.setdefault(known.in_words(known.home(row), row.group.variant), []).append(row)
        for name, members in rows.items():
            if len({known.of_row(row).get("mode") for row in members}) > 1:
                yield partial(draw_stacked, known, name, members)


def draw_stacked(known: Known, name: str, rows: Sequence[Row]) -> Drawing | None:
    """A bar a condition of what is called `name`; None where no clients can be told apart."""
    stacks = [(row, stack) for row in rows if (stack := clients_of(known, row))]
    if not stacks:
        return None
    first = rows[0]
    factor, unit = scale(max(sum(m for _, _, m in s) for _, s in stacks), first.metric.unit)
    with drawing.style():
        figure = drawing.new_figure(1.2 + 0.4 * len(stacks))
        axes = figure.add_subplot()
        for place, (_, stack) in enumerate(stacks):
            draw_stacked_bar(axes, place, [mean / factor for _, _, mean in stack])
        axes.set_yticks(range(len(stacks)), [row.group.label for row, _ in stacks])
        axes.set_ylim(len(stacks) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{first.metric.name} ({unit})\nof the clients, stacked")
        axes.set_title(name, loc="left")
    return Drawing(
        name=drawing.slug("bourilkov2012", name, first.metric.name),
        title=f"{name}: rates in turn, stacked, beside those at once",
        caption=(
            "Mean rate of each client, stacked: in turn (mode sequential) and all at once (parallel). "
            "Bars of one length mean that the clients do not hinder each other. The table of claims has "
            "the interval of their ratio."
        ),
        figure=figure,
        columns=STACK_COLUMNS,
        rows=[
            (row.group.variant, row.group.label, client, runs, mean, row.metric.unit)
            for row, stack in stacks
            for client, runs, mean in stack
        ],
    )


def draw_stacked_bar(axes: Axes, place: int, widths: Sequence[float]) -> None:
    """Clients in turns of colour."""
    start = 0.0
    for number, width in enumerate(widths):
        axes.barh(
            place, width, 0.62, left=start, color=COLOURS[number % len(COLOURS)], alpha=0.6,
            hatch=HATCHES[number % len(HATCHES)], edgecolor="#333333", linewidth=0.6,
        )  # fmt: skip
        start += width
    axes.annotate(f"{start:.4g}", (start, place), (5, 0), textcoords="offset points", va="center",
                  fontsize=8.5)  # fmt: skip


def clients_of(known: Known, row: Row) -> Stack:
    """Each client's mean over the runs; of iperf3 an iteration is a client."""
    which = "s.iteration" if row.group.runs[0].benchmark == "iperf3" else "s.client"
    with opened(known.home(row).data.folder) as connection:
        lines = connection.execute(
            f"""
            SELECT {which} AS who, count(DISTINCT s.run_id), avg(s.value)
            FROM results AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
            WHERE s.metric = ? AND s.run_id IN (SELECT unnest(?)) AND isfinite(s.value)
            GROUP BY who ORDER BY who
            """,
            [row.metric.name, list(row.run_ids)],
        ).fetchall()
    return [(f"client {who}", runs, mean) for who, runs, mean in lines]
