"""SY17: other things were missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.summary import Summary

# Those of records have findings of their own.
RECORD_GAPS = frozenset(("record", "incomplete_record"))

KIND = Kind(
    code="SY17",
    severity=Severity.NOTE,
    title="other things were missing",
    why="Nothing missing is taken as 0, and nothing missing goes unsaid.",
    advice="The section on gaps lists each with its reason.",
    example="1 thing that should be there. accounting: 1",
    source="docs/formats.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    gaps = [gap for gap in summary.data.gaps if gap.what not in RECORD_GAPS]
    if gaps:
        kinds = Counter(gap.what for gap in gaps)
        places = tuple(f"{what}: {number}" for what, number in kinds.most_common())
        yield Finding(KIND, f"{counted(len(gaps), 'thing')} that should be there.", places)
