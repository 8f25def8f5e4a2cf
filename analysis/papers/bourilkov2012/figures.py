"""Figures of virtual clients of a file system: the rates of clients in turn, stacked, and at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import COLOURS, HATCHES, Drawing
from steelyard.analysis.papers.conditions import Studies
from steelyard.analysis.papers.printed_comparisons import PrintedComparison
from steelyard.analysis.report.figures import Draw
from steelyard.analysis.stats.number_format import choose_prefix
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.rows import Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STACK_COLUMNS = ("variant", "condition", "client", "runs", "mean_rate", "unit")
RATES = ("received_bits_per_s", "read", "bytes_per_s")
Stack = list[tuple[str, int, float]]  # client, runs, mean


def draws(studies: Studies, values: Sequence[PrintedComparison]) -> Iterator[Draw]:
    """Yield figures that stack the clients of each condition."""
    del values
    for metric in RATES:
        rows: dict[str, list[Row]] = {}
        for row in studies.rows.get(metric, []):
            rows.setdefault(
                studies.add_study_name(studies.find_study(row), row.group.variant), []
            ).append(row)
        for name, members in rows.items():
            if len({studies.find_facts(row).get("mode") for row in members}) > 1:
                yield partial(draw_stacked, studies, name, members)


def draw_stacked(studies: Studies, name: str, rows: Sequence[Row]) -> Drawing | None:
    """Draw a bar per condition under the title `name`; None without values of single clients."""
    stacks = [(row, stack) for row in rows if (stack := list_client_means(studies, row))]
    if not stacks:
        return None
    first = rows[0]
    factor, unit = choose_prefix(max(sum(m for _, _, m in s) for _, s in stacks), first.metric.unit)
    with drawing.use_style():
        figure = drawing.new_figure(1.2 + 0.4 * len(stacks))
        axes = figure.add_subplot()
        for y, (_, stack) in enumerate(stacks):
            draw_stacked_bar(axes, y, [mean / factor for _, _, mean in stack])
        axes.set_yticks(range(len(stacks)), [row.group.label for row, _ in stacks])
        axes.set_ylim(len(stacks) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{first.metric.name} ({unit})\nof the clients, stacked")
        axes.set_title(name, loc="left")
    return Drawing(
        name=drawing.make_slug("bourilkov2012", name, first.metric.name),
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


def draw_stacked_bar(axes: Axes, y: int, widths: Sequence[float]) -> None:
    """Draw the clients in alternating colors."""
    start = 0.0
    for number, width in enumerate(widths):
        axes.barh(
            y, width, 0.62, left=start, color=COLOURS[number % len(COLOURS)], alpha=0.6,
            hatch=HATCHES[number % len(HATCHES)], edgecolor="#333333", linewidth=0.6,
        )  # fmt: skip
        start += width
    axes.annotate(f"{start:.4g}", (start, y), (5, 0), textcoords="offset points", va="center",
                  fontsize=8.5)  # fmt: skip


def list_client_means(studies: Studies, row: Row) -> Stack:
    """Return each client's mean over the runs; in iperf3 an iteration is a client."""
    which = "s.iteration" if row.group.runs[0].benchmark == "iperf3" else "s.client"
    with open_database(studies.find_study(row).data.folder) as connection:
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
