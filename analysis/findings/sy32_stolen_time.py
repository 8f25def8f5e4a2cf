"""SY32: the CPU time of virtual nodes holds what their host gave to others."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.sources.records import COUNTS_STOLEN_TIME
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY32",
    severity=Severity.WARNING,
    title="the CPU time of virtual nodes holds what their host gave to others",
    why="CPU time is then neither what the job used nor what it cost.",
    advice=(
        "CPU seconds are then up to the wall time, however little the host's processor did: "
        "three times too many on a busy one (docs/virtual.md). Compare `elapsed_s`, or keep "
        "the host to the guest alone."
    ),
    example="1 of 25 records. n1",
    source="docs/virtual.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    found = [r for r in summary.data.records if r.vm in COUNTS_STOLEN_TIME]
    if found:
        yield Finding(
            KIND,
            f"{len(found)} of {counted(len(summary.data.records), 'record')}.",
            tuple(sorted({record.node for record in found})),
        )
