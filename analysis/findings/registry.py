"""Collects all kinds of findings, applies them to a study, and lists them in docs/findings.md.

`make docs` runs this module to write the list.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.analysis.findings import (
    comparisons,
    drift_and_warm_up,
    network,
    nodes,
    records,
    runs,
    spread,
)
from steelyard.analysis.findings.finding import Finding, Kind, Rule, Severity
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.docs import between, cells, rewrite

SUBJECTS = (runs, comparisons, spread, drift_and_warm_up, nodes, records, network)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for subject in SUBJECTS for rule in subject.RULES), key=lambda rule: rule.kind.code
    )
)


def find_all(summary: Summary) -> list[Finding]:
    """Return all findings, the most severe first, then by code."""
    return sort_by_severity([finding for rule in RULES for finding in rule.check(summary)])


def sort_by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, the most severe first, then by code."""
    order = list(Severity)
    return sorted(findings, key=lambda f: (order.index(f.kind.severity), f.kind.code))


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
