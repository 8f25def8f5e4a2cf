"""SY08: nodes left no record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY08",
    severity=Severity.WARNING,
    title="nodes left no record",
    why=(
        "Without its record nothing is known of a node: no joules, no bytes, no CPU time, no tags."
    ),
    advice=(
        "Is the plugin on these nodes (`steelyard doctor`), and is the record folder on a "
        "file system that collect can read? Totals of these runs are missing, not 0."
    ),
    example="1 record of a job on a node could not be found.",
    source="docs/collect.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    gaps = [gap for gap in summary.data.gaps if gap.what == "record"]
    if gaps:
        nodes = Counter(gap.node or "node not known" for gap in gaps)
        yield Finding(
            KIND,
            f"{counted(len(gaps), 'record')} of a job on a node could not be found.",
            tuple(f"{node}: {number}" for node, number in nodes.most_common(20)),
        )
