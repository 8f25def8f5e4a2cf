"""SY15: many comparisons at once."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity
from steelyard.analysis.stats.overhead import SHOWN
from steelyard.analysis.summary.summary import Row, Summary

MANY_COMPARISONS = 20  # of so many one is expected to differ by chance at 95 %

KIND = Kind(
    code="SY15",
    severity=Severity.NOTE,
    title="many comparisons at once",
    why="Of 20 comparisons between equals one differs by chance at 95 %.",
    advice=(
        "Verdicts are corrected for their number (Holm); the intervals are not: each holds "
        "for 95 of 100 studies on its own. Decide beforehand which metric counts."
    ),
    example=(
        "20 overheads have an interval; about 1 of them would exclude 0 by chance if nothing "
        "differed. 0 differ after correction, 0 of them main figures."
    ),
    source="Holm (1979), Scandinavian Journal of Statistics 6(2)",
)


def check(summary: Summary) -> Iterator[Finding]:
    judged = [row for row in summary.compared() if row.verdict and has_interval(row)]
    if len(judged) >= MANY_COMPARISONS:
        told = [row for row in judged if row.verdict and row.verdict.direction in SHOWN]
        main = sum(row.metric.is_primary for row in told)
        yield Finding(
            KIND,
            f"{len(judged)} overheads have an interval; about {len(judged) * 0.05:.0f} of them would "
            f"exclude 0 by chance if nothing differed. {len(told)} differ after correction, {main} of "
            "them main figures.",
        )


def has_interval(row: Row) -> bool:
    return row.overhead is not None and row.overhead.low is not None
