"""Builds the report's table of slopes."""

from __future__ import annotations

from steelyard.analysis.report.links import variant_anchors
from steelyard.analysis.report.tables import Table, format_p
from steelyard.analysis.stats.number_format import (
    MISSING,
    choose_prefix,
    count_decimals,
    format_level_number,
    format_number,
)
from steelyard.analysis.stats.slope import Line, Slope
from steelyard.analysis.summary.slopes import FactorLine, fit_factor_lines
from steelyard.analysis.summary.summary import Summary, is_common

HEADINGS = ("Variant", "Metric", "Other factors", "Slope (95 % interval)", "In words", "Break", "n")


def build_slope_table(summary: Summary) -> Table | None:
    """Return the main figures over numeric factors; None without such a factor."""
    main = {(row.group.variant, row.metric.name) for row in summary.rows if row.metric.is_primary}
    lines = [
        line
        for line in fit_factor_lines(summary)
        if (line.variant, line.metric) in main or is_common(line.variant, line.metric)
    ]
    if not lines:
        return None
    anchors = variant_anchors(summary)
    rows = [table_row(line) for line in lines]
    return Table(HEADINGS, rows, [anchors[line.variant] for line in lines])


def table_row(line: FactorLine) -> tuple[str, ...]:
    slope = line.line.slope
    return (
        line.variant,
        line.metric,
        line.others or MISSING,
        format_slope(line),
        format_judgement(line),
        describe_break(line),
        f"{slope.n} over {slope.levels} levels{format_blocks(slope)}",
    )


def format_blocks(slope: Slope) -> str:
    """Return `, by 10 blocks`, `, by 19 of 20 blocks`; empty if the line uses all values."""
    if slope.blocks is None:
        return ""
    of = "" if slope.blocks == slope.all_blocks else f"of {slope.all_blocks} "
    return f", by {slope.blocks} {of}blocks"


def format_slope(line: FactorLine) -> str:
    """Return `12.1 ms (11.3 … 12.9) per ms of delay`."""
    slope = line.line.slope
    if slope.low is None or slope.high is None:
        return MISSING
    factor, unit = choose_prefix(max(abs(slope.low), abs(slope.high)), line.unit)
    places = count_decimals(slope.value / factor, (slope.high - slope.low) / 2 / factor)
    value, low, high = (
        format_number(v, factor, places) for v in (slope.value, slope.low, slope.high)
    )
    name = "" if unit == "1" else f" {unit}"
    return f"{value}{name} ({low} … {high}) per {line.factor_unit}"


def format_judgement(line: FactorLine) -> str:
    """Describe whether a line rises or falls.

    It never states that there is no slope: the interval shows how steep it may be.
    """
    slope = line.line.slope
    if line.is_significant:
        return "rises" if slope.value > 0 else "falls"
    if slope.reason is not None:
        return f"cannot be judged: {slope.reason}"
    among = f" (among all lines p = {line.p:.2g})" if slope.excludes_zero else ""
    return f"not shown to rise or fall{among}"


def describe_break(line: FactorLine) -> str:
    """Return `at 50: 10 ms before it, 90 ms after it`; the overall slope then covers two lines."""
    found: Line = line.line
    if found.break_point is None:
        return "none shown"
    factor, unit = choose_prefix(
        max(abs(found.break_point.before), abs(found.break_point.behind)), line.unit
    )
    before, behind = (
        f"{v / factor:.3g}" for v in (found.break_point.before, found.break_point.behind)
    )
    name = "" if unit == "1" else f" {unit}"
    position = format_level_number(found.break_point.position)
    text = f"at {position}: {before}{name} before it, {behind}{name} after it"
    p = format_p(found.break_point.p)
    return f"{text} (p {p if p[0] == '<' else f'= {p}'})".replace("-", "−")
