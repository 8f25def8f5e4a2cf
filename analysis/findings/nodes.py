"""Findings about the nodes: what they were, what they left, how well they were sampled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from operator import attrgetter

from steelyard.analysis.findings.finding import Check, Code, Finding, counted, place
from steelyard.analysis.sources.records import COUNTS_STOLEN_TIME
from steelyard.analysis.summary.load import Record
from steelyard.analysis.summary.summary import Summary

MISSED_SHARE = 0.01


def find_no_energy(summary: Summary) -> Iterator[Finding]:
    """SY07."""
    records = summary.data.records
    without = [record for record in records if record.complete and not record.has_energy]
    if without:
        reasons = Counter(record.no_energy_reason or "no reason given" for record in without)
        yield Finding(
            Code.NO_ENERGY,
            f"{len(without)} of {counted(len(records), 'record')} have no joules.",
            tuple(f"{reason}: {number} records" for reason, number in reasons.most_common(10)),
        )


def find_missing_records(summary: Summary) -> Iterator[Finding]:
    """SY08."""
    gaps = [gap for gap in summary.data.gaps if gap.what == "record"]
    if gaps:
        nodes = Counter(gap.node or "node not known" for gap in gaps)
        yield Finding(
            Code.MISSING_RECORDS,
            f"{counted(len(gaps), 'record')} of a job on a node could not be found.",
            tuple(f"{node}: {number}" for node, number in nodes.most_common(20)),
        )


def find_incomplete(summary: Summary) -> Iterator[Finding]:
    """SY09."""
    cut = [record for record in summary.data.records if not record.complete]
    if cut:
        yield Finding(
            Code.INCOMPLETE_RECORDS,
            f"{len(cut)} of {counted(len(summary.data.records), 'record')} do not reach to the "
            f"job's end.",
            tuple(
                f"{r.run_id} on {r.node}: {r.incomplete_reason or 'no reason given'}" for r in cut
            ),
        )


def find_missed_samples(summary: Summary) -> Iterator[Finding]:
    """SY10: any sample lost, or more than 1 % of the deadlines missed."""
    bad = [record for record in summary.data.records if sampled_badly(record)]
    if bad:
        yield Finding(
            Code.MISSED_SAMPLES,
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


NODE_FACTS = ("node_type", "vm", "container", "kernel", "cpu_model", "cpus")


def facts_by_group(summary: Summary) -> dict[tuple[str, str], dict[str, set[str]]]:
    """What the nodes of each group were."""
    where = {run.run_id: (run.variant, run.label) for run in summary.data.runs if run.counts}
    fact = [attrgetter(name) for name in NODE_FACTS]
    # Most records of a group say the same: told apart once, then taken to pieces.
    said: dict[tuple[str, str], set[tuple[object, ...]]] = {}
    for record in summary.data.records:
        if record.run_id in where:
            rows = said.setdefault(where[record.run_id], set())
            rows.add(tuple([get(record) for get in fact]))
    return {
        key: {
            name: {str(row[place]) for row in rows if row[place] is not None}
            for place, name in enumerate(NODE_FACTS)
        }
        for key, rows in said.items()
    }


def hidden_facts(summary: Summary) -> set[str]:
    """Facts that a factor changes on purpose from condition to condition."""
    factors = summary.data.meta.factors
    if "node_type" in factors:
        return set(NODE_FACTS)
    return {"container"} if "launcher" in factors else set()


def find_mixed(summary: Summary) -> Iterator[Finding]:
    """SY11."""
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
        yield Finding(Code.MIXED_NODES, text, tuple(places))


def find_unlike_baseline(summary: Summary) -> Iterator[Finding]:
    """SY12."""
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
        yield Finding(Code.UNLIKE_BASELINE, text, tuple(places))


def find_other_type(summary: Summary) -> Iterator[Finding]:
    """SY30."""
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
        yield Finding(Code.OTHER_NODE_TYPE, text, tuple(places))


def program_facts(summary: Summary) -> dict[tuple[str, str], dict[str, set[str]]]:
    """What the programs of each group's runs said of themselves."""
    facts: dict[tuple[str, str], dict[str, set[str]]] = {}
    for run in summary.data.runs:
        if run.counts and run.run_id in summary.data.program_tags:
            said = facts.setdefault((run.variant, run.label), {})
            for key, values in summary.data.program_tags[run.run_id].items():
                said.setdefault(key, set()).update(values)
    return facts


def find_other_program(summary: Summary) -> Iterator[Finding]:
    """SY31: also where the node type is a factor, for there it is the question's confounder."""
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
        yield Finding(Code.OTHER_PROGRAM, text, tuple(places))


def find_shared(summary: Summary) -> Iterator[Finding]:
    """SY13."""
    records = summary.data.records
    ways = {
        "are of shared nodes": [r for r in records if r.exclusive is False],
        "do not say whether the job was alone": [r for r in records if r.exclusive is None],
    }
    for words, found in ways.items():
        if found:
            yield Finding(
                Code.SHARED_NODES,
                f"{len(found)} of {counted(len(records), 'record')} {words}.",
                tuple(sorted({record.node for record in found})),
            )


def find_stolen_time(summary: Summary) -> Iterator[Finding]:
    """SY32."""
    found = [r for r in summary.data.records if r.vm in COUNTS_STOLEN_TIME]
    if found:
        yield Finding(
            Code.STOLEN_TIME,
            f"{len(found)} of {counted(len(summary.data.records), 'record')}.",
            tuple(sorted({record.node for record in found})),
        )


def find_not_undone(summary: Summary) -> Iterator[Finding]:
    """SY23."""
    left = [node for node in summary.data.network if node.undone is False]
    if left:
        yield Finding(
            Code.NOT_UNDONE,
            f"After {counted(len(left), 'job')} on a node.",
            tuple(f"{n.node}: {n.requested} of {n.run_id}" for n in left),
        )


NODE_CHECKS: tuple[Check, ...] = (
    find_no_energy,
    find_missing_records,
    find_incomplete,
    find_missed_samples,
    find_mixed,
    find_unlike_baseline,
    find_other_type,
    find_other_program,
    find_shared,
    find_stolen_time,
    find_not_undone,
)
