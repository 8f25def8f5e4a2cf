"""SY27: differences that cannot be told apart into latency and throughput."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Code, Finding, counted, place
from steelyard.analysis.summary.split import split_rows
from steelyard.analysis.summary.summary import Summary


def find_broken_splits(summary: Summary) -> Iterator[Finding]:
    """SY27."""
    rows = split_rows(summary)
    broken = [one for one in rows if one.broken]
    if broken:
        yield Finding(
            Code.NO_SPLIT,
            f"In {len(broken)} of {counted(len(rows), 'comparison')} with bulk transfers beside it.",
            tuple(f"{place(o.row.group)} by {o.bulk}: {'; '.join(o.broken)}" for o in broken),
        )
