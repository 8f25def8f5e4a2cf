"""SY05: outliers (modified z-score above 3.5)."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import main_rows, row_place
from steelyard.analysis.summary.summary import Row, Summary

KIND = Kind(
    code="SY05",
    severity=Severity.NOTE,
    title="outliers (modified z-score above 3.5)",
    why="One run far from the others moves the mean and widens its interval.",
    advice=(
        "They are marked in the figures and stay in the means. Look what else ran on the node"
        " at that time; the median is not moved by them."
    ),
    example="x · clients=1 · seconds: x-51a7535d-013",
    source="Iglewicz & Hoaglin (1993), How to Detect and Handle Outliers",
)


def check(summary: Summary) -> Iterator[Finding]:
    hit = [row for row in main_rows(summary) if row.outliers.indices]
    if hit:
        total = sum(len(row.outliers.indices) for row in hit)
        yield Finding(
            KIND,
            f"{counted(total, 'value')} of {sum(row.n for row in main_rows(summary))} "
            f"of the main figures: far from the others of their condition.",
            tuple(f"{row_place(row)}: {', '.join(outlier_runs(row))}" for row in hit),
        )


def outlier_runs(row: Row) -> list[str]:
    return [row.run_ids[index] for index in row.outliers.indices]
