"""SY19: completed runs lack their main figure."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import main_rows, row_place
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY19",
    severity=Severity.WARNING,
    title="completed runs lack their main figure",
    why=(
        "A run that completes without its figure is not one run less by chance: something "
        "made it so."
    ),
    advice=(
        "The benchmark printed none or one that is no finite number. They are in no mean. Look into "
        "the runs' out.* files."
    ),
    example="x · clients=1 · seconds: 1",
    source="docs/benchmarks.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    hit = [row for row in main_rows(summary) if row.missing]
    if hit:
        yield Finding(
            KIND,
            f"{counted(sum(row.missing for row in hit), 'run')} completed without a value.",
            tuple(f"{row_place(row)}: {row.missing}" for row in hit),
        )
