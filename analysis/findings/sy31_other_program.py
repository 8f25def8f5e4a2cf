"""SY31: the two sides computed with other vectors or another version of the program."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted, place
from steelyard.analysis.findings.node_facts import Facts
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY31",
    severity=Severity.WARNING,
    title="the two sides computed with other vectors or another version of the program",
    why="Vectors twice as wide may halve the time: more than most nodes' overhead.",
    advice=(
        "A program with narrower vectors, or of another version, computes the same more "
        "slowly or faster: that is no cost of the node or the container as such. Give virtual"
        " nodes the processor's own model (host-passthrough), install the same programs "
        "everywhere, or compare with NASA's programs, which use SSE2 everywhere "
        "(docs/npb.md)."
    ),
    example="x · clients=2: npb.vectors default 128 bits, the baseline's x86-64-v3 256 bits",
    source="docs/npb.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    """Also where the node type is a factor, for there it is the question's confounder."""
    facts, places = program_facts(summary), []
    for group in summary.groups if facts else ():
        here = facts.get((group.variant, group.label), {})
        base = facts.get((group.variant, group.baseline_label or group.label), {})
        for key in sorted(here.keys() & base.keys()):
            if here[key] != base[key] or len(here[key]) > 1:
                said, there = (" and ".join(sorted(values[key])) for values in (here, base))
                places.append(f"{place(group)}: {key} {said}, the baseline's {there}")
    if places:
        text = f"{counted(len(places), 'difference')} in what the program was or used."
        yield Finding(KIND, text, tuple(places))


def program_facts(summary: Summary) -> Facts:
    """What the programs of each group's runs said of themselves."""
    facts: Facts = {}
    for run in summary.data.runs:
        if run.counts and run.run_id in summary.data.program_tags:
            said = facts.setdefault((run.variant, run.label), {})
            for key, values in summary.data.program_tags[run.run_id].items():
                said.setdefault(key, set()).update(values)
    return facts
