"""Describes a study's conditions in the terms of the claims, and finds the pairs that claims compare.

The facts of a condition (`container`, `round_trip_ms`) are the parameters of its benchmark, its
factors' levels, the number of nodes, and the meaning of its launcher, cache, kernel and network
levels. `has_facts` compares them with required facts. The conditions of a pair differ in nothing
but what the claim compares.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from steelyard.analysis.collect.checks import KERNEL_RELEASE as KERNEL
from steelyard.analysis.collect.network import FACTOR as NETWORK
from steelyard.analysis.papers.claim_files import ABSENT, Above, Claim, Facts
from steelyard.analysis.summary.numeric_factors import (
    UNITS,
    Specification,
    convert_to_base_units,
    parse_specification,
)
from steelyard.analysis.summary.rows import Group, Row
from steelyard.analysis.summary.study_data import StudyData
from steelyard.analysis.summary.summary import Summary, build_summary
from steelyard.facts.netem_keys import VALUES
from steelyard.jobscripts.errors import UnknownBenchmarkError
from steelyard.jobscripts.registry import load

BARE = "bare"
LAUNCHER = "launcher"
CACHE = "cache"
# Facts of a launcher: two conditions may differ in all of them if one is a container.
CONTAINER = "container"
LAUNCHER_FACTS = frozenset(
    (CONTAINER, "launcher_kind", "containers", "launcher_network", "ranks_across")
)
# Never compared, because they are derived from other facts or other facts are derived from them.
RANKS_EACH, MACHINES = "ranks_per_container", "client_machines"
NOT_COMPARED = frozenset((NETWORK, LAUNCHER, RANKS_EACH, MACHINES))
NO_SERVER = "local"  # a mode of xrootd: its clients read a file on their own node
SCALES = {v.key: UNITS[v.kind] for v in VALUES if v.row == "KEY" and v.kind in UNITS}
SUFFIX = {"ms": "ms", "%": "percent", "Mbit/s": "mbit"}
DELAY = "round_trip_ms"

Key = tuple[str, str]  # variant, condition


@dataclass(frozen=True)
class Studies:
    """Studies for one paper with the facts of each condition; labels of conditions are unique."""

    summaries: Sequence[Summary]
    facts: Mapping[Key, dict[str, Any]]
    by_condition: Mapping[Key, Summary] = field(repr=False)
    rows: Mapping[str, list[Row]] = field(repr=False)  # with values, by metric

    @classmethod
    def of(cls, parts: Sequence[tuple[Summary, Sequence[Row]]]) -> Studies:
        """Make it from summaries, each with additional derived rows."""
        facts, by_condition = {}, {}
        rows: dict[str, list[Row]] = {}
        for summary, derived in parts:
            for group in summary.groups:
                key = group.variant, group.label
                facts[key], by_condition[key] = collect_facts(summary, group), summary
            for row in (*summary.rows, *derived):
                if row.values:
                    rows.setdefault(row.metric.name, []).append(row)
        return cls([summary for summary, _ in parts], facts, by_condition, rows)

    def find_facts(self, row: Row) -> dict[str, Any]:
        """Return the facts of a row's runs."""
        return self.facts[row.group.variant, row.group.label]

    def find_study(self, row: Row) -> Summary:
        """Return the study that a row belongs to."""
        return self.by_condition[row.group.variant, row.group.label]

    def add_study_name(self, summary: Summary, text: str) -> str:
        """Return the text, after the study's name if there are several studies."""
        several = len(self.summaries) > 1
        return f"{summary.data.meta.study}: {text}" if several else text


def collect_facts(summary: Summary, group: Group) -> dict[str, Any]:
    """Return the facts: parameters, levels, nodes, and the meaning of special levels."""
    name = group.runs[0].benchmark
    given = summary.data.parameters.get(group.variant, {})
    facts = read_defaults(name) | given | group.condition | {"benchmark": name}
    sizes = {len(run.nodes) for run in group.runs if run.nodes}
    if len(sizes) == 1:
        facts["nodes"] = sizes.pop()
    facts |= launcher_facts(str(facts.get(LAUNCHER, BARE)))
    if CACHE in facts:
        facts |= cache_facts(str(facts[CACHE]))
    if KERNEL in group.condition:
        levels = {str(one.condition[KERNEL]) for one in summary.groups if KERNEL in one.condition}
        facts |= kernel_facts(str(group.condition[KERNEL]), levels)
    alone = has_clients(name, group)
    ends = 1 if alone or facts.get("nodes", 1) == 1 or facts.get("url") else 2
    facts |= network_facts(parse_specification(str(facts.get(NETWORK, "none"))), ends)
    return facts | rank_facts(facts, 1 if alone else facts.get("nodes")) | machine_facts(facts)


def read_defaults(benchmark: str) -> dict[str, Any]:
    """Return a benchmark's default parameters; empty if the benchmark is not installed."""
    try:
        return dict(load(benchmark).defaults())
    except UnknownBenchmarkError:
        return {}


def has_clients(benchmark: str, group: Group) -> bool:
    """Return whether each of the run's nodes has its own client.

    The data are then on none of these nodes, and a delay applies at only one end of the path.
    """
    try:
        return "clients" in group.condition and load(benchmark).span == "node"
    except UnknownBenchmarkError:
        return False


def rank_facts(facts: Facts, nodes: int | None) -> dict[str, Any]:
    """Return the ranks per container of a program on `nodes` nodes, if all have equally many."""
    count, ranks = facts.get("containers"), facts.get("ranks")
    if not isinstance(count, int) or not isinstance(ranks, int) or nodes is None:
        return {}
    if count > 1 and not facts["ranks_across"]:
        return {}  # each container has its own program
    each, rest = divmod(ranks, count * nodes)
    return {} if rest else {RANKS_EACH: each}


def machine_facts(facts: Facts) -> dict[str, Any]:
    """Return on how many nodes xrootd's clients are (its job.sh distributes them)."""
    clients, nodes = facts.get("clients"), facts.get("nodes")
    if "client_nodes" not in facts or not isinstance(clients, int) or nodes is None:
        return {}
    if facts["mode"] == NO_SERVER or (facts["server"] == "same" and not facts["url"]):
        return {MACHINES: 1}
    free = nodes if facts["url"] else max(nodes - 1, 1)
    return {MACHINES: min(clients, free, facts["client_nodes"] or free)}


def launcher_facts(level: str) -> dict[str, Any]:
    """Return the facts of `podman:image,containers=4`: a container, podman, four per node."""
    head, *options = level.split(",")
    kind = head.split(":")[0]
    values = dict(option.split("=", 1) for option in options if "=" in option)
    facts: dict[str, Any] = {"launcher_kind": kind, CONTAINER: kind != BARE}
    if kind == BARE:
        return facts
    count = values.get("containers", "1")
    facts["containers"] = int(count) if count.isdecimal() else count
    facts["launcher_network"] = values.get("network", "host")
    facts["ranks_across"] = values.get("ranks") == "across"
    return facts


def cache_facts(level: str) -> dict[str, Any]:
    """Return the facts of `cold:cvmfs=300`: cold, and CVMFS' cache limited to 300 MB."""
    kind, _, limit = level.partition(":cvmfs=")
    return {CACHE: kind} | ({"cvmfs_limit_mb": int(limit)} if limit.isdecimal() else {})


def kernel_facts(level: str, levels: Collection[str]) -> dict[str, Any]:
    """Return whether a kernel is the newest or the oldest of two or more; 6.2 < 6.12."""
    ages = sorted(levels, key=parse_version)
    if len(ages) < 2 or level not in (ages[0], ages[-1]):
        return {}
    return {"kernel_age": "newest" if level == ages[-1] else "oldest"}


def parse_version(release: str) -> list[int]:
    """Return 6, 12, 1 for `6.12-rc1`."""
    return [int(number) for number in re.findall(r"\d+", release)]


def network_facts(found: Specification, ends: int) -> dict[str, Any]:
    """Return `loss_percent`, `rate_mbit` and so on; a delay at both `ends` counts twice."""
    facts: dict[str, Any] = {DELAY: 0.0}
    for key, number in found.numbers.items():
        unit, scale = SCALES[key]
        if key == "delay":
            facts[DELAY] = float(number * scale) * ends
        else:
            facts[f"{key}_{SUFFIX[unit]}"] = float(number * scale)
    for option in sorted(found.rest):
        key, _, value = option.partition("=")
        seconds = convert_to_base_units(value) if key == "rto_min" else None
        facts[f"{key}_ms" if seconds else f"network_{key}"] = (
            float(seconds * 1000) if seconds else value
        )
    if "network_delay" in facts:  # a delay with jitter is no single number
        del facts[DELAY]
    return facts


def has_facts(facts: Facts, wanted: Facts) -> bool:
    """Return whether the facts meet every requirement."""
    return all(has_fact(facts.get(name), value) for name, value in wanted.items())


def has_fact(found: Any, wanted: Any) -> bool:
    """Compare with a number (within 1 %), text with `*`, any of a list, Above, or ABSENT."""
    if isinstance(wanted, list):
        return any(has_fact(found, one) for one in wanted)
    if isinstance(wanted, Above):
        return isinstance(found, int | float) and found > wanted.limit
    if wanted == ABSENT:
        return found is None
    if isinstance(wanted, str):
        return fnmatchcase(str(found), wanted)
    if isinstance(wanted, bool) or not isinstance(found, int | float):
        return bool(found == wanted)
    return math.isclose(found, wanted, rel_tol=0.01)


def describe_missing_runs(studies: Studies, sides: Sequence[Facts]) -> str:
    """Describe the sides of a comparison that no run has; empty if all sides have runs."""
    absent: dict[str, list[Any]] = {}
    for side in sides:
        for name, value in side.items():
            if value not in absent.get(name, ()) and not has_runs(studies, {name: value}):
                absent.setdefault(name, []).append(value)
    if absent:
        return f"no runs with {format_facts(absent)}"
    for side in sides:
        if not has_runs(studies, side):
            rare = {
                name: value
                for name, value in side.items()
                if not all(has_facts(facts, {name: value}) for facts in studies.facts.values())
            }
            return f"no runs that have all of {format_facts(rare)}"
    return ""


def has_runs(studies: Studies, wanted: Facts) -> bool:
    """Return whether any condition has all required facts."""
    return any(has_facts(facts, wanted) for facts in studies.facts.values())


def is_equal_except(first: Facts, second: Facts, names: set[str]) -> bool:
    """Return whether two conditions are equal in all other compared facts."""
    free = names | NOT_COMPARED | (LAUNCHER_FACTS if CONTAINER in names else frozenset())
    return all(first.get(n) == second.get(n) for n in (first.keys() | second.keys()) - free)


def format_facts(facts: Facts) -> str:
    """Format `kernel=cg, container=yes`."""
    return ", ".join(f"{name}={format_fact_value(value)}" for name, value in facts.items())


def format_fact_value(value: Any) -> str:
    """Format `yes`, `1 or 2`, `more than 1`."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " or ".join(format_fact_value(one) for one in value)
    if isinstance(value, Above):
        return f"more than {value.limit:g}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def describe_other_sizes(facts: Facts, sizes: Facts) -> Iterator[str]:
    """Yield `class=S for B`, `loss_percent=1 for none`: sizes that differ from the paper's."""
    for name, printed in sizes.items():
        if not has_fact(facts.get(name), printed):
            paper = "none" if printed == ABSENT else format_fact_value(printed)
            yield f"{name}={format_fact_value(facts.get(name))} for {paper}"


Pair = tuple[Row, Row]  # the condition, and what it is compared with
BLOCKS = 1_000_000  # more than a study has


def find_pairs(studies: Studies, claim: Claim, more: Facts) -> list[Pair]:
    """Return the pairs of the first metric with any, or of each metric.

    If there are pairs of the paper's own sizes, only these are returned. `more` has further facts
    of the condition.
    """
    found: list[Pair] = []
    for metric in claim.metrics:
        if not found or claim.every_metric:
            found += find_metric_pairs(studies, claim, metric, more)
    exact = [pair for pair in found if has_facts(studies.find_facts(pair[0]), claim.size)]
    return exact or found


def find_metric_pairs(studies: Studies, claim: Claim, metric: str, more: Facts) -> Iterator[Pair]:
    """Yield pairs within a row's own study, or with another study if its own lacks a side."""
    names = {*claim.level, *claim.against}
    rows = studies.rows.get(metric, [])
    level = {**claim.where, **claim.level, **more}
    against = {**claim.where, **claim.against}
    possible_bases = [base for base in rows if has_facts(studies.find_facts(base), against)]
    for row in rows:
        facts = studies.find_facts(row)
        if not has_facts(facts, level):
            continue
        bases = [
            base
            for base in possible_bases
            if base is not row and is_equal_except(facts, studies.find_facts(base), names)
        ]
        yield from ((row, base) for base in select_same_study(studies, row, bases) or bases)


def select_same_study(studies: Studies, row: Row, others: Sequence[Row]) -> list[Row]:
    """Return the rows of the same study as `row`."""
    return [other for other in others if studies.find_study(other) is studies.find_study(row)]


def find_twins(studies: Studies, pair: Pair, others: Sequence[Pair], names: set[str]) -> list[Pair]:
    """Return the pairs that differ from this one only in `names`; of its own study, if any."""
    found = [other for other in others if all(
        is_equal_except(studies.find_facts(a), studies.find_facts(b), names)
        for a, b in zip(pair, other, strict=True)
    )]  # fmt: skip
    return [other for other in found if select_same_study(studies, pair[0], other[:1])] or found


def describe_study_differences(studies: Studies, row: Row, base: Row) -> Iterator[str]:
    """Yield the differences of a pair from two studies."""
    if studies.find_study(row) is studies.find_study(base):
        return
    yield "of two studies, which did not take turns"
    ours, theirs = list_processors(studies, row), list_processors(studies, base)
    if ours != theirs:
        yield f"on {' and '.join(sorted(ours))} against {' and '.join(sorted(theirs))}"


def list_processors(studies: Studies, row: Row) -> set[str]:
    """Return the processor models of a row's runs, as far as there are records."""
    runs = set(row.run_ids)
    records = studies.find_study(row).data.records
    return {one.cpu_model or "unknown processors" for one in records if one.run_id in runs}


# --- several studies -----------------------------------------------------------------------------


def label_summaries(summaries: Sequence[Summary]) -> list[Summary]:
    """Prefix the labels of several studies with the study's name; make their blocks distinct."""
    if len(summaries) == 1:
        return list(summaries)
    return [build_summary(label_data(one.data, index)) for index, one in enumerate(summaries)]


def label_data(data: StudyData, index: int) -> StudyData:
    """Return a study's data with its name in labels, and blocks shifted so that none pair."""
    study = data.meta.study
    runs = [
        replace(
            run,
            label=f"{study}: {run.label}",
            block=None if run.block is None else run.block + BLOCKS * index,
        )
        for run in data.runs
    ]
    values = {
        (variant, f"{study}: {label}", metric): found
        for (variant, label, metric), found in data.values.items()
    }
    return replace(data, runs=runs, values=values)
