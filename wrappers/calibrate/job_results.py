"""Results of a job: those of its loads, records of its nodes, and its scheduler's reports.

Starts of a job are distinguished by their times, because PBS does not number them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from steelyard.analysis.sources.record_folders import find_job_folders
from steelyard.wrappers.calibrate.known_loads import Result

Record = Mapping[str, Any]
BEFORE_S = 1.0  # a load may start before its sampler


@dataclass(frozen=True)
class Report:
    """One start of a job, as its scheduler reports it."""

    is_over: bool
    elapsed_s: float | None
    nodes: tuple[str, ...] = ()
    # Our totals in the accounting, by node; the key None has those of the whole job.
    totals: Mapping[Any, Record | None] | None = None
    extern_s: float | None = None  # of its extern step, which ends after the job


@dataclass(frozen=True)
class Start:
    """One start of a job: what its loads counted, and what was measured."""

    results: Sequence[Result]
    records: Sequence[Record]
    report: Report
    is_last: bool = True  # the scheduler's totals cover the last start


def list_starts(
    results: Sequence[Result],
    records: Sequence[Record],
    reports: Sequence[Report],
    no_report: Report,
    is_restarted: bool,
) -> Iterator[Start]:
    """Yield the starts of one job, in their order. A restarted job uses one node. The last report
    belongs to the last start."""
    ordered = sorted(records, key=read_start)
    groups = [[record] for record in ordered] if is_restarted else [ordered]
    later = [read_start(record) - BEFORE_S for (record,) in groups[1:]]
    edges = [-math.inf, *later, math.inf]
    for number, group in enumerate(groups):
        remaining = len(groups) - number
        report = reports[-remaining] if remaining <= len(reports) else no_report
        mine = [
            replace(result, node=find_node(result.node, report.nodes, group))
            for result in results
            if edges[number] <= result.values["start_unix_s"] < edges[number + 1]
        ]
        yield Start(mine, group, report, remaining == 1)


def read_start(record: Record) -> float:
    """Return the time (Unix, s) at which sampling started."""
    return float(record.get("start_unix_s") or 0)


def find_node(name: str, nodes: Sequence[str], records: Sequence[Record]) -> str:
    """Return the node's name in its record: PBS gives a load only its number among the job's
    nodes."""
    measured = list(dict.fromkeys(str(record.get("node")) for record in records))
    if name in measured or not name.isdigit():
        return name
    if int(name) < len(nodes):
        name = nodes[int(name)]
        return next((node for node in measured if is_same_node(node, name)), name)
    return measured[0] if len(measured) == 1 else name


def is_same_node(name: str, other: str) -> bool:
    """Return whether two names are equal, with or without a domain."""
    return name == other or name.partition(".")[0] == other.partition(".")[0]


def read_records(folders: Iterable[Path], job: str) -> list[Record]:
    """Return the readable records of a job."""
    found = []
    for folder in folders:
        for path in (p for at in find_job_folders(folder, job) for p in sorted(at.glob("*.json"))):
            try:
                found.append(json.loads(path.read_bytes()))
            except (OSError, ValueError):  # not complete yet, or not readable for this user
                continue
    return [record for record in found if isinstance(record, dict)]


def split_documents(text: str) -> list[Record]:
    """Return the JSON documents in the text, up to the first truncated one."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        found.append(document)
    return found
