"""The list of findings about published data in docs/report.md; `make docs` writes it anew."""

from __future__ import annotations

from pathlib import Path

from steelyard.analysis.findings.docs import PAGE, table
from steelyard.analysis.published.findings import KINDS
from steelyard.jobscripts.docs import between, rewrite

BEGIN = "<!-- from analysis/published/findings.py: make docs -->"
END = "<!-- end of what is from analysis/published/findings.py -->"


def renewed(page: str) -> str:
    """docs/report.md with a fresh list."""
    return between(page, BEGIN, END, table(KINDS))


if __name__ == "__main__":
    rewrite(Path(PAGE), renewed)
