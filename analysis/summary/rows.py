"""A row of the report: one metric of the runs of one variant under one condition.

A notebook displays rows as an HTML table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from steelyard.analysis.stats.basics import CONFIDENCE, Interval, Outliers, Spread
from steelyard.analysis.stats.effect_size import Effect
from steelyard.analysis.stats.number_format import MISSING, format_mean
from steelyard.analysis.stats.overhead import Overhead
from steelyard.analysis.stats.overhead_verdict import Verdict
from steelyard.analysis.summary.study_data import Metric
from steelyard.analysis.summary.study_run import Condition, Run
from steelyard.jobscripts.plurals import counted

NO_OUTLIERS = Outliers(())


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of a condition's runs by outcome."""

    planned: int
    completed: int
    failed: int
    invalid: int
    waiting: int
    cancelled: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """The runs of one variant under one condition, in the order of their starts."""

    variant: str
    label: str
    condition: Condition
    is_baseline: bool
    runs: tuple[Run, ...]
    counts: Counts
    baseline_label: str | None  # the condition that it is compared with; None: no baseline
    levels: Mapping[str, str] = field(default_factory=dict)  # by factor, as displayed
    # By run, cached because a report needs them for every metric and comparison.
    blocks: dict[str, int | None] = field(init=False, repr=False, compare=False)
    jobs: dict[str, str] = field(init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        return (
            f"<group {self.variant} · {self.label or 'all runs'}: {counted(len(self.runs), 'run')}>"
        )

    def __post_init__(self) -> None:
        blocks = {run.run_id: run.block for run in self.runs}
        jobs = {run.run_id: run.job_id or run.run_id for run in self.runs}
        object.__setattr__(self, "blocks", blocks)
        object.__setattr__(self, "jobs", jobs)


@dataclass(frozen=True, slots=True)
class Row:
    """One metric of one group; statistics are None without values."""

    group: Group
    metric: Metric
    run_ids: tuple[str, ...]
    values: tuple[float, ...]
    missing: int  # completed, valid runs without a value
    confidence: float = CONFIDENCE  # with which intervals are computed, so that they hold 95 %
    margin: float | None = None  # the study's equivalence margin, as a share of the baseline
    interval: Interval | None = None  # Student's, by block or job if runs share them
    jobs: int | None = None  # number of jobs, if they are the independent units
    blocks: int | None = None  # number of blocks, if they are the independent units
    median: float | None = None
    spread: Spread | None = None
    minimum: float | None = None
    maximum: float | None = None
    outliers: Outliers = NO_OUTLIERS
    overhead: Overhead | None = None
    verdict: Verdict | None = None  # None for the baseline itself
    p: float | None = None  # of the test against the baseline, corrected for all comparisons
    p_equivalent: float | None = None  # of being beyond the margin, corrected likewise
    p_non_inferior: float | None = None  # likewise, of being beyond it on the worse side
    effect: Effect | None = None

    def __repr__(self) -> str:
        return format_row(self)

    @property
    def overhead_size(self) -> float:
        """The absolute overhead; -1 without one."""
        found = self.overhead.value if self.overhead else None
        return -1.0 if found is None else abs(found)

    @property
    def n(self) -> int:
        """The number of runs with a value."""
        return len(self.values)

    @property
    def format_n(self) -> str:
        """The sample size: `10`, `48 in 12 jobs`, `10 in 5 blocks`."""
        if self.blocks is not None:
            return f"{self.n} in {counted(self.blocks, 'block')}"
        return str(self.n) if self.jobs is None else f"{self.n} in {counted(self.jobs, 'job')}"


def format_cells(row: Row) -> tuple[str, ...]:
    """Return the cells of a row under HEADINGS."""
    mean = MISSING if row.interval is None else format_mean(row.interval, row.metric.unit)
    verdict = row.verdict.text if row.verdict else ""
    label = row.group.label or "all runs"
    if row.group.is_baseline:
        label += " (baseline)"
    return row.group.variant, label, row.metric.name, row.format_n, mean, verdict


def format_row(row: Row) -> str:
    """Format `<row app · threads=2 · seconds: 1.23 ± 0.04 s, n = 10>`."""
    variant, label, metric, n, mean, verdict = format_cells(row)
    against = f", {verdict}" if verdict else ""
    return f"<row {variant} · {label} · {metric}: {mean}, n = {n}{against}>"


MOST_ROWS = 100
HEADINGS = ("benchmark", "condition", "metric", "n", "mean", "against the baseline")


def format_html_table(rows: Sequence[Row]) -> str:
    """Return an HTML table with the main figures first and at most MOST_ROWS rows."""
    first = sorted(rows, key=lambda row: not row.metric.is_primary)[:MOST_ROWS]
    lines = [
        format_html_row("th", HEADINGS),
        *(format_html_row("td", format_cells(row)) for row in first),
    ]
    more = len(rows) - len(first)
    note = f"<p>… and {counted(more, 'more row')}: study.frame('means') has all</p>" if more else ""
    return f"<table>{''.join(lines)}</table>{note}"


def format_html_row(tag: str, texts: Sequence[str]) -> str:
    """Return an HTML table row; names are escaped because users choose them."""
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"
