"""SY14: conditions without a baseline to compare with."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, place
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY14",
    severity=Severity.WARNING,
    title="conditions without a baseline to compare with",
    why="An overhead is a share of the baseline: without one there is none.",
    advice="Name one in the study's [baseline], and let its runs finish.",
    example="2 of 2 groups of runs have none.",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    without = [group for group in summary.groups if group.baseline_label is None]
    if without:
        yield Finding(
            KIND,
            f"{len(without)} of {len(summary.groups)} groups of runs have none.",
            tuple(place(group) for group in without),
        )
