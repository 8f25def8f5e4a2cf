"""Findings on network conditions."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Rule, Severity, format_location
from steelyard.analysis.summary.latency_share import build_split_rows
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

SY23 = Kind(
    code="SY23",
    severity=Severity.ERROR,
    title="network conditions were not undone",
    why="The next jobs there run under conditions that they did not request.",
    advice=(
        "Their later jobs may have run under them, too. Root there: `steelyard netem show` "
        "says whose they are, `steelyard netem clear --all` undoes them."
    ),
    example="n1: delay=50ms of x-51a7535d-001",
    source="docs/netem.md",
)


def check_remaining_conditions(summary: Summary) -> Iterator[Finding]:
    leftover = [node for node in summary.data.network if node.undone is False]
    if leftover:
        yield Finding(
            SY23,
            f"After {counted(len(leftover), 'job')} on a node.",
            tuple(f"{n.node}: {n.requested} of {n.run_id}" for n in leftover),
        )


SY27 = Kind(
    code="SY27",
    severity=Severity.WARNING,
    title="latency and throughput cannot be separated",
    why="Shares of a model that does not fit have no meaning.",
    advice=(
        "The model of the shares (docs/report.md) does not fit here, so none are given. "
        "Compare runs that move the same bytes and compute the same, with `requests = single`"
        " and without read-ahead, beside bulk transfers with as many clients and streams."
    ),
    example="not the same bytes: 2 GB and 1 GB a run",
    source="docs/report.md",
)


def check_missing_split(summary: Summary) -> Iterator[Finding]:
    rows = build_split_rows(summary)
    broken = [one for one in rows if one.broken]
    if broken:
        yield Finding(
            SY27,
            f"In {len(broken)} of {counted(len(rows), 'comparison')} with bulk transfers beside it.",
            tuple(
                f"{format_location(o.row.group)} by {o.bulk}: {'; '.join(o.broken)}" for o in broken
            ),
        )


RULES = (Rule(SY23, check_remaining_conditions), Rule(SY27, check_missing_split))
