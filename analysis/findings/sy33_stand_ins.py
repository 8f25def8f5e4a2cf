"""SY33: the scheduler's accounting could not be read, and its programs stood in."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY33",
    severity=Severity.NOTE,
    title="programs of the scheduler stood in for its accounting",
    why=(
        "They tell of a job's last start only, forget it after a while, and do not say who "
        "deleted it."
    ),
    advice=(
        "Ask the administrator for the right to read the server's accounting logs, or for a copy "
        "of them (STEELYARD_PBS_ACCOUNTING), and collect again: what the logs say takes the place."
    ),
    example="qstat: 2 runs",
    source="docs/collect.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    told = summary.data.stand_ins
    if told:
        runs = sum(told.values())
        places = tuple(f"{name}: {counted(count, 'run')}" for name, count in told.items())
        yield Finding(KIND, f"The end of {counted(runs, 'run')} is known from them.", places)
