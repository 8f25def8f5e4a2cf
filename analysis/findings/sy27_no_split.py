"""SY27: differences that cannot be told apart into latency and throughput."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted, place
from steelyard.analysis.summary.latency_share import split_rows
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY27",
    severity=Severity.WARNING,
    title="latency and throughput cannot be told apart",
    why="Shares of a model that does not fit are numbers about nothing.",
    advice=(
        "The model of the shares (docs/report.md) does not fit here, so none are told. "
        "Compare runs that move the same bytes and compute the same, with `requests = single`"
        " and without read-ahead, beside bulk transfers with as many clients and streams."
    ),
    example="not the same bytes: 2 GB and 1 GB a run",
    source="docs/report.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    rows = split_rows(summary)
    broken = [one for one in rows if one.broken]
    if broken:
        yield Finding(
            KIND,
            f"In {len(broken)} of {counted(len(rows), 'comparison')} with bulk transfers beside it.",
            tuple(f"{place(o.row.group)} by {o.bulk}: {'; '.join(o.broken)}" for o in broken),
        )
