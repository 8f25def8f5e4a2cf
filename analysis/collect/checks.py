"""Checks of a run's levels, and the table `checks`: comparisons of sources that count the same.

A run must be executed under its network, cache and kernel levels, without suspension. Network
conditions, caches and kernel releases come from the records of the run's nodes. Suspension comes
from the accounting: the times of a suspended job may include the suspension.

Samples, records and the scheduler count joules, bytes and CPU time independently. If two sources
differ by more than their methods explain, one of them is wrong, and the report shows it. Only
complete data are compared: complete records, samples that were read to their end, and started
attempts with a record of every node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.collect.network import FACTOR as NETWORK
from steelyard.analysis.collect.network import NO_LEVEL, find_conditions, normalize_specification
from steelyard.analysis.collect.record_import import find_missing_nodes
from steelyard.analysis.sources import sample_csv
from steelyard.analysis.sources.pbs.accounting_rows import HOOK
from steelyard.facts.quantities import COUNTERS, METRICS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from steelyard.analysis.collect.attempt_building import Attempt
    from steelyard.analysis.sources.records import Record
    from steelyard.analysis.sources.study_files import PlannedRun


def check_network(run: PlannedRun, attempt: Attempt) -> str | None:
    """Return why a completed run did not meet its level of the factor `network`; None: it did."""
    level = run.condition.get(NETWORK)
    documents = {n: d for n, r in attempt.records.items() if (d := find_conditions(r)) is not None}
    reasons = [
        reason
        for node, d in sorted(documents.items())
        for reason in find_network_faults(node, d, level)
    ]
    if documents and level not in (None, NO_LEVEL):
        reasons += find_unconditioned_nodes(attempt.records)
    if reasons:
        return "; ".join(reasons)
    if level in (None, NO_LEVEL) or documents:
        return None
    if not attempt.records:
        return f"{NETWORK}={level} was asked for, and no record says whether it was applied"
    return f"{NETWORK}={level} was asked for, and not applied on any node"


def find_network_faults(node: str, document: Mapping[str, Any], level: object) -> Iterator[str]:
    """Yield the faults of the conditions on one node."""
    if document.get("valid") is False:
        yield f"{node}: {document.get('invalid_reason') or 'invalid, the record does not say why'}"
    if document.get("undone") is False:
        yield f"{node}: the conditions were not undone"
    requested = document.get("requested")
    if level is None or not isinstance(requested, str):
        return
    if normalize_specification(requested) != normalize_specification(str(level)):
        yield f"{node}: the study's level is {NETWORK}={level}, the job had {requested}"


def find_unconditioned_nodes(records: Mapping[str, Record]) -> Iterator[str]:
    """Yield nodes from which the job opened connections without its condition."""
    for node, record in sorted(records.items()):
        if find_conditions(record) is None and (record.get("tcp.connections") or 0) > 0:
            yield f"{node}: the job has sent from there, and its condition was not applied there"


CACHE, COLD, LIMIT = "cache", "cold", ":cvmfs="
DROPPED = ("page cache", "dentries and inodes")  # as steelyard-node reports them


def check_cache(run: PlannedRun, attempt: Attempt) -> str | None:
    """Return why a completed run was not under its cache level.

    None: it was, or its study has no such factor.
    """
    level = run.condition.get(CACHE)
    if level is None:
        return None
    cold, _, limit_mb = str(level).partition(LIMIT)
    records = sorted(attempt.records.items())
    if cold != COLD:
        found = [f"{node}: they were dropped" for node, r in records if r.get("cache") is not None]
    elif not records:
        found = ["no record says what was done to the nodes' caches"]
    else:
        needed = (*DROPPED, *([f"CVMFS limit {limit_mb} MB"] if limit_mb else []))
        found = [
            fault for node, record in records for fault in find_cache_faults(node, record, needed)
        ]
        found += [f"{node} left no record" for node in find_missing_nodes(attempt)]
        if (attempt.tries or 1) > 1:
            found.append(
                f"the run was begun {attempt.tries} times in one job, which drops them once"
            )
    return f"{CACHE}={level} was requested: {'; '.join(found)}" if found else None


def find_cache_faults(node: str, record: Record, needed: tuple[str, ...]) -> Iterator[str]:
    """Yield the caches of a node that were not dropped, and refusals."""
    document = record.get("cache")
    if not isinstance(document, dict):
        yield f"{node}: {record.missing_reason('cache') or 'its caches were not dropped'}"
        return
    done, refused = ([str(one) for one in document.get(key) or ()] for key in ("done", "refused"))
    not_done = [one for one in needed if one not in done]
    if not_done:
        yield f"{node}: {', '.join(not_done)}: not done"
    yield from (f"{node}: refused: {one}" for one in refused)


KERNEL_RELEASE = "kernel_release"


def is_release_of(level: object, release: str | None) -> bool:
    """Whether `uname -r` begins with the level as a complete number: 6.1 is 6.1.176, not 6.18.5."""
    text = str(level)
    if release is None or not release.startswith(text):
        return False
    following = release[len(text) : len(text) + 1]
    return not (text[-1].isdigit() and following.isdigit())


def check_kernel_release(run: PlannedRun, attempt: Attempt) -> str | None:
    """Return why a completed run was not under its kernel release.

    None: it was, or its study has no such factor.
    """
    level = run.condition.get(KERNEL_RELEASE)
    if level is None:
        return None
    if not attempt.records:
        return f"{KERNEL_RELEASE}={level} was asked for, and no record says what the nodes ran"
    found = {node: r.get("probe.kernel.release") for node, r in sorted(attempt.records.items())}
    others = [
        f"{node} ran Linux {re.sub(r'[^ -~]', '?', release)}" if release else f"{node}: not told"
        for node, release in found.items()
        if not is_release_of(level, release)
    ]
    return f"{KERNEL_RELEASE}={level} was asked for: {', '.join(others)}" if others else None


SLURM = "slurm"  # only Slurm: a PBS walltime misses more than suspension, as Torque's epilogues


def check_suspension(_run: PlannedRun, attempt: Attempt) -> str | None:
    """Return why a completed run's times may include suspension; None: no suspension is known."""
    row = attempt.row
    if attempt.scheduler != SLURM or row is None or not row.suspended_s:
        return None
    return f"its job was suspended for {row.suspended_s:.10g} s, which its times may include"


@dataclass(frozen=True, slots=True)
class Bound:
    """How far two sources may differ: share x the larger value + per_node x nodes.

    `rule` is `equal`, `not more` or `not less`. With `not more` the second source counts only a
    part and may be smaller by any amount. With `not less` this applies to the first source.
    """

    share: float
    per_node: float
    rule: str
    why: str

    def sql(self, a: str, b: str, nodes: str) -> str:
        """Return the bound as an SQL expression, in the quantity's unit."""
        return f"{self.share!r} * greatest(abs({a}), abs({b})) + {self.per_node!r} * {nodes}"


# A record's totals are those of the sampler's last reading, which is also the last line of its
# samples (docs/formats.md part 2). Samples have six decimals, a record has all.
SAME_READING = "both are the sampler's last reading: six decimals in the one, all in the other"
WHOLE = Bound(0.0, 0.0, "equal", SAME_READING)
REAL = Bound(1e-6, 1e-5, "equal", SAME_READING)

# The record of a command (`steelyard run`, a local run) has the usage that wait4 returned at its
# end: of all processes below it that ended, also those that no sample saw. If the samples have
# more, by more than the clock ticks in which some kernels count, the record keeps the sampler's own
# totals (plugins/node/record/end.c).
TICKS_S = 0.02
BY_WAIT4 = {"cpu_s": ("cpu", "rusage")} | dict.fromkeys(
    ("rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes"), ("io", "reaped")
)

# How sacct counts a quantity, and the bound that follows.
TO_SCHEDULER = {
    "cpu_s": Bound(
        0.05,
        0.5,
        "not more",
        "Slurm adds the times of tasks and of what they have waited for: what outlives its parent, "
        "as a server does that is stopped with the step, is not in them (seen: 1.7 s of 3.9); the "
        "sampler reads the job's cgroup or processes, from after its start to before its end: "
        "0.5 s a node for what runs between, and 5 % for the clock ticks (10 ms) in which kernels "
        "without exact accounting count",
    ),
    "rchar_bytes": Bound(
        0.02,
        4e6,
        "not more",
        "sacct's MaxDiskRead is rchar of the one task of a step that read most, and is polled: the "
        "sum over the steps is a part; it is rounded to 0.01 MiB, and the extern step's own "
        "files are in it: 2 % and 4 MB a node",
    ),
    "wchar_bytes": Bound(0.02, 4e6, "not more", "as rchar_bytes, from MaxDiskWrite"),
    "energy_j": Bound(
        0.1,
        200.0,
        "equal",
        "both read RAPL, at other times: Slurm polls a node at its own interval, 200 J are one "
        "second of a node under load, and 10 % for its steps' ends",
    ),
}

# `0.01M` -> 10485.76 bytes, as Slurm writes them even under --noconvert.
BYTES = """
CREATE OR REPLACE TEMP MACRO sacct_bytes(t) AS
TRY_CAST(rtrim(t, 'KMGTP') AS DOUBLE) * pow(1024, instr('KMGTP', right(t, 1)))"""
# `1-02:03:04`, `02:03:04`, `03:04.567` -> seconds.
SECONDS = """
CREATE OR REPLACE TEMP MACRO sacct_seconds(t) AS
list_sum(list_transform(list_reverse(string_split(split_part(t, '-', -1), ':')),
    lambda part, place: TRY_CAST(part AS DOUBLE) * pow(60, place - 1)))
+ CASE WHEN contains(t, '-') THEN TRY_CAST(split_part(t, '-', 1) AS DOUBLE) * 86400 ELSE 0 END"""

# One row per attempt, but none for attempts that never started (no clients): if a node refuses a
# condition, Slurm counts its own daemons, and no sampler measures. An energy of 0 J means that
# Slurm has no counter. Energies of steps are never summed.
SCHEDULER = """
CREATE OR REPLACE TEMP TABLE scheduler_totals AS
SELECT run_id, attempt,
    any_value(sacct_seconds(TotalCPU)) FILTER (step IS NULL) AS cpu_s,
    any_value(nullif(TRY_CAST(ConsumedEnergyRaw AS DOUBLE), 0)) FILTER (step IS NULL) AS energy_j,
    sum(sacct_bytes(MaxDiskRead)) FILTER (step IS NOT NULL) AS rchar_bytes,
    sum(sacct_bytes(MaxDiskWrite)) FILTER (step IS NOT NULL) AS wchar_bytes
FROM accounting SEMI JOIN (
    SELECT * FROM attempts WHERE state IN ('completed', 'failed') AND end_unix_s IS NOT NULL
    AND clients IS NOT NULL
) USING (run_id, attempt)
GROUP BY run_id, attempt"""


# What Steelyard's hook in OpenPBS wrote into the accounting for each node (docs/formats.md part 5).
BY_NODE = """
CREATE OR REPLACE TEMP TABLE scheduler_nodes AS
SELECT run_id, attempt, node, {columns} FROM (
    SELECT run_id, attempt, node, hook->('$."' || node || '"') AS told FROM (
        SELECT run_id, attempt, hook, unnest(json_keys(hook)) AS node FROM (
            SELECT run_id, attempt, extra->'$."{resource}"' AS hook FROM accounting
            WHERE step IS NULL AND json_type(extra->'$."{resource}"') = 'OBJECT'
        )
    ) WHERE regexp_full_match(node, '[A-Za-z0-9._-]+')
)"""


def scheduler_nodes() -> str:
    """Return BY_NODE with every counter."""
    cells = (f"TRY_CAST(told->>'{name}' AS DOUBLE) AS {name}" for name in COUNTERS)
    return BY_NODE.format(columns=", ".join(cells), resource=HOOK)


def make_sums_sql(table: str, where: str) -> str:
    """Return SQL for totals over nodes, for the attempts of which `table` has every node."""
    columns = ", ".join(
        f"CASE WHEN count(t.{name}) = count(*) THEN sum(t.{name}) END AS {name}"
        for name in COUNTERS
    )
    return (
        f"SELECT run_id, attempt, count(*) AS nodes, {columns} FROM {table} AS t "
        f"JOIN attempts AS a USING (run_id, attempt) WHERE {where} GROUP BY run_id, attempt "
        f"HAVING count(*) >= any_value(len(a.nodes))"
    )


def make_pair_sql(
    quantity: str, names: tuple[str, str], tables: str, nodes: str, bound: Bound, node: str = "NULL"
) -> str:
    """Return SQL for the rows of one comparison; `tables` joins the sources as a and b."""
    a, b = f"a.{quantity}::DOUBLE", f"b.{quantity}::DOUBLE"
    allowed = bound.sql(a, b, nodes)
    difference = {
        "equal": f"abs({a} - {b})", "not more": f"({b} - {a})", "not less": f"({a} - {b})"
    }[bound.rule]  # fmt: skip
    return (
        f"SELECT a.run_id, a.attempt, {node} AS node, '{quantity}' AS quantity, "
        f"'{METRICS[quantity].unit}' AS unit, '{names[0]}' AS source_a, {a} AS value_a, "
        f"'{names[1]}' AS source_b, {b} AS value_b, '{bound.rule}' AS rule, {allowed} AS bound, "
        f"isfinite({a}) AND isfinite({b}) AND {difference} <= {allowed} AS agrees FROM {tables} "
        f"WHERE a.{quantity} IS NOT NULL AND b.{quantity} IS NOT NULL"
    )


def make_comparisons(filled: frozenset[str]) -> Iterator[str]:
    """Yield the comparisons as SELECT statements, for the tables that have rows.

    Planning all of them would take longer than the rows of a small study.
    """
    if filled >= {"whole_samples", "whole_records"}:
        for quantity in COUNTERS:
            yield from compare_samples_with_records(quantity)
    if filled >= {"whole_records", "scheduler_nodes"}:
        told = "whole_records AS a JOIN scheduler_nodes AS b USING (run_id, attempt, node)"
        for quantity in COUNTERS:
            bound = REAL if METRICS[quantity].is_real else WHOLE
            yield make_pair_sql(quantity, ("records", "scheduler"), told, "1", bound, "a.node")
    for quantity, bound in TO_SCHEDULER.items():
        for source in ("records", "samples"):
            if filled >= {f"{source}_sums", "scheduler_totals"}:
                tables = f"{source}_sums AS a JOIN scheduler_totals AS b USING (run_id, attempt)"
                yield make_pair_sql(quantity, (source, "scheduler"), tables, "a.nodes", bound)


def compare_samples_with_records(quantity: str) -> Iterator[str]:
    """Yield SQL that compares the last sample with the record.

    Records of commands have the usage that wait4 returned.
    """
    both = "whole_samples AS a JOIN ({}) AS b USING (run_id, attempt, node)"
    names, bound = ("samples", "records"), REAL if METRICS[quantity].is_real else WHOLE
    if quantity not in BY_WAIT4:
        yield make_pair_sql(
            quantity, names, both.format("FROM whole_records"), "1", bound, "a.node"
        )
        return
    section, source = BY_WAIT4[quantity]
    is_from_wait4 = (
        f"json_extract_string(record, '$.{section}.source') IS NOT DISTINCT FROM '{source}'"
    )
    wait4_bound = Bound(0.0, TICKS_S if quantity == "cpu_s" else 0.0, "not less", "wait4 has all")
    for where, allowed in ((f"NOT {is_from_wait4}", bound), (is_from_wait4, wait4_bound)):
        records = both.format(f"SELECT * FROM whole_records WHERE {where}")
        yield make_pair_sql(quantity, names, records, "1", allowed, "a.node")


def write_checks(connection: DuckDBPyConnection) -> None:
    """Write the table `checks`, after attempts, records, sources and accounting."""
    for statement in (BYTES, SECONDS, SCHEDULER, scheduler_nodes()):
        connection.execute(statement)
    views = {
        "whole_records": "SELECT * FROM records WHERE complete",
        # A truncated record has truncated samples. A full disk truncates only the samples.
        "whole_samples": "SELECT * FROM sources SEMI JOIN "
        "(SELECT * FROM whole_records WHERE samples_lost IS NOT DISTINCT FROM 0) "
        "USING (run_id, attempt, node) "
        f"WHERE reason IS NULL OR starts_with(reason, '{sample_csv.THINNED}')",
        "samples_sums": make_sums_sql("whole_samples", "true"),
        "records_sums": make_sums_sql("whole_records", "true"),
    }
    for name, select in views.items():
        connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {select}")
    connection.execute("DELETE FROM checks")
    made = (*views, "scheduler_totals", "scheduler_nodes")
    rows = {name: connection.execute(f"FROM {name} LIMIT 1").fetchone() for name in made}
    filled = frozenset(name for name, row in rows.items() if row is not None)
    if every := " UNION ALL BY NAME ".join(make_comparisons(filled)):
        connection.execute(f"INSERT INTO checks BY NAME {every}")
