"""SY34: two meters of one part of a node disagree."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.stats.readable import quantity
from steelyard.analysis.summary.summary import Summary

MOST_PLACES = 20

KIND = Kind(
    code="SY34",
    severity=Severity.WARNING,
    title="two meters of one part of a node disagree",
    why=(
        "They are further apart than 2 % (10 % where one is watts, integrated), what both can "
        "resolve, and what is used in the time between their readings: at least one is wrong."
    ),
    advice=(
        "The record's energy.zones has both. Find out which is right (a meter at the wall, a load "
        "that is known) before joules of this node are compared with another's."
    ),
    example="x-51a7535d-001 on n1: package: perf 700 J, powercap 1 kJ",
    source="docs/sampler.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    apart = summary.data.meters
    if apart:
        places = len({(found.run_id, found.node) for found in apart})
        yield Finding(
            KIND,
            f"In {places} of {counted(len(summary.data.records), 'record')}.",
            tuple(
                f"{found.run_id} on {found.node}: {found.covers}: "
                + ", ".join(
                    f"{meter} {quantity(joules, 'J')}"
                    for meter, joules in zip(found.meters, found.joules, strict=True)
                )
                for found in apart[:MOST_PLACES]
            ),
        )
