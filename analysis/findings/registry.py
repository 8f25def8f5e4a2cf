"""Collects all kinds of findings and applies them to a study."""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.findings import (
    comparisons,
    drift_and_warm_up,
    network,
    nodes,
    records,
    runs,
    sources,
    spread,
)
from steelyard.analysis.findings.finding import Finding, Rule, Severity
from steelyard.analysis.summary.summary import Summary

SUBJECTS = (runs, comparisons, spread, drift_and_warm_up, nodes, records, sources, network)
RULES: tuple[Rule, ...] = tuple(
    sorted(
        (rule for subject in SUBJECTS for rule in subject.RULES), key=lambda rule: rule.kind.code
    )
)


def find_all(summary: Summary) -> list[Finding]:
    """Return all findings, the most severe first, then by code."""
    return sort_by_severity([finding for rule in RULES for finding in rule.check(summary)])


def sort_by_severity(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, the most severe first, then by code."""
    order = list(Severity)
    return sorted(findings, key=lambda f: (order.index(f.kind.severity), f.kind.code))
