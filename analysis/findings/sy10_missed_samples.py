"""SY10: the sampler lost samples or was late."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.load import Record
from steelyard.analysis.summary.summary import Summary

MISSED_SHARE = 0.01  # of the deadlines

KIND = Kind(
    code="SY10",
    severity=Severity.NOTE,
    title="the sampler lost samples or was late",
    why="What happened between two samples that lie far apart is in no figure over time.",
    advice=(
        "The node was overloaded or its disk full. Totals are still right (they are "
        "counters); figures over time have holes. A lower --sample-rate helps."
    ),
    example="x-51a7535d-013 on n1: 3 lost, 0 late, of 11",
    source="docs/formats.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    """Any sample lost, or more than 1 % of the deadlines missed."""
    bad = [record for record in summary.data.records if sampled_badly(record)]
    if bad:
        yield Finding(
            KIND,
            f"In {len(bad)} of {counted(len(summary.data.records), 'record')}.",
            tuple(
                f"{r.run_id} on {r.node}: {r.samples_lost or 0} lost, "
                f"{r.missed_deadlines or 0} late, of {r.samples}"
                for r in bad
            ),
        )


def sampled_badly(record: Record) -> bool:
    late = (record.missed_deadlines or 0) > MISSED_SHARE * (record.samples or 0)
    return late or bool(record.samples_lost)
