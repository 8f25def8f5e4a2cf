"""SY26: a figure came in two units."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import total_runs
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY26",
    severity=Severity.ERROR,
    title="a figure came in two units",
    why="A mean over seconds and milliseconds is a number without meaning.",
    advice=(
        "The benchmark or its description changed between runs. The runs in the rarer unit "
        "are in no mean; repeat them, or collect them as a study of their own."
    ),
    example="x · seconds: ms in place of s in x-51a7535d-001",
    source="docs/benchmarks.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    others = summary.data.other_units
    if others:
        runs = {run for one in others for run in one.run_ids}
        yield Finding(
            KIND,
            f"In {counted(len(runs), 'run')} of {total_runs(summary)}; in no mean.",
            tuple(
                f"{one.variant} · {one.metric}: {one.unit or 'none'} in place of "
                f"{one.usual or 'none'} in {', '.join(one.run_ids)}"
                for one in others
            ),
        )
