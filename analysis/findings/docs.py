"""Writes the list of findings in docs/findings.md, by `make docs`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from steelyard.analysis.findings.finding import Kind
from steelyard.analysis.findings.registry import RULES
from steelyard.jobscripts.docs import between, cells, rewrite

PAGE = "docs/findings.md"
BEGIN = "<!-- from analysis/findings: make docs -->"
END = "<!-- end of what is from analysis/findings -->"
HEAD = ["code", "title", "why it matters"]


def format_table(kinds: Iterable[Kind]) -> str:
    """Return the kinds as a Markdown table, a line each."""
    lines = [cells(HEAD), cells(["---"] * len(HEAD)), *map(format_line, kinds)]
    return "\n".join([*lines, ""])


def format_line(kind: Kind) -> str:
    """Format a kind with its reason and source: authors and year, or a link to a page.

    The report has the advice.
    """
    source = kind.source.removeprefix("docs/")
    if source == kind.source:
        source = re.sub(r"\((\d{4})\)[^;]*", r"\1", source)
    else:
        source = f"[{source}]({source})"
    why = f"{kind.why} ({source})"
    return cells([kind.code, kind.title, why])


def update_page(page: str) -> str:
    """Return docs/findings.md with an updated list."""
    return between(page, BEGIN, END, format_table(rule.kind for rule in RULES))


if __name__ == "__main__":
    rewrite(Path(PAGE), update_page)
