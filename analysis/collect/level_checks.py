"""Checks that a run was executed under its network, cache and kernel levels, without suspension.

Network conditions, caches and kernel releases come from the records of the run's nodes. Suspension
comes from the accounting: the times of a suspended job may include the suspension.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from steelyard.analysis.collect.network import FACTOR as NETWORK
from steelyard.analysis.collect.network import NO_LEVEL, find_conditions, normalize_specification
from steelyard.analysis.collect.record_import import find_missing_nodes

if TYPE_CHECKING:
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
