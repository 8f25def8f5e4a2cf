"""SY07: no energy was measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY07",
    severity=Severity.NOTE,
    title="no energy was measured",
    why="What was not measured is null, never 0: these runs are in no mean of joules.",
    advice=(
        "Energy needs RAPL counters (/sys/class/powercap) that root can read: physical nodes,"
        " mostly. Nothing was put in its place."
    ),
    example="no RAPL: /sys/class/powercap is absent: 1 records",
    source="docs/admin.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    records = summary.data.records
    without = [record for record in records if record.complete and not record.has_energy]
    if without:
        reasons = Counter(record.no_energy_reason or "no reason given" for record in without)
        yield Finding(
            KIND,
            f"{len(without)} of {counted(len(records), 'record')} have no joules.",
            tuple(f"{reason}: {number} records" for reason, number in reasons.most_common(10)),
        )
