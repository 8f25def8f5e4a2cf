"""Compares the numbers that a paper prints with the study's own values and intervals.

Some printed values are not in a study's summary, and are derived: round-trip times of the jobs' own
TCP (`tcp_rtt_*`), and a run's first iteration separate from its others (`NAME_first`,
`NAME_following`).
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
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
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.network import NodeNetwork, build_tcp_level
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.study_data import Metric
from steelyard.analysis.summary.summary import Summary, build_row

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
    """Return a number's cells: place, column, both values, their ratio, the condition."""
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


TCP: Mapping[str, str] = {  # by metric: a field of LevelTcp
    "tcp_rtt_min_s": "floor_s",
    "tcp_rtt_max_s": "high_s",
    "tcp_rtt_median_s": "median_s",
    "tcp_rtt_mean_s": "mean_s",
    "tcp_rtt_sd_s": "sd_s",
}
FIRST, FOLLOWING = "_first", "_following"

Values = dict[str, float | None]  # by run


def build_derived_rows(summary: Summary, metrics: AbstractSet[str]) -> list[Row]:
    """Return the derived rows for `metrics`; those of TCP are made together or not at all."""
    found: list[tuple[str, str, Values]] = []
    if metrics & TCP.keys():
        found += [(name, "s", values) for name, values in read_round_trips(summary).items()]
    for name in sorted(metrics):
        if name.endswith((FIRST, FOLLOWING)):
            found.append((name, *read_iterations(summary, name)))
    return [row for name, unit, values in found for row in build_rows(summary, name, unit, values)]


def build_rows(summary: Summary, name: str, unit: str, values: Values) -> Iterator[Row]:
    """Yield a row for each condition that has values."""
    metric = Metric(name, unit, "lower", is_primary=False)
    for group in summary.groups:
        own = {run.run_id: values.get(run.run_id) for run in group.runs}
        key = (group.variant, group.label, name)
        row = build_row(replace(summary.data, values={key: own}), group, metric)
        if row.values:
            yield row


def read_round_trips(summary: Summary) -> dict[str, Values]:
    """Return each run's round-trip times, from all readings on its nodes."""
    nodes: dict[str, list[NodeNetwork]] = {}
    for node in summary.data.network:
        if node.tcp_rtt_s is not None:
            nodes.setdefault(node.run_id, []).append(node)
    by_run = {run: build_tcp_level(run, members) for run, members in nodes.items()}
    return {
        name: {run: getattr(tcp, field) for run, tcp in by_run.items()}
        for name, field in TCP.items()
    }


def read_iterations(summary: Summary, name: str) -> tuple[str, Values]:
    """Return the unit, and by run the first iteration's value or the mean of the others.

    A run with a single iteration has neither, because that may not have been the first.
    """
    with open_database(summary.data.folder) as connection:
        lines = connection.execute(
            """
            SELECT s.run_id, s.iteration, avg(s.value), any_value(s.unit)
            FROM results AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
            WHERE s.metric = ? AND isfinite(s.value) GROUP BY s.run_id, s.iteration
            """,
            [name.removesuffix(FIRST).removesuffix(FOLLOWING)],
        ).fetchall()
    by_run: dict[str, dict[int, float]] = {}
    for run, iteration, value, _ in lines:
        by_run.setdefault(run, {})[iteration] = value
    unit = next((str(unit) for *_, unit in lines if unit), "")
    several = {run: values for run, values in by_run.items() if len(values) > 1 and 1 in values}
    if name.endswith(FIRST):
        return unit, {run: values[1] for run, values in several.items()}
    return unit, {
        run: statistics.fmean(value for number, value in values.items() if number > 1)
        for run, values in several.items()
    }
