"""SY09: records were cut short."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY09",
    severity=Severity.WARNING,
    title="records were cut short",
    why="A total that ends before the job does is too small.",
    advice=(
        "What they lack is in no mean; the samples are kept. Where only what processes have used "
        "was cut short, joules and bytes of the network are whole, and used. Look in the node's "
        "log what ended the sampler before the job."
    ),
    example="x-51a7535d-013 on n1: cut short by a kill",
    source="docs/formats.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    cut = [record for record in summary.data.records if not record.complete]
    if cut:
        yield Finding(
            KIND,
            f"{len(cut)} of {counted(len(summary.data.records), 'record')} do not tell all of "
            f"the job.",
            tuple(
                f"{r.run_id} on {r.node}: {r.incomplete_reason or 'no reason given'}" for r in cut
            ),
        )
