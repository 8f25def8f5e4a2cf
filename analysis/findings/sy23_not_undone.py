"""SY23: network conditions were not undone."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY23",
    severity=Severity.ERROR,
    title="network conditions were not undone",
    why="Whoever runs there next measures under conditions that nobody asked for.",
    advice=(
        "Their later jobs may have run under them, too. Root there: `steelyard netem show` "
        "says whose they are, `steelyard netem clear --all` undoes them."
    ),
    example="n1: delay=50ms of x-51a7535d-001",
    source="docs/netem.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    left = [node for node in summary.data.network if node.undone is False]
    if left:
        yield Finding(
            KIND,
            f"After {counted(len(left), 'job')} on a node.",
            tuple(f"{n.node}: {n.requested} of {n.run_id}" for n in left),
        )
