"""The list of findings in docs/findings.md; `make docs` writes it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from steelyard.analysis.findings.finding import Kind
from steelyard.analysis.findings.registry import RULES
from steelyard.jobscripts.docs import between, cells, rewrite

PAGE = "docs/findings.md"
BEGIN = "<!-- from analysis/findings: make docs -->"
END = "<!-- end of what is from analysis/findings -->"
HEAD = ["code", "severity", "title", "why it matters"]


def table(kinds: Iterable[Kind]) -> str:
    """In Markdown, a line each."""
    lines = [cells(HEAD), cells(["---"] * len(HEAD)), *map(line, kinds)]
    return "\n".join([*lines, ""])


def line(kind: Kind) -> str:
    """With a publication behind the reason, or a link to a page. The report itself has the advice."""
    source = kind.source.removeprefix("docs/")
    source = f"[{source}]({source})" if source != kind.source else source
    why = f"{kind.why} ({source})"
    words = [kind.code, kind.severity.value, kind.title, why]
    return cells(words)


def renewed(page: str) -> str:
    """docs/findings.md with a fresh list."""
    return between(page, BEGIN, END, table(rule.kind for rule in RULES))


if __name__ == "__main__":
    rewrite(Path(PAGE), renewed)
