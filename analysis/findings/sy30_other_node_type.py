"""SY30: runs ran on nodes of another type than their condition says."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted, place
from steelyard.analysis.findings.node_facts import facts_by_group
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY30",
    severity=Severity.WARNING,
    title="runs ran on nodes of another type than their condition says",
    why="The levels' names promise a comparison that was not made.",
    advice=(
        "What is told between these levels is no difference between such nodes. With Slurm "
        "look at the nodes' Features, with PBS at their properties or resources (docs/study.md); "
        "without a scheduler all runs are on one machine."
    ),
    example="1 group of runs. x · clients=1 node_type=virtual: physical",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    if "node_type" not in summary.data.meta.factors:
        return
    facts = facts_by_group(summary)
    places = [
        f"{place(group)}: {' and '.join(sorted(found))}"
        for group in summary.groups
        if (wanted := group.condition.get("node_type")) is not None
        and (found := facts.get((group.variant, group.label), {}).get("node_type", set()))
        and found != {str(wanted)}
    ]
    if places:
        text = f"{counted(len(places), 'group')} of runs."
        yield Finding(KIND, text, tuple(places))
