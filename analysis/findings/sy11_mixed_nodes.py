"""SY11: unlike nodes under one condition."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted, place
from steelyard.analysis.findings.node_facts import facts_by_group
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY11",
    severity=Severity.WARNING,
    title="unlike nodes under one condition",
    why="The spread of a condition is then the nodes', too.",
    advice=(
        "Differences between nodes widen the interval. Ask for like nodes (`--constraint`, "
        "`[place.…]` in the study) or make the difference a factor."
    ),
    example="x · clients=1: cpu_model AMD EPYC and Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    facts = facts_by_group(summary)
    places = [
        f"{place(group)}: {name} {' and '.join(sorted(values))}"
        for group in summary.groups
        for name, values in facts.get((group.variant, group.label), {}).items()
        if len(values) > 1
    ]
    if places:
        hit = {text.split(": ")[0] for text in places}
        text = f"{counted(len(hit), 'group')} of runs ran on nodes that differ among themselves."
        yield Finding(KIND, text, tuple(places))
