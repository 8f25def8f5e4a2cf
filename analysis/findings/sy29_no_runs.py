"""SY29: the study has no runs."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY29",
    severity=Severity.ERROR,
    title="the study has no runs",
    why="A report of nothing looks like one of something.",
    advice=(
        "Its plan is empty. Look whether this is the right study, whether its file has a "
        "[[benchmark]] and every factor a level, and submit and collect it again."
    ),
    example="There is nothing to report.",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    if not summary.data.runs:
        yield Finding(KIND, "There is nothing to report.", ())
