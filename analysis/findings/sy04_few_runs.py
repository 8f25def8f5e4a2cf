"""SY04: fewer than 5 runs."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import main_rows, row_place
from steelyard.analysis.summary.summary import Summary

FEW_RUNS = 5  # half a 95 % interval is then 1.24 standard deviations

KIND = Kind(
    code="SY04",
    severity=Severity.WARNING,
    title=f"fewer than {FEW_RUNS} runs",
    why=(
        "Of so few runs the standard deviation itself is hardly known, and no outlier is "
        "looked for."
    ),
    advice=(
        "Raise `repeat` in the study and submit again: half of a 95 % interval is 1.24 "
        "standard deviations with 5 runs, 0.72 with 10, 0.34 with 35."
    ),
    example="x · clients=1 · seconds: n = 4",
    source="Student (1908), Biometrika 6(1)",
)


def check(summary: Summary) -> Iterator[Finding]:
    few = [row for row in main_rows(summary) if row.n < FEW_RUNS]
    if few:
        yield Finding(
            KIND,
            f"{counted(len(few), 'mean')} of a benchmark's main figure rest on fewer than "
            f"{FEW_RUNS} runs.".replace("1 mean of a benchmark's main figure rest", "1 mean rests"),
            tuple(f"{row_place(row)}: n = {row.n}" for row in few),
        )
