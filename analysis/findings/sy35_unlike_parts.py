"""SY35: joules of unlike parts are compared."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY35",
    severity=Severity.WARNING,
    title="joules are not of the same parts everywhere",
    why=(
        "Where a meter of the whole node is there energy_j is the node's, elsewhere that of "
        "packages and memory, or of packages alone: such figures cannot be compared."
    ),
    advice=(
        "Compare energy only among runs of nodes with the same meters; energy.covers of the "
        "record tells the parts, energy.zones what each has used."
    ),
    example="node: 1 records",
    source="docs/sampler.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    counted: dict[str, int] = {}
    for record in summary.data.records:
        if record.has_energy and record.energy_covers:
            counted[record.energy_covers] = counted.get(record.energy_covers, 0) + 1
    if len(counted) > 1:
        yield Finding(
            KIND,
            f"There are {len(counted)} kinds of them.",
            tuple(f"{parts}: {number} records" for parts, number in sorted(counted.items())),
        )
