"""Findings on sources that replace others, or disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import (
    Finding,
    Kind,
    Rule,
    Severity,
    format_location,
)
from steelyard.analysis.stats.number_format import format_quantity
from steelyard.analysis.summary.study_data import Disagreement
from steelyard.analysis.summary.summary import Summary
from steelyard.analysis.summary.usage_scope import has_mixed_sources
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.plurals import counted

MOST_PLACES = 20  # the database has all

SY24 = Kind(
    code="SY24",
    severity=Severity.WARNING,
    title="samples, records and the scheduler disagree",
    why="Two counts differ by more than their methods explain: at least one is wrong.",
    advice=(
        "One of them counts something else, or wrongly. The table `checks` has both values "
        "and what was allowed (docs/collect.md); until it is clear, do not build on that "
        "quantity."
    ),
    example="x-51a7535d-001: CPU time: records 10 s, scheduler 20 s",
    source="docs/collect.md",
)


def check_sources_disagree(summary: Summary) -> Iterator[Finding]:
    checks = summary.data.checks
    if checks.disagreements:
        kinds = Counter(METRICS[d.quantity].words for d in checks.disagreements)
        runs = len({d.run_id for d in checks.disagreements})
        yield Finding(
            SY24,
            f"{', '.join(kinds)}: further apart than the ways of counting explain in {runs} of "
            f"{counted(checks.runs, 'run')} that could be checked.",
            tuple(describe_disagreement(d) for d in checks.disagreements[:MOST_PLACES]),
        )


def describe_disagreement(found: Disagreement) -> str:
    """Return `RUN on NODE: CPU time: records 10.00 s, scheduler 20.00 s`."""
    where = f"{found.run_id} on {found.node}" if found.node else found.run_id
    a, b = (format_quantity(value, found.unit) for value in (found.value_a, found.value_b))
    return f"{where}: {METRICS[found.quantity].words}: {found.source_a} {a}, {found.source_b} {b}"


SY33 = Kind(
    code="SY33",
    severity=Severity.NOTE,
    title="programs of the scheduler replaced its accounting",
    why="They report a job's last start only, forget it after a while, and omit who deleted it.",
    advice=(
        "Ask the administrator for the right to read the server's accounting logs, or for a copy "
        "of them (STEELYARD_PBS_ACCOUNTING), and collect again: what the logs say takes the place."
    ),
    example="qstat: 2 runs",
    source="docs/collect.md",
)


def check_stand_ins(summary: Summary) -> Iterator[Finding]:
    counts = summary.data.stand_ins
    if counts:
        runs = sum(counts.values())
        places = tuple(f"{name}: {counted(count, 'run')}" for name, count in counts.items())
        yield Finding(SY33, f"The end of {counted(runs, 'run')} is known from them.", places)


SY34 = Kind(
    code="SY34",
    severity=Severity.WARNING,
    title="two meters of one part of a node disagree",
    why=(
        "They differ by more than 2 % (10 % where one integrates watts), their resolution and "
        "the time between readings: at least one is wrong."
    ),
    advice=(
        "The record's energy.zones has both. Find out which is right (a meter at the wall, a load "
        "that is known) before joules of this node are compared with another's."
    ),
    example="x-51a7535d-001 on n1: package: perf 700 J, powercap 1 kJ",
    source="docs/sampler.md",
)


def check_meters_disagree(summary: Summary) -> Iterator[Finding]:
    apart = summary.data.meters
    if apart:
        places = len({(found.run_id, found.node) for found in apart})
        yield Finding(
            SY34,
            f"In {places} of {counted(len(summary.data.records), 'record')}.",
            tuple(
                f"{found.run_id} on {found.node}: {found.covers}: "
                + ", ".join(
                    f"{meter} {format_quantity(joules, 'J')}"
                    for meter, joules in zip(found.meters, found.joules, strict=True)
                )
                for found in apart[:MOST_PLACES]
            ),
        )


SY37 = Kind(
    code="SY37",
    severity=Severity.WARNING,
    title="memory, CPU time or bytes were counted in different ways",
    why=(
        "The methods differ two- to fourfold in memory, and counts of a whole job include its "
        "shells."
    ),
    advice=(
        "Do not compare memory, CPU time and bytes between these conditions; times and "
        "the benchmark's own figures are not affected. `steelyard doctor` on a node of "
        "each shows what is missing there. Set the nodes up alike, then repeat the study."
    ),
    example="x · clients=2: memory: sum of resident sets and the job's cgroup",
    source="docs/sampler.md",
)


def check_different_usage(summary: Summary) -> Iterator[Finding]:
    places = []
    for group in summary.groups:
        labels = {group.label, group.baseline_label or group.label}
        found = [
            one
            for label in sorted(labels)
            if (one := summary.data.usage_sources.get((group.variant, label))) is not None
        ]
        for metric, what in (("max_memory_bytes", "memory"), ("cpu_s", "CPU time and bytes")):
            ways = has_mixed_sources(found, metric)
            if ways:
                places.append(f"{format_location(group)}: {what}: {' and '.join(ways)}")
    if places:
        text = f"{counted(len(places), 'figure')} counted in one way in a condition and in another in its baseline."
        yield Finding(SY37, text, tuple(places[:MOST_PLACES]))


RULES = (
    Rule(SY37, check_different_usage),
    Rule(SY24, check_sources_disagree),
    Rule(SY33, check_stand_ins),
    Rule(SY34, check_meters_disagree),
)
