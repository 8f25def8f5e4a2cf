"""A summary as a notebook prints it: one line as text, its rows as an HTML table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from steelyard.analysis.summary.rows import Row, format_cells
from steelyard.jobscripts.plurals import counted

MOST_ROWS = 100
HEADINGS = ("benchmark", "condition", "metric", "n", "mean", "against the baseline")


def table(rows: Sequence[Row]) -> str:
    """Main figures first; of many rows the first MOST_ROWS."""
    first = sorted(rows, key=lambda row: not row.metric.is_primary)[:MOST_ROWS]
    lines = [html_row("th", HEADINGS), *(html_row("td", format_cells(row)) for row in first)]
    more = len(rows) - len(first)
    note = f"<p>… and {counted(more, 'more row')}: study.frame('means') has all</p>" if more else ""
    return f"<table>{''.join(lines)}</table>{note}"


def html_row(tag: str, texts: Sequence[str]) -> str:
    """Names of conditions and figures are a user's own text."""
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"
