"""SY13: jobs did not have their nodes to themselves."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY13",
    severity=Severity.NOTE,
    title="jobs did not have their nodes to themselves",
    why="What neighbours use of a node cannot be told from what the job uses.",
    advice=(
        "Joules and network are of the whole node: left out where it may be shared. `--exclusive`, "
        "or `steelyard report --energy-shares`: what is the job's at least and at most."
    ),
    example="1 of 25 records are of shared nodes.",
    source="docs/collect.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    records = summary.data.records
    ways = {
        "are of shared nodes": [r for r in records if r.exclusive is False],
        "do not say whether the job was alone": [r for r in records if r.exclusive is None],
    }
    for words, found in ways.items():
        if found:
            yield Finding(
                KIND,
                f"{len(found)} of {counted(len(records), 'record')} {words}.",
                tuple(sorted({record.node for record in found})),
            )
