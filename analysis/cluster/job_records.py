"""Finds and reads the records of one start of a job, and compares them with earlier reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.analysis.cluster import record_trust
from steelyard.analysis.cluster.record_index import RecordIndex, list_record_names
from steelyard.analysis.collect.record_import import (
    describe_clock_set,
    find_incomplete_reason,
    format_stray_record,
)
from steelyard.analysis.job.job_view import (
    JobView,
    make_node_views,
    parse_record_node,
    select_last_start,
)
from steelyard.analysis.sources.accounting import AccountingRow
from steelyard.analysis.sources.record_packs import PackedFile
from steelyard.analysis.sources.records import RecordError, parse_record_name

CHANGED = "{} was changed since it was first read: what it said then counts"


@dataclass(slots=True)
class FoundRecords:
    """The records of a job; gaps are (node, kind, reason)."""

    by_node: dict[str, record_trust.ReadRecord] = field(default_factory=dict)  # by node
    gaps: list[tuple[str | None, str, str]] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)


def list_sources(
    record_index: RecordIndex, row: AccountingRow, found: FoundRecords
) -> dict[Path, PackedFile | None]:
    """Return all records of a job id from the days around this start, with a pack's entry or None.

    A pack that cannot be read is added to the gaps of `found`.
    """
    sources: dict[Path, PackedFile | None] = {}
    for record_dir in record_index.record_dirs:
        sources |= dict.fromkeys(list_record_names(record_dir / row.job_id))
        for folder in record_index.find_folders(record_dir, row):
            sources |= dict.fromkeys(list_record_names(folder))
        for pack in reversed(
            record_index.find_packs(record_dir, row)
        ):  # loose files come first, then those of the newest pack
            there = {path.name for path in sources}
            files = record_index.find_content(pack, row.job_id)
            if isinstance(files, OSError):
                found.gaps.append((None, "record", f"{pack} cannot be read: {files.strerror}"))
                continue
            mine = ((pack / Path(file.name).name, file) for file in files)
            sources |= {path: file for path, file in mine if path.name not in there}
    return {path: file for path, file in sources.items() if parse_record_name(path)}


def read_job_records(
    view: JobView, record_index: RecordIndex, before: Mapping[str, record_trust.ReadRecord]
) -> FoundRecords:
    """Read the records of the start that `view` is of, and set its nodes.

    `near` must have loaded the row. `before` has the records that were read earlier, by node: a
    complete one stays valid if its file changes or disappears. If a record is missing and a sweep
    has run, its files are listed again, since it may be in a pack.
    """
    assert view.row is not None
    found = list_records(view, record_index, before)
    while not found.by_node.keys() >= {*view.row.nodes} and record_index.is_outdated(view.row):
        record_index.reload()
        found = list_records(view, record_index, before)
    return found


def list_records(
    view: JobView, record_index: RecordIndex, before: Mapping[str, record_trust.ReadRecord]
) -> FoundRecords:
    """Read the records as they were listed when `near` was loaded."""
    assert view.row is not None
    found = FoundRecords()
    sources = list_sources(record_index, view.row, found)
    paths = list(sources)
    for path in select_last_start(view, paths):
        node = parse_record_node(path)
        try:
            checked = record_trust.read_checked_record(path, view.row, sources[path])
        except RecordError as error:
            found.gaps.append((node, error.kind, str(error)))
            continue
        old = before.get(node)
        if old is not None and old.record.complete and old.sha256 != checked.sha256:
            found.gaps.append((node, "changed", CHANGED.format(path)))
            found.marks.append(CHANGED.format(path.name))
            continue
        found.by_node[node] = checked
        report_record_gaps(found, node, checked)
    for node, old in before.items():  # two starts of a job may have the same submit time
        if (
            old.record.complete
            and node not in found.by_node
            and select_last_start(view, [old.record.path])
        ):
            found.by_node[node] = old
    found.marks += [mark for checked in found.by_node.values() for mark in checked.marks]
    view.nodes = make_node_views(
        [checked.record for checked in found.by_node.values()], with_samples=False
    )
    find_stray_records(view, found, paths)
    return found


def report_record_gaps(found: FoundRecords, node: str, record: record_trust.ReadRecord) -> None:
    """Add the problems that the record itself states."""
    for kind, reason in (
        ("incomplete_record", find_incomplete_reason(record.record)),
        ("clock", describe_clock_set(record.record)),
        ("touched", "; ".join(record.marks) or None),
    ):
        if reason:
            found.gaps.append((node, kind, reason))


def find_stray_records(view: JobView, found: FoundRecords, paths: Sequence[Path]) -> None:
    """Add records of this job id whose time fits none of its starts: a clock is wrong."""
    assert view.row is not None
    known_nodes = {node for node, _, _ in found.gaps} | set(found.by_node)
    begins = [*view.earlier_starts, view.row.start_unix_s or 0.0]
    for node in sorted(set(view.row.nodes) - known_nodes):
        mine = [
            path
            for path in paths
            if parse_record_node(path) == node and is_far_from_starts(path, begins)
        ]
        if explanation := format_stray_record(mine, node, view.row.start_unix_s or 0.0):
            found.gaps.append((node, "clock_off", f"no record of {node}{explanation}"))


def is_far_from_starts(path: Path, begins: Sequence[float]) -> bool:
    """Whether a record started more than a minute from every known start."""
    parts = parse_record_name(path)
    return parts is not None and all(abs(parts[1] - begin) > 60 for begin in begins)
