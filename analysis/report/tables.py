"""Builds the report's tables as plain cells of text; the template only sets them.

Tags, programs and the facts needed to repeat the study are tables, too.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from steelyard.analysis.base.level_names import NODE, format_level
from steelyard.analysis.report.links import Anchors, find_anchor
from steelyard.analysis.stats.basics import MIN_FOR_OUTLIERS, Interval, unseen_share
from steelyard.analysis.stats.effect_size import format_effect
from steelyard.analysis.stats.number_format import (
    MISSING,
    choose_prefix,
    count_common_decimals,
    format_number,
    format_quantity,
)
from steelyard.analysis.stats.overhead_verdict import SHOWN, Direction
from steelyard.analysis.store.database import SCHEMA_VERSION
from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.study_data import Meta, Record, StudyData, list_within_factors
from steelyard.analysis.summary.study_run import Run
from steelyard.analysis.summary.summary import Summary, is_main
from steelyard.analysis.summary.tags_and_programs import TagValue

TOLD = (
    *SHOWN,
    Direction.EQUIVALENT,
    Direction.NON_INFERIOR,
    Direction.PERHAPS,
)  # that the column “Verdict” shows
LISTED = 20  # names in one cell
STOPPED = ", until intervals were narrow enough (stop): computed at 96 % and tested at 4 %, they hold 95 %"


@dataclass(frozen=True)
class Table:
    """A table; the first cell of a row is its heading."""

    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    anchors: Sequence[str] = ()  # of the runs of each row; empty: rows are no groups of runs


@dataclass(frozen=True)
class RowGroup:
    """Rows under a common heading."""

    label: str
    rows: list[tuple[str, ...]]
    anchors: Sequence[str] = ()  # of the runs of each row
    anchor: str = ""  # of the group itself


def format_time(unix_s: float | None) -> str:
    """Format `2026-11-21 08:15:42`, UTC."""
    if unix_s is None:
        return MISSING
    return f"{datetime.fromtimestamp(unix_s, UTC):%Y-%m-%d %H:%M:%S}"


def join_names(names: Iterable[str]) -> str:
    """Return `n1, n2, n3 … and 80 more`."""
    every = list(names)
    more = f" … and {len(every) - LISTED} more" if len(every) > LISTED else ""
    return ", ".join(every[:LISTED]) + more


def format_label(group: Group) -> str:
    if not group.label:
        return "all runs"
    return f"{group.label} (baseline)" if group.label == group.baseline_label else group.label


def build_request_table(summary: Summary) -> Table:
    """Return what the study requested."""
    meta, counts = summary.data.meta, [group.counts for group in summary.groups]
    rows = [
        ("Variants", join_names(summary.variants)),
        *((f"Factor {name}", format_factor_levels(meta, name)) for name in meta.factors),
        ("Baseline", format_baseline(meta) or "none named"),
        ("Conditions", str(len(summary.labels))),
        (
            "Repeats",
            format_repeats([c.planned for c in counts]) + (STOPPED if meta.has_stop_rule else ""),
        ),
        ("Blocks", format_blocks(summary.data)),
        ("Runs planned", str(sum(c.planned for c in counts))),
        ("… completed", str(sum(c.completed for c in counts))),
        ("… of these invalid", str(sum(c.invalid for c in counts))),
        ("… failed", str(sum(c.failed for c in counts))),
        ("… cancelled", str(sum(c.cancelled for c in counts))),
        ("… not finished", str(sum(c.waiting for c in counts))),
        ("Seed of the order", MISSING if meta.seed is None else str(meta.seed)),
    ]
    return Table(("", ""), rows)


def format_factor_levels(meta: Meta, factor: str) -> str:
    """Return `near (delay=1ms), far (delay=50ms)`: each displayed text with its complete level."""
    pairs = ((meta.level_text(factor, one), format_level(one)) for one in meta.factors[factor])
    return ", ".join(
        text if text == full_text else f"{text} ({full_text})" for text, full_text in pairs
    )


def format_baseline(meta: Meta) -> str:
    """Return `network=near, cache=cold`, `threads=1 at each level of size`."""
    named = ", ".join(f"{k}={meta.level_text(k, v)}" for k, v in meta.baseline.items())
    own = [name for name in list_within_factors(meta) if named or name != NODE]
    return f"{named} at each level of {' and '.join(own)}" if own else named


def format_repeats(counts_of_groups: list[int]) -> str:
    low, high = min(counts_of_groups, default=0), max(counts_of_groups, default=0)
    return str(low) if low == high else f"{low} to {high}"


def format_blocks(data: StudyData) -> str:
    """Return the number of blocks; each holds every condition in random order."""
    numbers = {run.block for run in data.runs if run.block is not None}
    return str(len(numbers)) if numbers else MISSING


OVERHEAD_HEADINGS = (
    "Condition",
    "Metric",
    "Overhead",
    "Verdict",
    "Baseline's mean",
    "Mean",
    "Effect size",
    "p (Holm)",
)


def build_overhead_groups(summary: Summary, anchors: Anchors) -> list[RowGroup]:
    """Return the main figures with their overheads by variant, without unmeasured ones."""
    groups: dict[str, list[Row]] = {}
    for row in summary.compared_rows():
        if is_main(row) and (row.values or row.metric.is_primary):
            groups.setdefault(row.group.variant, []).append(row)
    return [
        RowGroup(
            variant,
            [overhead_row(summary, row) for row in rows],
            [find_anchor(anchors, row) for row in rows],
        )
        for variant, rows in groups.items()
    ]


def overhead_row(summary: Summary, row: Row) -> tuple[str, ...]:
    base = summary.row(row.group.variant, row.group.baseline_label or "", row.metric.name)
    verdict, meaning = "", ""
    if row.verdict is not None:
        verdict, direction = row.verdict.text, row.verdict.direction
        meaning = direction.value if direction in TOLD else ""
    factor, unit = choose_unit(summary, row)
    means = (format_mean(base, factor, unit), format_mean(row, factor, unit))
    effect = format_effect(row.effect) if row.effect else MISSING
    return (row.group.label, row.metric.name, verdict, meaning, *means, effect, format_p(row.p))


def format_p(p: float | None) -> str:
    """Format `0.013`, `< 0.0001`."""
    if p is None:
        return MISSING
    return "< 0.0001" if p < 1e-4 else f"{p:.2g}"


def choose_unit(summary: Summary, row: Row) -> tuple[float, str]:
    """Return the divisor and unit name of a metric of a variant, the same for all conditions."""
    name = row.group.variant, row.metric.name
    rows = (summary.row(name[0], label, name[1]) for label in summary.labels)
    return choose_prefix(max((r.maximum or 0.0 for r in rows if r), default=None), row.metric.unit)


def format_mean(row: Row | None, factor: float, unit: str) -> str:
    """Format `0.627 s`, rounded as in the tables of means."""
    if row is None or row.interval is None:
        return MISSING
    number = format_number(row.interval.mean, factor, count_common_decimals([row.interval], factor))
    return f"{number} {unit}".removesuffix(" 1")


METRIC_HEADINGS = (
    "Condition",
    "n",
    "Mean",
    "95 % interval",
    "Unseen",
    "Median",
    "Sd",
    "MAD",
    "Min",
    "Max",
    "Outliers",
    "Failed",
    "Invalid",
    "No value",
)


def build_metric_table(rows: list[Row], anchors: Anchors) -> tuple[str, Table]:
    """Return (unit, table) of one variant and metric over the conditions, all in one unit."""
    metric = rows[0].metric
    factor, unit = choose_prefix(max((r.maximum or 0.0 for r in rows), default=None), metric.unit)
    places = [find_anchor(anchors, row) for row in rows]
    cells = [metric_row(row, factor) for row in rows]
    cancelled = [row.group.counts.cancelled for row in rows]
    if not any(cancelled):
        return unit, Table(METRIC_HEADINGS, cells, places)
    with_them = [(*line, str(count)) for line, count in zip(cells, cancelled, strict=True)]
    return unit, Table((*METRIC_HEADINGS, "Cancelled"), with_them, places)


def describe_source(summary: Summary, row: Row) -> str:
    """Return `, sum of resident sets`: how usage was counted under all conditions."""
    found = (
        s for (variant, _), s in summary.data.usage_sources.items() if variant == row.group.variant
    )
    ways = sorted(set().union(*(one.describe(row.metric.name) for one in found)))
    return f", {' or '.join(ways)}" if ways else ""


def metric_row(row: Row, factor: float) -> tuple[str, ...]:
    counts = row.group.counts
    tail = (str(counts.failed), str(counts.invalid), str(row.missing))
    if row.interval is None or row.spread is None:
        return (format_label(row.group), "0", *[MISSING] * 9, *tail)
    places = count_common_decimals([row.interval], factor)

    def cell(value: float | None) -> str:
        return format_number(value, factor, places)

    def ends(interval: Interval | None) -> str:
        if interval is None or interval.low is None:
            return MISSING
        return f"{cell(interval.low)} … {cell(interval.high)}"

    return (
        format_label(row.group),
        row.format_n,
        cell(row.interval.mean),
        ends(row.interval),
        f"< {100 * unseen_share(row.n):.2g} %",
        cell(row.median),
        cell(row.spread.sd),
        cell(row.spread.mad),
        cell(row.minimum),
        cell(row.maximum),
        str(len(row.outliers.indices)) if row.n >= MIN_FOR_OUTLIERS else MISSING,
        *tail,
    )


def build_node_table(summary: Summary) -> Table:
    """Return the nodes' properties from their records; nodes with the same ones share a row."""
    groups: dict[tuple[str, ...], dict[str, int]] = {}
    for record in summary.data.records:
        nodes = groups.setdefault(node_facts(record), {})
        nodes[record.node] = nodes.get(record.node, 0) + 1
    headings = (
        "Nodes",
        "Node type",
        "Virtualization",
        "Container",
        "Kernel",
        "CPU",
        "CPUs",
        "Memory",
        "Records",
    )
    rows = [
        (join_names(sorted(nodes)), *facts, str(sum(nodes.values())))
        for facts, nodes in sorted(groups.items())
    ]
    return Table(headings, rows)


def node_facts(record: Record) -> tuple[str, ...]:
    facts = (
        record.node_type,
        record.vm,
        record.container,
        record.kernel,
        record.cpu_model,
        record.cpus,
    )
    return (*(fact or MISSING for fact in facts), format_quantity(record.memory_bytes, "bytes"))


def build_gap_table(data: StudyData, most: int) -> Table:
    """Return the first gaps, one per row."""
    rows = [
        (gap.kind, gap.run_id or "whole study", gap.node or MISSING, gap.reason)
        for gap in data.gaps
    ]
    return Table(("What", "Run", "Node", "Reason"), rows[:most])


def count_gaps(data: StudyData) -> list[tuple[str, int]]:
    return Counter(gap.kind for gap in data.gaps).most_common()


def run_headings(summary: Summary, variant: str) -> tuple[str, ...]:
    names = [f"{name} ({unit})" for name, _, unit in run_columns(summary, variant)]
    return ("Run", "Job", "Started (UTC)", "Elapsed (s)", *names, "Nodes", "State")


def run_columns(summary: Summary, variant: str) -> list[tuple[str, float, str]]:
    """Return (metric, divisor, unit) of the main figures, with one unit per variant."""
    found = []
    for metric in summary.data.metrics.get(variant, []):
        if metric.is_primary:
            rows = (summary.row(variant, label, metric.name) for label in summary.labels)
            largest = max((row.maximum or 0.0 for row in rows if row), default=None)
            found.append((metric.name, *choose_prefix(largest, metric.unit)))
    return found


def build_run_groups(summary: Summary, variant: str, anchors: Anchors) -> Iterator[RowGroup]:
    """Yield every run of a variant by condition: the sources of each number."""
    columns = run_columns(summary, variant)
    names, factors = [name for name, _, _ in columns], [factor for _, factor, _ in columns]
    for group in summary.groups:
        if group.variant != variant:
            continue
        values = [summary.data.values.get((variant, group.label, name), {}) for name in names]
        marked = find_outlier_ids(summary, group, names)
        rows = [run_row(run, values, factors, run.run_id in marked) for run in group.runs]
        yield RowGroup(format_label(group), rows, anchor=anchors[group.variant, group.label])


def find_outlier_ids(summary: Summary, group: Group, names: list[str]) -> set[str]:
    found = (summary.row(group.variant, group.label, name) for name in names)
    return {row.run_ids[i] for row in found if row is not None for i in row.outliers.indices}


def run_row(
    run: Run, values: list[dict[str, float | None]], factors: list[float], marked: bool
) -> tuple[str, ...]:
    state = run.state if run.state == "completed" else f"{run.state}: {run.reason or 'no reason'}"
    if run.valid is False:
        state = f"invalid: {run.invalid_reason or 'no reason'}"
    elif run.state == "completed":
        state = "outlier" if marked else ""
    return (
        run.run_id,
        run.job_id or run.attempt or MISSING,
        format_time(run.start_unix_s),
        MISSING if run.elapsed_s is None else f"{run.elapsed_s:.6g}",
        *(
            format_cell_number(v.get(run.run_id), factor)
            for v, factor in zip(values, factors, strict=True)
        ),
        join_names(run.nodes),
        state,
    )


def format_cell_number(value: float | None, factor: float) -> str:
    return MISSING if value is None else f"{value / factor:.6g}".replace("-", "−")


def compute_data_sha256(data: StudyData) -> str:
    """Return the SHA-256 of the sorted JSON lines `[run_id, metric, value]`."""
    ids = {run.run_id: json.dumps(run.run_id) for run in data.runs}
    # Formatting a line directly takes a third of the time; repr of a float is its JSON form.
    lines = [
        f"[{ids[run_id]}, {name}, {'null' if value is None else repr(value)}]\n"
        for (_, _, metric), runs in data.values.items()
        for name in (json.dumps(metric),)
        for run_id, value in runs.items()
    ]
    return hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()


MAX_VALUES = 6  # of one tag; a tag with more values is a measurement and no condition
MAX_PROGRAMS = 200
PACKAGES = ("duckdb", "numpy", "scipy", "matplotlib")  # used for the numbers and figures


def build_tag_table(summary: Summary) -> Table | None:
    """Return a table with a row per tag and value; None without tags."""
    by_key: dict[str, list[TagValue]] = {}
    for tag in summary.data.tags:
        by_key.setdefault(tag.key, []).append(tag)
    rows = [row for key, values in by_key.items() for row in build_tag_rows(key, values)]
    return Table(("Tag", "Value", "Nodes", "Runs"), rows) if rows else None


def build_tag_rows(key: str, values: list[TagValue]) -> list[tuple[str, ...]]:
    """Return the rows of one tag; of many values only the two in the most runs."""
    if len(values) > MAX_VALUES:
        ranked = sorted(values, key=lambda tag: -tag.runs)[:2]
        examples = ", ".join(tag.value for tag in ranked)
        nodes = sorted({node for tag in values for node in tag.nodes})
        runs = str(sum(tag.runs for tag in values))
        return [(key, f"{len(values)} values, such as {examples}", join_names(nodes), runs)]
    return [(key, tag.value, join_names(tag.nodes), str(tag.runs)) for tag in values]


def build_program_table(summary: Summary) -> Table | None:
    """Return programs and libraries with their checksums; None if no run recorded any."""
    rows = [
        (program.path, program.kind, program.sha256, join_names(program.nodes), str(program.runs))
        for program in summary.data.programs
    ]
    headings = ("Path", "Kind", "SHA-256", "Nodes", "Runs")
    return Table(headings, rows[:MAX_PROGRAMS]) if rows else None


def build_facts(summary: Summary) -> list[tuple[str, str]]:
    """Return what is needed to reproduce the numbers."""
    meta = summary.data.meta
    packages = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return [
        ("Study", meta.study),
        ("Collected by", f"steelyard {meta.steelyard}, {format_time(meta.collected_unix_s)} UTC"),
        ("Reported by", f"steelyard {importlib.metadata.version('steelyard')}"),
        ("… with", f"Python {platform.python_version()}, {packages}"),
        ("Schema of the database", f"version {SCHEMA_VERSION}"),
        ("Seed of the order of runs", str(meta.seed) if meta.seed is not None else MISSING),
        ("SHA-256 of study.toml", meta.toml_sha256 or MISSING),
        ("SHA-256 of the measurements", compute_data_sha256(summary.data)),
    ]
