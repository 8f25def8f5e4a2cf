"""Figures like Kommeri's: power and traffic over time, run time and energy over delay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from steelyard.analysis.figures import drawing
from steelyard.analysis.figures.drawing import COLOURS, DASHES, MARKERS, Drawing
from steelyard.analysis.figures.time_series import draw_times
from steelyard.analysis.papers.conditions import DELAY, Studies, format_fact_value
from steelyard.analysis.papers.printed_comparisons import PrintedComparison
from steelyard.analysis.report.figures import Draw
from steelyard.analysis.stats.number_format import choose_prefix
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DELAY_COLUMNS = ("metric", "others", "round_trip_ms", "n", "mean", "low", "high", "unit")
ENERGY = ("energy_j", "energy_low_j")


def draws(studies: Studies, values: Sequence[PrintedComparison]) -> Iterator[Draw]:
    """Yield figures 1, 2 and 3."""
    del values
    for summary in studies.summaries:
        mine = [
            row for row in studies.rows.get("seconds", []) if studies.find_study(row) is summary
        ]
        for variant in dict.fromkeys(row.group.variant for row in mine):
            yield partial(draw_over_time, studies, summary, variant)
    yield partial(draw_over_delay, studies)


def draw_over_time(studies: Studies, summary: Summary, variant: str) -> Drawing | None:
    """Draw power and traffic in one figure; None if no run has samples."""
    found = dict(draw_times(summary, [variant])).get(variant)
    if found is None:
        return None
    label = studies.add_study_name(summary, variant)
    return replace(
        found,
        name=drawing.make_slug("kommeri2016-time", label),
        title=f"Figure 1 of Kommeri et al.: power and traffic over time, here ({label})",
        caption=f"Theirs moves in cycles, power and traffic together, and a short constant peak "
        f"uses all of the bandwidth; it is printed as a figure only. Here: {found.caption}",
    )


def draw_over_delay(studies: Studies) -> Drawing | None:
    """Draw run time at the left, joules at the right; None with fewer than two measured delays."""
    times = delay_series(studies, "seconds")
    if not times:
        return None
    energy = next((s for name in ENERGY if (s := delay_series(studies, name))), {})
    with drawing.use_style():
        figure = drawing.new_figure(3.4)
        left, right = figure.subplots(1, 2)
        draw_delay_lines(left, times, "run time")
        draw_delay_lines(right, energy, "energy")
        if not energy:
            right.text(0.5, 0.5, "no energy was measured", transform=right.transAxes, ha="center",
                       style="italic")  # fmt: skip
        handles, labels = left.get_legend_handles_labels()
        if len(labels) > 1:
            figure.legend(handles, labels, loc="outside lower center", ncols=2)
    rows = [cells for series in (times, energy) for cells in delay_rows(series)]
    return Drawing(
        name="kommeri2016-delay",
        title="Figures 2 and 3 of Kommeri et al.: run time and energy over delay, here",
        caption=(
            "Mean run time and energy over the round trip that the network conditions add, with 95 % "
            "intervals. The paper's own values are printed as figures only."
        ),
        figure=figure,
        columns=DELAY_COLUMNS,
        rows=rows,
    )


Line = list[tuple[float, Row]]


def delay_series(studies: Studies, metric: str) -> dict[str, Line]:
    """Return rows over the round-trip time by other facts; only lines of two or more delays."""
    rows = [row for row in studies.rows.get(metric, []) if has_delay(studies, row)]
    several = len({row.group.variant for row in rows}) > 1
    found: dict[str, Line] = {}
    for row in rows:
        label = format_other_facts(studies, row)
        if several:
            label = f"{row.group.variant} {label}".strip()
        name = studies.add_study_name(studies.find_study(row), label)
        found.setdefault(name, []).append((studies.find_facts(row)[DELAY], row))
    return {
        name: sorted(line, key=lambda pair: pair[0])
        for name, line in found.items()
        if len({delay for delay, _ in line}) > 1
    }


def has_delay(studies: Studies, row: Row) -> bool:
    """Return whether a row is of an analysis with a delay and an interval."""
    facts = studies.find_facts(row)
    return DELAY in facts and facts.get("mode") != "xrdcp" and row.interval is not None


NETWORK_NAMES = ("rate_mbit", "loss_percent", "duplicate_percent", "corrupt_percent", "rto_min_ms")


def format_other_facts(studies: Studies, row: Row) -> str:
    """Return `rate_mbit=100, clients=2`: all facts of a condition except the delay."""
    facts = studies.find_facts(row)
    names = [n for n in row.group.condition if n != "network"] + [
        n for n in NETWORK_NAMES if n in facts
    ]
    if "clients" in facts and "clients" not in names:
        names.append("clients")
    return ", ".join(f"{name}={format_fact_value(facts[name])}" for name in names)


def draw_delay_lines(axes: Axes, series: dict[str, Line], label: str) -> None:
    """Draw each series as a line with its intervals."""
    rows = [row for line in series.values() for _, row in line]
    factor, unit = choose_prefix(max((row.maximum or 0.0 for row in rows), default=None),
                         rows[0].metric.unit if rows else "J")  # fmt: skip
    for number, (name, line) in enumerate(series.items()):
        places = [delay for delay, _ in line]
        means = [row.interval.mean / factor for _, row in line if row.interval]
        reach = [
            ((row.interval.half_width or 0.0) / factor if row.interval else 0.0) for _, row in line
        ]
        axes.errorbar(
            places, means, yerr=reach, color=COLOURS[number % len(COLOURS)], capsize=3,
            linestyle=DASHES[number % len(DASHES)], marker=MARKERS[number % len(MARKERS)],
            markersize=4.5, linewidth=1.3, label=name or "all runs",
        )  # fmt: skip
    axes.set_xlabel("round trip added (ms)")
    axes.set_ylabel(f"{label} ({unit})")
    axes.set_ylim(bottom=0)


def delay_rows(series: dict[str, Line]) -> Iterator[tuple[object, ...]]:
    for name, line in series.items():
        for delay, row in line:
            ends = row.interval and (row.interval.mean, row.interval.low, row.interval.high)
            yield (row.metric.name, name, delay, row.n, *(ends or (None,) * 3), row.metric.unit)
