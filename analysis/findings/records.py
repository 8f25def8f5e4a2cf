"""Findings on missing or truncated records and samples, and on sources that disagree or replace others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from steelyard.analysis.findings.finding import Finding, Kind, Rule, Severity, format_location
from steelyard.analysis.stats.number_format import format_quantity
from steelyard.analysis.summary.study_data import Disagreement, Record
from steelyard.analysis.summary.summary import Summary
from steelyard.analysis.summary.usage_scope import has_mixed_sources
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.plurals import counted

SY07 = Kind(
    code="SY07",
    severity=Severity.NOTE,
    title="no energy was measured",
    why="These runs are in no mean of joules. What was not measured is null, never 0.",
    advice=(
        "Energy needs RAPL counters (/sys/class/powercap) that root can read, which "
        "physical nodes have, mostly. `steelyard-node doctor` on a node prints which "
        "meters it has."
    ),
    example="no RAPL: /sys/class/powercap is absent: 1 record",
    source="docs/admin.md",
)


def check_no_energy(summary: Summary) -> Iterator[Finding]:
    records = summary.data.records
    without = [record for record in records if record.complete and not record.has_energy]
    if without:
        reasons = Counter(record.no_energy_reason or "no reason given" for record in without)
        yield Finding(
            SY07,
            f"{len(without)} of {counted(len(records), 'record')} have no joules.",
            tuple(
                f"{reason}: {counted(number, 'record')}"
                for reason, number in reasons.most_common(10)
            ),
        )


SY08 = Kind(
    code="SY08",
    severity=Severity.WARNING,
    title="nodes left no record",
    why="Nothing is known of such a node: no joules, bytes, CPU time or tags.",
    advice=(
        "Run `steelyard doctor` on these nodes: is the plugin installed, and is the "
        "record folder on a file system that `steelyard collect` can read? Totals of "
        "these runs are missing, not 0."
    ),
    example="1 record of a job on a node could not be found.",
    source="docs/collect.md",
)


def check_missing_records(summary: Summary) -> Iterator[Finding]:
    gaps = [gap for gap in summary.data.gaps if gap.kind == "record"]
    if gaps:
        nodes = Counter(gap.node or "node not known" for gap in gaps)
        yield Finding(
            SY08,
            f"{counted(len(gaps), 'record')} of a job on a node could not be found.",
            tuple(f"{node}: {number}" for node, number in nodes.most_common(20)),
        )


PROCESSES = "processes"  # incomplete_of of a record whose node's counters are complete

SY09 = Kind(
    code="SY09",
    severity=Severity.WARNING,
    title="records do not cover the whole job",
    why="A total that misses a part of the job is too small.",
    advice=(
        "Incomplete totals are in no mean. Where the processes' use was not counted, CPU time, memory "
        "and bytes are left out; joules and network bytes are complete. `steelyard show JOB` prints "
        "what is missing, `steelyard doctor` on the node what would count it."
    ),
    example="x-51a7535d-013 on n1: the sampler ended before the job: a kill",
    source="docs/formats.md",
)


def check_incomplete_records(summary: Summary) -> Iterator[Finding]:
    cut = [record for record in summary.data.records if not record.complete]
    if cut:
        yield Finding(
            SY09,
            f"{len(cut)} of {counted(len(summary.data.records), 'record')} are incomplete.",
            tuple(
                f"{r.run_id} on {r.node}: {describe_missing(r)}: "
                f"{r.incomplete_reason or 'no reason given'}"
                for r in cut
            ),
        )


def describe_missing(record: Record) -> str:
    """Return what is missing: only the processes' usage, or all after the sampler's end."""
    if record.incomplete_of == PROCESSES:
        return "what the processes used was not counted"
    return "the sampler ended before the job"


MISSED_SHARE = 0.01  # of the deadlines

SY10 = Kind(
    code="SY10",
    severity=Severity.NOTE,
    title="the sampler lost samples or was late",
    why="What happened between distant samples is in no figure over time.",
    advice=(
        "The node was overloaded or its disk full. Totals are right, since they are "
        "counters; figures over time have holes. Take fewer samples: `sbatch "
        "--sample-rate=1`, or `rate=1` in plugstack.conf."
    ),
    example="x-51a7535d-013 on n1: 3 lost, 0 late, of 11",
    source="docs/formats.md",
)


def check_missed_samples(summary: Summary) -> Iterator[Finding]:
    """Find records with lost samples, or with more than 1 % of the deadlines missed."""
    bad = [record for record in summary.data.records if has_missed_samples(record)]
    if bad:
        yield Finding(
            SY10,
            f"In {len(bad)} of {counted(len(summary.data.records), 'record')}.",
            tuple(
                f"{r.run_id} on {r.node}: {r.samples_lost or 0} lost, "
                f"{r.missed_deadlines or 0} late, of {r.samples}"
                for r in bad
            ),
        )


def has_missed_samples(record: Record) -> bool:
    late = (record.missed_deadlines or 0) > MISSED_SHARE * (record.samples or 0)
    return late or bool(record.samples_lost)


# Gaps of records have their own findings.
RECORD_GAPS = frozenset(("record", "incomplete_record"))

SY17 = Kind(
    code="SY17",
    severity=Severity.NOTE,
    title="other things were missing",
    why="Nothing missing counts as 0.",
    advice="The section on gaps lists each with its reason.",
    example="1 thing that should be there. accounting: 1",
    source="docs/formats.md",
)


def check_gaps(summary: Summary) -> Iterator[Finding]:
    gaps = [gap for gap in summary.data.gaps if gap.kind not in RECORD_GAPS]
    if gaps:
        kinds = Counter(gap.kind for gap in gaps)
        places = tuple(f"{kind}: {number}" for kind, number in kinds.most_common())
        yield Finding(SY17, f"{counted(len(gaps), 'thing')} that should be there.", places)


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
    Rule(SY07, check_no_energy),
    Rule(SY08, check_missing_records),
    Rule(SY09, check_incomplete_records),
    Rule(SY10, check_missed_samples),
    Rule(SY17, check_gaps),
    Rule(SY24, check_sources_disagree),
    Rule(SY33, check_stand_ins),
    Rule(SY34, check_meters_disagree),
    Rule(SY37, check_different_usage),
)
