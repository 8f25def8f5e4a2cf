"""The factor cache: whether the caches of a run's nodes were dropped, as its level says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from steelyard.analysis.collect.records_in import missing_nodes

if TYPE_CHECKING:
    from steelyard.analysis.collect.attempts import Attempt
    from steelyard.analysis.sources.records import Record
    from steelyard.analysis.sources.study_files import PlannedRun

FACTOR, COLD, LIMIT = "cache", "cold", ":cvmfs="
DROPPED = ("page cache", "dentries and inodes")  # as steelyard-node reports them


def invalid_reason(run: PlannedRun, attempt: Attempt) -> str | None:
    """Why a completed run was not under its level; None: it was, or the factor is not there."""
    level = run.condition.get(FACTOR)
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
        found = [fault for node, record in records for fault in faults(node, record, needed)]
        found += [f"{node} left no record" for node in missing_nodes(attempt)]
        if (attempt.tries or 1) > 1:
            found.append(
                f"the run was begun {attempt.tries} times in one job, which drops them once"
            )
    return f"{FACTOR}={level} was requested: {'; '.join(found)}" if found else None


def faults(node: str, record: Record, needed: tuple[str, ...]) -> Iterator[str]:
    """What of its caches a node has kept."""
    document = record.get("cache")
    if not isinstance(document, dict):
        yield f"{node}: {record.why_missing('cache') or 'its caches were not dropped'}"
        return
    done, refused = ([str(one) for one in document.get(key) or ()] for key in ("done", "refused"))
    kept = [one for one in needed if one not in done]
    if kept:
        yield f"{node}: {', '.join(kept)}: not done"
    yield from (f"{node}: refused: {one}" for one in refused)
