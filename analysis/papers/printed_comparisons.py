"""Compares the numbers that a paper prints with the study's own values and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.analysis.papers.claim_files import PrintedValue
from steelyard.analysis.papers.conditions import (
    Studies,
    describe_missing_runs,
    describe_other_sizes,
    has_facts,
)
from steelyard.analysis.report.tables import Table
from steelyard.analysis.stats.number_format import MISSING, count_decimals, format_number
from steelyard.analysis.summary.rows import Row

HEADINGS = (
    "Where", "What", "Printed", "Ours (95 % interval)", "n", "Ours / printed", "Not as printed", "Our runs",
)  # fmt: skip
NOT_RUN = "the paper: cannot be executed"


@dataclass(frozen=True, slots=True)
class PrintedComparison:
    """A printed number and the study's row that measures the same; None if no row does."""

    value: PrintedValue
    row: Row | None
    remark: str  # sizes that differ from the paper's; without a row: what is missing

    @property
    def ours(self) -> tuple[float | None, float | None, float | None]:
        """The study's (mean, low, high) in the paper's unit."""
        interval = self.row and self.row.interval
        if not interval:
            return None, None, None
        scale = self.value.scale
        low, high = (None if v is None else v * scale for v in (interval.low, interval.high))
        return interval.mean * scale, low, high


def compare_values(studies: Studies, values: Sequence[PrintedValue]) -> list[PrintedComparison]:
    """Return a comparison for each printed number and each row that measures the same."""
    return [found for value in values for found in compare_value(studies, value)]


def compare_value(studies: Studies, value: PrintedValue) -> list[PrintedComparison]:
    """Compare one number, only with rows of the paper's own sizes if the study has any."""
    rows = [
        r
        for r in studies.rows.get(value.metric, [])
        if has_facts(studies.find_facts(r), value.facts)
    ]
    if not rows:
        missing = describe_missing_runs(studies, [value.facts]) or f"no values of {value.metric}"
        return [PrintedComparison(value, None, missing)]
    exact = [row for row in rows if has_facts(studies.find_facts(row), value.size)]
    return [
        PrintedComparison(
            value, row, ", ".join(describe_other_sizes(studies.find_facts(row), value.size))
        )
        for row in exact or rows
    ]


def group_by_table(found: Sequence[PrintedComparison]) -> dict[str, list[PrintedComparison]]:
    """Return the numbers by the title of their table."""
    tables: dict[str, list[PrintedComparison]] = {}
    for one in found:
        tables.setdefault(one.value.table, []).append(one)
    return tables


def build_printed_tables(found: Sequence[PrintedComparison]) -> list[tuple[str, Table]]:
    """Return a table for each of the paper's tables, as far as the study has values for it."""
    tables = {
        title: [format_cells(one) for one in members if one.row is not None]
        for title, members in group_by_table(found).items()
    }
    return [(title, Table(HEADINGS, rows)) for title, rows in tables.items() if rows]


def describe_unmeasured(found: Sequence[PrintedComparison]) -> list[str]:
    """Return a sentence for each table with numbers that the study has no value for, and why."""
    sentences = []
    for title, members in group_by_table(found).items():
        absent = [one for one in members if one.row is None]
        if absent:
            reasons = list(dict.fromkeys(one.remark for one in absent))
            more = f" and {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
            files = ", ".join(dict.fromkeys(f"{one.value.study}.toml" for one in absent))
            sentences.append(
                f"{title}: {len(absent)} of {len(members)} numbers have nothing beside them: "
                f"{'; '.join(reasons[:3])}{more}. To ask for them: {files}."
            )
    return sentences


def format_cells(one: PrintedComparison) -> tuple[str, ...]:
    """Return the cells of one number: place, column, both values, their ratio, and the
    condition.
    """
    value, (mean, low, high) = one.value, one.ours
    assert one.row is not None
    printed = NOT_RUN if value.printed is None else f"{value.printed:g} {value.unit}"
    return (
        " · ".join(value.place),
        value.column.replace("_", " "),
        printed,
        format_measured(mean, low, high, value.unit),
        one.row.format_n,
        format_ratio(mean, value.printed),
        one.remark,
        one.row.group.label,
    )


def format_measured(mean: float | None, low: float | None, high: float | None, unit: str) -> str:
    """Format `71.2 (70.1 … 72.3) %`."""
    if mean is None:
        return MISSING
    half = None if low is None or high is None else (high - low) / 2
    places = count_decimals(mean, half)
    ends = (
        ""
        if half is None
        else f" ({format_number(low, 1, places)} … {format_number(high, 1, places)})"
    )
    return f"{format_number(mean, 1, places)}{ends} {unit}"


def format_ratio(mean: float | None, printed: float | None) -> str:
    """Format `0.93`."""
    return MISSING if mean is None or not printed else f"{mean / printed:.3g}"


def describe_sizes(found: Sequence[PrintedComparison]) -> str:
    """Describe the sizes that differ from the paper's."""
    remarks = list(dict.fromkeys(one.remark for one in found if one.remark))
    return f"Not as printed: {'; '.join(remarks[:3])}. " if remarks else ""


def value_document(one: PrintedComparison) -> dict[str, Any]:
    """Return a comparison as JSON."""
    mean, low, high = one.ours
    value, row = one.value, one.row
    return {
        "table": value.table,
        "place": list(value.place),
        "column": value.column,
        "unit": value.unit,
        "printed": value.printed,
        "variant": row and row.group.variant,
        "condition": row and row.group.label,
        "metric": value.metric,
        "mean": mean,
        "low": low,
        "high": high,
        "n": row.n if row else 0,
        "remark": one.remark,
    }
