"""Findings on nodes that differ from the request or from each other."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from steelyard.analysis.findings.finding import (
    NODE_FACTS,
    Finding,
    Kind,
    Rule,
    Severity,
    collect_facts_by_group,
    format_location,
    format_row_location,
    select_measured_rows,
)
from steelyard.analysis.sources.records import COUNTS_STOLEN_TIME
from steelyard.analysis.stats.basics import median
from steelyard.analysis.stats.hypothesis_tests import holm, kruskal
from steelyard.analysis.stats.number_format import format_quantity
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.sampling_units import group_by_job
from steelyard.analysis.summary.summary import Summary
from steelyard.jobscripts.plurals import counted

SY11 = Kind(
    code="SY11",
    severity=Severity.WARNING,
    title="different nodes under one condition",
    why="The nodes' differences are in the condition's spread.",
    advice=(
        "Differences between nodes widen the interval. Choose nodes of one kind "
        "(`constraint` in [job], or `[place.LEVEL]`), or make the kind of node a factor. "
        "`steelyard probe` prints what a node is."
    ),
    example="x · clients=1: cpu_model AMD EPYC and Intel(R) Xeon(R) Gold 6230 CPU @ 2.10GHz",
    source="docs/study.md",
)


def check_mixed_nodes(summary: Summary) -> Iterator[Finding]:
    facts = collect_facts_by_group(summary)
    places = [
        f"{format_location(group)}: {name} {' and '.join(sorted(values))}"
        for group in summary.groups
        for name, values in facts.get((group.variant, group.label), {}).items()
        if len(values) > 1
    ]
    if places:
        hit = {text.split(": ")[0] for text in places}
        text = f"{counted(len(hit), 'group')} of runs ran on nodes that differ among themselves."
        yield Finding(SY11, text, tuple(places))


SY12 = Kind(
    code="SY12",
    severity=Severity.WARNING,
    title="a condition ran on other nodes than its baseline",
    why="The condition's cost includes the nodes' differences.",
    advice=(
        "The overhead also contains the difference between the nodes. Let both conditions "
        "run on the same kind of node (`constraint` in [job], or `[place.LEVEL]`) and run "
        "`steelyard submit` again."
    ),
    example="x · clients=2: kernel 6.12.1, the baseline's 6.1.0-18-amd64",
    source="docs/study.md",
)


def check_different_baseline(summary: Summary) -> Iterator[Finding]:
    facts, hidden = collect_facts_by_group(summary), list_intended_facts(summary)
    places = []
    for group in summary.groups:
        base = facts.get((group.variant, group.baseline_label or ""), {})
        for name, values in facts.get((group.variant, group.label), {}).items():
            if name in hidden or group.label == group.baseline_label or not base:
                continue
            if values != base[name]:
                own, there = (" and ".join(sorted(v)) or "not known" for v in (values, base[name]))
                places.append(f"{format_location(group)}: {name} {own}, the baseline's {there}")
    if places:
        text = f"{counted(len(places), 'difference')} in what the nodes were."
        yield Finding(SY12, text, tuple(places))


def list_intended_facts(summary: Summary) -> set[str]:
    """Return the facts that a factor changes intentionally between conditions."""
    factors = summary.data.meta.factors
    if "node_type" in factors:
        return set(NODE_FACTS)
    on_purpose = {"launcher": "container", "kernel_release": "kernel"}
    return {fact for factor, fact in on_purpose.items() if factor in factors}


SY13 = Kind(
    code="SY13",
    severity=Severity.NOTE,
    title="jobs may have shared their nodes",
    why="The job's use of a node cannot be separated from its neighbors'.",
    advice=(
        "Joules and network bytes are of the whole node, so they are left out where other "
        "jobs may have shared it. A study requests whole nodes unless [job] has "
        "`exclusive = false`; other jobs need `sbatch --exclusive`. `steelyard report STUDY "
        "--energy-shares` gives lower and upper bounds instead."
    ),
    example="1 of 25 records are of shared nodes.",
    source="docs/collect.md",
)


def check_shared_nodes(summary: Summary) -> Iterator[Finding]:
    records = summary.data.records
    ways = {
        "are of shared nodes": [r for r in records if r.exclusive is False],
        "do not say whether the job was alone": [r for r in records if r.exclusive is None],
    }
    for description, found in ways.items():
        if found:
            yield Finding(
                SY13,
                f"{len(found)} of {counted(len(records), 'record')} {description}.",
                tuple(sorted({record.node for record in found})),
            )


NODE_P = 0.01  # after Holm's correction for all series of the report
MIN_ON_NODE = 5

SY25 = Kind(
    code="SY25",
    severity=Severity.WARNING,
    title="values depend on the node",
    why="A condition's mean then depends on the nodes that it got.",
    advice=(
        "Part of the spread comes from the nodes. Compare a slow and a fast one with "
        "`steelyard compare JOB JOB` (clock, cooling, cables), let every condition run on "
        "all of them, or name the nodes in the study."
    ),
    example="x · clients=1 · seconds: median 10 s on n1, 10.22 s on n2 (p = 0.00073)",
    source="Kruskal & Wallis (1952), JASA 47(260); Holm (1979)",
)


def check_node_effect(summary: Summary) -> Iterator[Finding]:
    tested = {
        row.group.variant + row.group.label + row.metric.name: row
        for row in select_measured_rows(summary)
    }
    by_node = {key: group_values_by_node(row) for key, row in tested.items()}
    p_values = {
        key: p
        for key, nodes in by_node.items()
        if len(nodes) > 1 and (p := kruskal(list(nodes.values()))) is not None
    }
    hit = [
        (tested[key], by_node[key], p)
        for key, p in zip(p_values, holm(list(p_values.values())), strict=True)
        if p <= NODE_P
    ]
    if hit:
        yield Finding(
            SY25,
            f"In {len(hit)} of {len(p_values)} series of a main figure with several nodes "
            "(Kruskal and Wallis' test, Holm).",
            tuple(
                f"{format_row_location(row)}: {describe_nodes(row, nodes)} (p = {p:.2g})"
                for row, nodes, p in hit
            ),
        )


def group_values_by_node(row: Row) -> dict[str, list[float]]:
    """Return the jobs' means by node, or set of nodes, with at least MIN_ON_NODE jobs."""
    nodes = {
        row.group.jobs[run.run_id]: ", ".join(sorted(run.nodes))
        for run in row.group.runs
        if run.nodes
    }
    found: dict[str, list[float]] = {}
    for job, values in group_by_job(row).items():
        if job in nodes:
            found.setdefault(nodes[str(job)], []).append(statistics.fmean(values))
    return {node: values for node, values in found.items() if len(values) >= MIN_ON_NODE}


def describe_nodes(row: Row, nodes: dict[str, list[float]]) -> str:
    """Return `median 9.98 s on n1, 12.1 s on n2`: the lowest and the highest."""
    medians = sorted((median(values), node) for node, values in nodes.items())
    ends = (medians[0], medians[-1])
    text = ", ".join(f"{format_quantity(value, row.metric.unit)} on {node}" for value, node in ends)
    return f"median {text}"


SY30 = Kind(
    code="SY30",
    severity=Severity.WARNING,
    title="runs ran on nodes of another type than their condition says",
    why="The comparison is not the one that the levels' names state.",
    advice=(
        "At least one level ran on nodes of another type than its name says, so do not read the "
        "difference as physical against virtual. `steelyard probe` on a node prints its type; "
        "choose the nodes with `[place.LEVEL]` in the study (docs/study.md)."
    ),
    example="1 group of runs. x · clients=1 node_type=virtual: physical",
    source="docs/study.md",
)


NODE_TYPES = ("physical", "virtual", "container")  # other levels are names that imply no type


def check_other_node_type(summary: Summary) -> Iterator[Finding]:
    if "node_type" not in summary.data.meta.factors:
        return
    facts = collect_facts_by_group(summary)
    places = [
        f"{format_location(group)}: {' and '.join(sorted(found))}"
        for group in summary.groups
        if (wanted := group.condition.get("node_type")) in NODE_TYPES
        and (found := facts.get((group.variant, group.label), {}).get("node_type", set()))
        and found != {str(wanted)}
    ]
    if places:
        text = f"{counted(len(places), 'group')} of runs."
        yield Finding(SY30, text, tuple(places))


SY32 = Kind(
    code="SY32",
    severity=Severity.WARNING,
    title="the CPU time of virtual nodes holds what their host gave to others",
    why="CPU time is then neither what the job used nor what it cost.",
    advice=(
        "CPU seconds are then up to the wall time, however little the host's processor did: "
        "three times too many on a busy one (docs/virtual.md). Compare `elapsed_s`, or keep "
        "the host to the guest alone."
    ),
    example="1 of 25 records. n1",
    source="docs/virtual.md",
)


def check_stolen_time(summary: Summary) -> Iterator[Finding]:
    found = [r for r in summary.data.records if r.vm in COUNTS_STOLEN_TIME]
    if found:
        yield Finding(
            SY32,
            f"{len(found)} of {counted(len(summary.data.records), 'record')}.",
            tuple(sorted({record.node for record in found})),
        )


SY35 = Kind(
    code="SY35",
    severity=Severity.WARNING,
    title="joules are not of the same parts everywhere",
    why=(
        "energy_j is of the whole node where a meter measures it, elsewhere of packages (and "
        "memory): not comparable."
    ),
    advice=(
        "Compare energy only among runs of nodes with the same meters; energy.covers of the "
        "record names the parts, energy.zones what each has used."
    ),
    example="node: 1 record",
    source="docs/sampler.md",
)


def check_different_parts(summary: Summary) -> Iterator[Finding]:
    records: dict[str, int] = {}
    for record in summary.data.records:
        if record.has_energy and record.energy_covers:
            records[record.energy_covers] = records.get(record.energy_covers, 0) + 1
    if len(records) > 1:
        yield Finding(
            SY35,
            f"There are {len(records)} kinds of them.",
            tuple(
                f"{parts}: {counted(number, 'record')}" for parts, number in sorted(records.items())
            ),
        )


RULES = (
    Rule(SY11, check_mixed_nodes),
    Rule(SY12, check_different_baseline),
    Rule(SY13, check_shared_nodes),
    Rule(SY25, check_node_effect),
    Rule(SY30, check_other_node_type),
    Rule(SY32, check_stolen_time),
    Rule(SY35, check_different_parts),
)
