"""Displays a summary in a notebook: one line of text, and the rows as an HTML table."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from steelyard.analysis.summary.rows import Row, format_cells
from steelyard.jobscripts.plurals import counted

MOST_ROWS = 100
HEADINGS = ("benchmark", "condition", "metric", "n", "mean", "against the baseline")


def table(rows: Sequence[Row]) -> str:
    """Return an HTML table with the main figures first and at most MOST_ROWS rows."""
    first = sorted(rows, key=lambda row: not row.metric.is_primary)[:MOST_ROWS]
    lines = [html_row("th", HEADINGS), *(html_row("td", format_cells(row)) for row in first)]
    more = len(rows) - len(first)
    note = f"<p>… and {counted(more, 'more row')}: study.frame('means') has all</p>" if more else ""
    return f"<table>{''.join(lines)}</table>{note}"


def html_row(tag: str, texts: Sequence[str]) -> str:
    """Return an HTML table row; names are escaped because users choose them."""
    return f"<tr>{''.join(f'<{tag}>{escape(text)}</{tag}>' for text in texts)}</tr>"
