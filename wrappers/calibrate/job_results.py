"""What a job leaves: results of its loads, records of its nodes, and its scheduler's reports.

Starts of a job are distinguished by their times: PBS gives a job no number of its start.
"""

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
BEFORE_S = 1.0  # a load may begin a moment before its sampler


@dataclass(frozen=True)
class Report:
    """One start of a job, as its scheduler reports it."""

    is_over: bool
    elapsed_s: float | None
    nodes: tuple[str, ...] = ()
    # Our totals in the accounting, by node; under None those of the whole job.
    totals: Mapping[Any, Record | None] | None = None
    extern_s: float | None = None  # its extern step's, which ends after the job; None: it has none


@dataclass(frozen=True)
class Start:
    """One start of a job: what its loads counted, and what was measured of it."""

    results: Sequence[Result]
    records: Sequence[Record]
    report: Report
    is_last: bool = True  # the scheduler's totals are of the last start


def list_starts(
    results: Sequence[Result],
    records: Sequence[Record],
    reports: Sequence[Report],
    no_report: Report,
    is_restarted: bool,
) -> Iterator[Start]:
    """Of one job, in their order; a job that is started again is on one node. The last report is of
    the last start."""
    ordered = sorted(records, key=read_start)
    groups = [[record] for record in ordered] if is_restarted else [ordered]
    later = [read_start(record) - BEFORE_S for (record,) in groups[1:]]
    edges = [-math.inf, *later, math.inf]
    for number, group in enumerate(groups):
        left = len(groups) - number
        report = reports[-left] if left <= len(reports) else no_report
        mine = [
            replace(result, node=find_node(result.node, report.nodes, group))
            for result in results
            if edges[number] <= result.values["start_unix_s"] < edges[number + 1]
        ]
        yield Start(mine, group, report, left == 1)


def read_start(record: Record) -> float:
    """The time at which sampling began."""
    return float(record.get("start_unix_s") or 0)


def find_node(name: str, nodes: Sequence[str], records: Sequence[Record]) -> str:
    """The node as its record names it: PBS gives a load only its number among the job's nodes."""
    measured = list(dict.fromkeys(str(record.get("node")) for record in records))
    if name in measured or not name.isdigit():
        return name
    if int(name) < len(nodes):
        name = nodes[int(name)]
        return next((node for node in measured if is_same_node(node, name)), name)
    return measured[0] if len(measured) == 1 else name


def is_same_node(name: str, other: str) -> bool:
    """Whether two names are equal, with or without a domain."""
    return name == other or name.partition(".")[0] == other.partition(".")[0]


def read_records(folders: Iterable[Path], job: str) -> list[Record]:
    """Of a job, as far as they can be seen from here."""
    found = []
    for folder in folders:
        for path in (p for at in find_job_folders(folder, job) for p in sorted(at.glob("*.json"))):
            try:
                found.append(json.loads(path.read_bytes()))
            except (OSError, ValueError):  # not complete yet, or not for us
                continue
    return [record for record in found if isinstance(record, dict)]


def split_documents(text: str) -> list[Record]:
    """JSON documents one after another, up to the first that is cut."""
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find("{", at)) >= 0:
        try:
            document, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        found.append(document)
    return found
