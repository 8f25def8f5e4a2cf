"""From what a load counted, and what was weighed of its job, to cells of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steelyard.wrappers.calibrate import limits, loads, table
from steelyard.wrappers.calibrate.job_traces import Row
from steelyard.wrappers.calibrate.loads import Result
from steelyard.wrappers.calibrate.table import Cell, Limit, Quantity
from steelyard.wrappers.calibrate.ways import Way

SHELL = "the login shell before the script: what it has used from when the sampler knows it"


@dataclass(frozen=True)
class Job:
    """One start of a job: what its loads counted, and what there is of it."""

    results: Sequence[Result]
    records: Sequence[Mapping[str, Any]]
    row: Row | None
    last: bool = True  # AdminComment is of the last start


def cells(way: Way, job: Job) -> Iterator[Cell]:
    """Every quantity, of each node's record and of the accounting."""
    for quantity in way.load.quantities:
        for record in job.records:
            yield of_record(way, job, quantity, record)
        if job.last:
            yield of_comment(way, job, quantity)


def named(way: Way, quantity: Quantity) -> tuple[str, str, str, str]:
    """The first four of a Cell: what was weighed, and how."""
    return way.name, way.load.name, quantity.name, quantity.unit


def of_record(way: Way, job: Job, quantity: Quantity, record: Mapping[str, Any]) -> Cell:
    """One node's record beside the loads of that node."""
    node = str(record.get("node"))
    here = [result for result in job.results if result.node == node]
    return Cell(
        *named(way, quantity),
        where=table.RECORD,
        truth=loads.truth(quantity, here),
        weighed=table.number_at(record, quantity.path),
        limit=limit_of(way, job, quantity, here, record_s(job), missed_ends(record)),
        node=node,
        reason=reason_of(record, quantity) or table.unseen_reason(record, way.load.unwaited),
    )


def missed_ends(record: Mapping[str, Any]) -> int | None:
    """Of how many the kernel did not show the last moments, where it has counted every process."""
    counted = record.get("io", {}).get("source") == "bpf"
    return record["bpf"]["missed_ends"] if counted else None


def record_s(job: Job) -> float | None:
    """How long the scheduler says that it lasted whose end is the record's."""
    if job.row is None or job.row.extern_s is None:
        return comment_s(job)
    return job.row.extern_s


def comment_s(job: Job) -> float | None:
    """The same of what the comment is of."""
    return job.row.elapsed_s if job.row else None


def reason_of(record: Mapping[str, Any], quantity: Quantity) -> str | None:
    """Why a figure is not there, or not all of it."""
    return table.reason_at(record, quantity.path, quantity.key) or table.incomplete_reason(record)


def of_comment(way: Way, job: Job, quantity: Quantity) -> Cell:
    """AdminComment beside all loads of the job."""
    comment = job.row.comment if job.row else None
    nodes = {result.node for result in job.results}
    by_node = [[r for r in job.results if r.node == node] for node in sorted(nodes)]
    missed = [missed_ends(record) for record in job.records]
    counted = None if None in missed else sum(m or 0 for m in missed)
    total = Limit()
    for here in by_node:
        one = limit_of(way, job, quantity, here, comment_s(job), counted)
        total = one if quantity.largest else total + one
    return Cell(
        *named(way, quantity),
        where=table.ACCOUNTING,
        truth=table.summed(quantity, (loads.truth(quantity, here) for here in by_node)),
        weighed=None if comment is None else table.number_at(comment, quantity.key),
        limit=total,
        reason=comment_reason(way, job, quantity, comment),
    )


def comment_reason(
    way: Way, job: Job, quantity: Quantity, comment: Mapping[str, Any] | None
) -> str | None:
    """Said in the comment itself, or in the records of all nodes that have no such figure."""
    if (comment is None or not comment.get("nodes_weighed")) and way.no_comment is not None:
        return way.no_comment
    if comment is None:
        return None
    said = table.reason_at(comment, quantity.key, quantity.path)
    said = said or table.unseen_reason(comment, way.load.unwaited)
    if said:
        return said
    reasons = [
        reason_of(record, quantity)
        for record in job.records
        if table.number_at(record, quantity.path) is None
    ]
    return reasons[0] if reasons and len(reasons) == len(job.records) else None


def limit_of(
    way: Way,
    job: Job,
    quantity: Quantity,
    here: Sequence[Result],
    told_s: float | None,
    missed: int | None = None,
) -> Limit:
    """Of one node's loads; `told_s`: the scheduler's own time; `missed`: as missed_ends, None where
    the kernel did not count."""
    truth = loads.truth(quantity, here)
    if quantity is table.ELAPSED:
        return way.limit_of_elapsed(truth, told_s)
    limit = way.limit(quantity)
    if missed is not None:
        limit = limits.of_counted(quantity, limit, way.load.unwaited, missed, way.sruns)
    if (shells := loads.of_parents(quantity, here)) > 0:
        limit += Limit(0, shells, SHELL)
    if way.requeued and not job.last:
        limit += limits.KILLED.get(quantity.name, Limit())
    if quantity is table.MEMORY:
        every = sum(result.values["memory_bytes"] for result in here)
        if every > truth:
            limit += Limit(0, every - truth, "loads side by side")
    return limit
