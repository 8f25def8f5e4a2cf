"""From what loads counted in a job of PBS, its records, and what the server was told, to cells."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from steelyard.analysis.sources.pbs import hook, qstat
from steelyard.analysis.sources.pbs.cells import HOOK
from steelyard.analysis.sources.pbs.values import duration_s, nodes_of
from steelyard.wrappers.calibrate import job_cells, loads, table
from steelyard.wrappers.calibrate.job_traces import Row
from steelyard.wrappers.calibrate.loads import Result
from steelyard.wrappers.calibrate.pbs_ways import PbsWay
from steelyard.wrappers.calibrate.table import Cell, Quantity

Record = Mapping[str, Any]
WHERE = "qstat"
BEFORE_S = 1.0


def of_job(
    way: PbsWay, results: Sequence[Result], records: Sequence[Record], about: qstat.Job
) -> Iterator[Cell]:
    """One job, start by start. PBS tells a job not which start it is: they are told by their time."""
    row = Row("", True, duration_s(about.get("resources_used.walltime")), hosts(about), None)
    begun = starts(records)
    for number, mine in enumerate(begun):
        last = number == len(begun) - 1
        job = job_cells.Job(
            placed(results, mine, begun[number + 1 :], row.nodes if last else ()),
            mine,
            row if last else None,
            last,
        )
        for quantity in way.load.quantities:
            for record in job.records:
                yield job_cells.of_record(way, job, quantity, record)
            for host, said in told(about).items() if last else ():
                yield of_host(way, job, quantity, host, said)


def of_host(
    way: PbsWay, job: job_cells.Job, quantity: Quantity, host: str, said: Mapping[str, Any]
) -> Cell:
    """What the hook told the server, beside the loads of that host."""
    here = [result for result in job.results if is_same(result.node, host)]
    reason = table.reason_at(said, quantity.key, quantity.path)
    reasons = (
        job_cells.reason_of(record, quantity)
        for record in job.records
        if is_same(str(record.get("node")), host)
    )
    return Cell(
        *job_cells.named(way, quantity),
        where=WHERE,
        truth=loads.truth(quantity, here),
        weighed=table.number_at(said, quantity.key),
        limit=job_cells.limit_of(way, job, quantity, here, job_cells.comment_s(job)),
        node=host,
        reason=reason
        or table.unseen_reason(said, way.load.unwaited)
        or next(filter(None, reasons), None),
    )


def told(about: qstat.Job) -> dict[str, Mapping[str, Any]]:
    """By host, what the server has of our totals."""
    return {**(hook.parse(about.get(HOOK)) or {})}


def hosts(about: qstat.Job) -> tuple[str, ...]:
    """Each once: PBS_NODENUM counts them in this order."""
    return nodes_of(about.get("exec_host"))


def node_of(number: str, names: Sequence[str], records: Sequence[Record]) -> str:
    """The node's name, as its record has it; without exec_host the only one's."""
    weighed = list(dict.fromkeys(str(record.get("node")) for record in records))
    if number.isdigit() and int(number) < len(names):
        name = names[int(number)]
        return next((node for node in weighed if is_same(node, name)), name)
    return weighed[0] if len(weighed) == 1 else number


def is_same(name: str, other: str) -> bool:
    """With its domain or without."""
    return name == other or name.partition(".")[0] == other.partition(".")[0]


def start_of(record: Record) -> float:
    """When its sampling began."""
    return float(record.get("start_unix_s") or 0)


def starts(records: Sequence[Record]) -> list[list[Record]]:
    """Records by start of the job, in order: another begins on a node that has begun already, or
    when all of the one before have ended."""
    found: list[list[Record]] = []
    for record in sorted(records, key=start_of):
        same = found and all(
            one.get("node") != record.get("node") and not is_over(one, start_of(record))
            for one in found[-1]
        )
        if not same:
            found.append([])
        found[-1].append(record)
    return found


def is_over(record: Record, unix_s: float) -> bool:
    """Whether it ended before."""
    end = record.get("end_unix_s")
    return isinstance(end, int | float) and end <= unix_s


def placed(
    results: Sequence[Result],
    records: Sequence[Record],
    later: Sequence[Sequence[Record]],
    nodes: Sequence[str],
) -> list[Result]:
    """The loads of a start, with their nodes' names; a load may have begun a moment before its
    sampler."""
    first = min(map(start_of, records)) - BEFORE_S
    until = min((start_of(record) - BEFORE_S for one in later for record in one), default=math.inf)
    return [
        replace(one, node=node_of(one.node, nodes, records))
        for one in results
        if first <= one.values["start_unix_s"] < until
    ]
