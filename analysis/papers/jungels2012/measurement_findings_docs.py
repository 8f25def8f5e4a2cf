"""Writes the list of findings on the thesis' measurements in docs/findings.md, by `make docs`."""

from __future__ import annotations

from pathlib import Path

from steelyard.analysis.findings.registry import PAGE, format_table
from steelyard.analysis.papers.jungels2012.measurement_findings import KINDS
from steelyard.jobscripts.docs import between, rewrite

BEGIN = "<!-- from analysis/papers/jungels2012/measurement_findings.py: make docs -->"
END = "<!-- end of what is from analysis/papers/jungels2012/measurement_findings.py -->"


def update_page(page: str) -> str:
    """Return docs/findings.md with the current list."""
    return between(page, BEGIN, END, format_table(KINDS))


if __name__ == "__main__":
    rewrite(Path(PAGE), update_page)
