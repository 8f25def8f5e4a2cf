"""SY12: a condition ran on other nodes than its baseline."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Severity, counted, place
from steelyard.analysis.findings.node_facts import NODE_FACTS, facts_by_group
from steelyard.analysis.summary.summary import Summary

KIND = Kind(
    code="SY12",
    severity=Severity.WARNING,
    title="a condition ran on other nodes than its baseline",
    why="What is told as the condition's cost may be the nodes'.",
    advice=(
        "The overhead then also contains the difference between the nodes. Let both run on "
        "like nodes (`--constraint`, `[place.…]` in the study)."
    ),
    example="x · clients=2: kernel 6.12.1, the baseline's 6.1.0-18-amd64",
    source="docs/study.md",
)


def check(summary: Summary) -> Iterator[Finding]:
    facts, hidden = facts_by_group(summary), hidden_facts(summary)
    places = []
    for group in summary.groups:
        base = facts.get((group.variant, group.baseline_label or ""), {})
        for name, values in facts.get((group.variant, group.label), {}).items():
            if name in hidden or group.label == group.baseline_label or not base:
                continue
            if values != base[name]:
                here, there = (" and ".join(sorted(v)) or "not known" for v in (values, base[name]))
                places.append(f"{place(group)}: {name} {here}, the baseline's {there}")
    if places:
        text = f"{counted(len(places), 'difference')} in what the nodes were."
        yield Finding(KIND, text, tuple(places))


def hidden_facts(summary: Summary) -> set[str]:
    """Facts that a factor changes on purpose from condition to condition."""
    factors = summary.data.meta.factors
    if "node_type" in factors:
        return set(NODE_FACTS)
    on_purpose = {"launcher": "container", "kernel_release": "kernel"}
    return {fact for factor, fact in on_purpose.items() if factor in factors}
