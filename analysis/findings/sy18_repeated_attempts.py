"""SY18: runs needed more than one attempt or try."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import total_runs
from steelyard.analysis.summary.load import Run
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY18",
    severity=Severity.NOTE,
    title="runs needed more than one attempt or try",
    why=("What failed at first may have left something behind: warm caches, files, a tired node."),
    advice=(
        "The last one counts. Other attempts are in the database (table attempts); what a "
        "failed try left is in the run's folder (try.N)."
    ),
    example="1 of 24 runs. x-51a7535d-001: 3 attempts",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    again = [run for run in summary.data.runs if run.attempts > 1 or run.tries > 1]
    if again:
        yield Finding(
            KIND,
            f"{len(again)} of {counted(total_runs(summary), 'run')}.",
            tuple(f"{run.run_id}: {how_often(run)}" for run in again),
        )


def how_often(run: Run) -> str:
    """`2 attempts, 3 tries in the last`."""
    words = [counted(run.attempts, "attempt")] if run.attempts > 1 else []
    return ", ".join([*words, f"{run.tries} tries in the last"] if run.tries > 1 else words)
