"""SY02: runs have not finished."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.findings.rows import shares, total_runs
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY02",
    severity=Severity.WARNING,
    title="runs have not finished",
    why=(
        "Means move as long as runs come in, and blocks that are not full do not hold all "
        "conditions."
    ),
    advice="This is an interim report. Wait (`steelyard status`), collect and report again.",
    example="1 of 25 runs are waiting or running.",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    waiting = sum(group.counts.waiting for group in summary.groups)
    if waiting:
        yield Finding(
            KIND,
            f"{waiting} of {counted(total_runs(summary), 'run')} are waiting or running.",
            shares(summary, lambda group: group.counts.waiting),
        )
