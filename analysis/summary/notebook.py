"""A summary as a notebook prints it: one line as text, its rows as an HTML table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from steelyard.analysis.stats.number_format import MISSING, mean_words

if TYPE_CHECKING:
    from steelyard.analysis.summary.summary import Row

MOST_ROWS = 100
HEADINGS = ("benchmark", "condition", "metric", "n", "mean", "against the baseline")


def cells(row: Row) -> tuple[str, ...]:
    """One row under HEADINGS."""
    mean = MISSING if row.interval is None else mean_words(row.interval, row.metric.unit)
    verdict = row.verdict.text if row.verdict else ""
    label = row.group.label or "all runs"
    if row.group.is_baseline:
        label += " (baseline)"
    return row.group.variant, label, row.metric.name, row.n_words, mean, verdict


def row_text(row: Row) -> str:
    """`<row app · threads=2 · seconds: 1.23 ± 0.04 s, n = 10>`."""
    variant, label, metric, n, mean, verdict = cells(row)
    against = f", {verdict}" if verdict else ""
    return f"<row {variant} · {label} · {metric}: {mean}, n = {n}{against}>"


def table(rows: Sequence[Row]) -> str:
    """Main figures first; of many rows the first MOST_ROWS."""
    first = sorted(rows, key=lambda row: not row.metric.is_primary)[:MOST_ROWS]
    lines = [html_row("th", HEADINGS), *(html_row("td", cells(row)) for row in first)]
    more = len(rows) - len(first)
    note = f"<p>… and {more} more rows: study.frame('means') has all</p>" if more else ""
    return f"<table>{''.join(lines)}</table>{note}"


def html_row(tag: str, texts: Sequence[str]) -> str:
    """Names of conditions and figures are a user's own text."""
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"
