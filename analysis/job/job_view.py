"""One job without a study: what the accounting and the nodes' records contain of it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.analysis.collect.job_index import CLOCK_SLACK_S
from steelyard.analysis.collect.network import find_conditions, read_columns
from steelyard.analysis.collect.record_import import (
    describe_clock_set,
    find_incomplete_reason,
    format_stray_record,
)
from steelyard.analysis.job import job_totals
from steelyard.analysis.sources import sample_csv
from steelyard.analysis.sources.accounting import AccountingRow, Allocation
from steelyard.analysis.sources.record_folders import Window, find_job_folders
from steelyard.analysis.sources.records import (
    COLUMNS,
    Record,
    RecordError,
    parse_record_name,
    read_record,
)
from steelyard.analysis.stats.number_format import format_quantity
from steelyard.facts.quantities import TOTALS
from steelyard.jobscripts.plurals import counted

LATER_S = 2.0  # seconds; clocks of a server and its nodes seldom differ so much


@dataclass(slots=True)
class NodeView:
    """A node of the job; `values` are the columns of the table `records`."""

    node: str
    record: Record
    values: dict[str, Any]
    missing: dict[str, str]  # column: why it is None


@dataclass(slots=True)
class JobView:
    """Everything known about a job."""

    job_id: str
    row: AccountingRow | None = None
    earlier_starts: tuple[float, ...] = ()  # seconds since 1970 UTC
    admin_comment: dict[str, Any] | None = None  # Steelyard's own, docs/formats.md part 5
    nodes: list[NodeView] = field(default_factory=list)
    allocation: Allocation | None = None  # of the row
    refused: list[str] = field(default_factory=list)  # conditions not applied, by node
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Usage in a cluster's database; see analysis/cluster.
    stored_nodes: dict[str, Any] | None = None
    other_starts: tuple[float, ...] = ()  # of other jobs, which had the same id

    @property
    def all_nodes(self) -> list[str]:
        """Return the nodes of the accounting and of the records."""
        known = [*self.row.nodes] if self.row is not None else []
        return known + [n.node for n in self.nodes if n.node not in known]

    def total(self, column: str) -> float | None:
        """Return the total over all nodes; None if it is not final, or null, on any node."""
        return self.total_or_reason(column)[0]

    def total_or_reason(self, column: str) -> tuple[float | None, str | None]:
        """Return the total, or None and the reason."""
        final = [(n.record, n.values) for n in self.nodes if n.record.is_total_final(column)]
        if len(final) < len(self.all_nodes) or not final:
            return None, describe_missing_records(len(final), len(self.all_nodes))
        return job_totals.compute_job_total(final, column)


def describe_missing_records(complete: int, nodes: int) -> str:
    """Return why there is no total over the nodes."""
    if nodes == 1:
        return "its node has no whole record"
    return f"{complete} of {nodes} nodes have a whole record"


def find_records(
    view: JobView,
    record_dirs: Sequence[Path],
    raw_id: str,
    *,
    with_samples: bool = True,
    within_window: bool = False,
) -> None:
    """Read the records of the job's last start, in the folders of its id.

    `only_near`: only look at the days around the start, if it is known. This is faster for many
    jobs.
    """
    window = compute_window(view.row) if within_window else None
    folders = [f for path in record_dirs for f in find_job_folders(path, raw_id, window)]
    found = [p for folder in folders for p in sorted(folder.glob("*.json")) if parse_record_name(p)]
    chosen = select_last_start(view, found)
    if len(chosen) < len(found):
        view.notes.append(
            f"{counted(len(found) - len(chosen), 'record')} of other starts of this id left out"
        )
    records = []
    for path in chosen:
        try:
            records.append(read_record(path))
        except RecordError as error:
            view.missing.append(f"{error.kind}: {error}")
    view.nodes = make_node_views(records, with_samples=with_samples)
    for record in records:
        note_record_problems(view, record, with_samples)
    view.refused += find_accounting_refusals(view)
    if has_later_start(view):
        view.notes.append(
            "the scheduler counts from a later start: its time is that of the records"
        )
    absent = sorted(
        set(view.all_nodes) - {name for p in chosen for name in (parse_record_node(p),)}
    )
    if absent or not chosen:
        where = ", ".join(map(str, folders or (path / raw_id for path in record_dirs)))
        begun = None if view.row is None else view.row.start_unix_s
        hints = {} if begun is None else {n: format_stray_record(found, n, begun) for n in absent}
        view.missing.append(
            f"record: none of {', '.join(absent) or 'this job'} in {where}{''.join(hints.values())}"
        )


def compute_window(row: AccountingRow | None) -> Window | None:
    """Return start and end of the job; None: it has no known start."""
    if row is None or row.start_unix_s is None:
        return None
    return row.start_unix_s, time.time() if row.end_unix_s is None else row.end_unix_s


def find_unmet_conditions(record: Record) -> Iterator[str]:
    """Yield conditions that were requested and not applied (docs/formats.md, part 4)."""
    for name in ("network_conditions", "cache"):
        reason = record.missing_reason(name) or ""
        if reason.startswith(("refused: ", "asked for, ")):
            yield f"{record.node}: {reason}"


def find_refusals(record: Record) -> list[str]:
    """Return the conditions that the node refused, with the reasons."""
    lines = (line.split(": refused: ", 1) for line in find_unmet_conditions(record))
    return [parts[1] for parts in lines if len(parts) == 2]


def find_accounting_refusals(view: JobView) -> list[str]:
    """Return the refusal in AdminComment, if no record can be read here."""
    why = (view.admin_comment or {}).get("refused")
    if view.nodes or not isinstance(why, str):
        return []
    return [f"refused: {why} (from the accounting)"]


def find_refusal_reason(job_id: str, record_dirs: Sequence[Path]) -> str | None:
    """Return name and reason of a condition that a node refused, from a job's last start.

    None: no record has a refusal, or no record can be read.
    """
    view = JobView(job_id)
    find_records(view, record_dirs, job_id, with_samples=False)
    lines = (
        line.split(": refused: ", 1)
        for node in view.nodes
        for line in find_unmet_conditions(node.record)
    )
    return next((": ".join(parts) for parts in lines if len(parts) == 2), None)


def parse_record_node(path: Path) -> str:
    """Return the node's name from the record's file name."""
    parts = parse_record_name(path)
    return parts[0] if parts else path.name


def note_record_problems(view: JobView, record: Record, with_samples: bool) -> None:
    """Add what a user must know of a node's record: missing parts, clock changes, refusals."""
    if view.row is not None and view.row.state == "running" and not record.complete:
        view.notes.append(f"{record.node}: so far, as of its last sample: the job runs")
    elif reason := find_incomplete_reason(record):
        view.missing.append(f"{record.node}: {reason}")
    if note := describe_clock_set(record):
        view.notes.append(note)
    if note := sample_csv.read_thinning_note(record.samples_path) if with_samples else None:
        view.notes.append(f"{record.node}: {note}")
    view.refused += find_unmet_conditions(record)


def compute_recorded_s(view: JobView) -> float | None:
    """Return the longest time in seconds that a node's sampler recorded; None: no records."""
    return max((node.values["elapsed_s"] or 0.0 for node in view.nodes), default=None)


def has_later_start(view: JobView) -> bool:
    """Whether the scheduler's start is later than the records' start.

    A PBS server that was down when the job ended begins to count at its return.
    """
    row, recorded_s = view.row, compute_recorded_s(view)
    if row is None or row.start_unix_s is None or row.elapsed_s is None or recorded_s is None:
        return False
    starts = [s for node in view.nodes if (s := node.values["start_unix_s"]) is not None]
    began_before = bool(starts) and min(starts) < row.start_unix_s - LATER_S
    return began_before and recorded_s > row.elapsed_s + LATER_S


def select_last_start(view: JobView, paths: Iterable[Path]) -> list[Path]:
    """Return one record per node of the row's start; without a row, of the newest start."""
    starts = {path: parts[1] for path in paths if (parts := parse_record_name(path))}
    newest_of_node = {
        parse_record_node(path): path
        for path in sorted(starts, key=lambda p: starts[p])
        if is_of_last_start(view, starts[path], max(starts.values()))
    }
    return [newest_of_node[node] for node in sorted(newest_of_node)]


def is_of_last_start(view: JobView, start: int, newest: int) -> bool:
    """Whether a record with this start time belongs to the job's last start.

    Its time must be within that start, and no other start may be nearer.
    """
    row = view.row
    if row is None:
        return start >= newest - CLOCK_SLACK_S
    if row.start_unix_s is None:  # it waits, or a node refused it: PBS reports no start then
        known_since = max(row.submit_unix_s or 0.0, newest)
        return row.state == "failed" and start >= known_since - CLOCK_SLACK_S
    end = float("inf") if row.end_unix_s is None else row.end_unix_s
    begins = (*view.earlier_starts, *view.other_starts, row.start_unix_s)
    nearest = min(begins, key=lambda s: abs(s - start))
    in_time = row.start_unix_s - CLOCK_SLACK_S <= start <= end + CLOCK_SLACK_S
    return in_time and nearest == row.start_unix_s


def make_node_views(records: Sequence[Record], *, with_samples: bool = True) -> list[NodeView]:
    """Return the nodes' values.

    Totals of a truncated record that are not final are those of its last sample, if samples are
    read.
    """
    cut = {record.node: record for record in records if with_samples and not record.complete}
    totals: dict[str, dict[str, Any]] = {}
    if cut:  # few are, and this imports half of collect
        from steelyard.analysis.job.job_samples import compute_sampled_totals

        totals = compute_sampled_totals(cut)
    views = []
    for record in records:
        sampled = totals.get(record.node, {})
        final = {name for name in TOTALS if record.is_total_final(name)}
        values = record.columns() | {k: v for k, v in sampled.items() if k not in final}
        missing = {
            column: record.missing_reason(path) or "the record does not say why"
            for column, (path, _) in COLUMNS.items()
            if values[column] is None
        }
        views.append(NodeView(record.node, record, values, missing))
    return views


def describe_network(node: NodeView) -> list[str]:
    """Return a node's network conditions in a few lines; [] when there are none."""
    document = find_conditions(node.record)
    if document is None:
        return describe_tcp(node)
    row = read_columns(document)
    where = f"{', '.join(dict.fromkeys(row['devices'])) or '?'} ({row['qdisc'] or '?'}, scope {row['scope'] or '?'})"
    applied = "as asked" if row["applied"] == row["requested"] else row["applied"] or "not known"
    lines = [f"{node.node}: {row['requested']} asked for, applied: {applied}, on {where}"]
    links = describe_links(document)
    lines += [f"{node.node}: {line}" for line in links or [describe_round_trip(row)]]
    notes = document.get("notes")
    for note in notes if isinstance(notes, list) else []:
        lines.append(f"{node.node}: note: {note}")
    if row["valid"] is False or row["undone"] is False:
        undone = "; not undone" if row["undone"] is False else ""
        reason = row["invalid_reason"] or "the record does not say why"
        word = f"invalid: {reason}" if row["valid"] is False else "valid"
        lines.append(f"{node.node}: {word}{undone}")
    return lines + describe_tcp(node)


def describe_links(document: Mapping[str, Any]) -> list[str]:
    """Return the node's site and the measurements of each link; [] without sites."""
    sites = document.get("sites")
    if not isinstance(sites, dict):
        return []
    lines = [f"at site {sites.get('here')} of {sites.get('name')}, sha256 {sites.get('sha256')}"]
    links = sites.get("links")
    for link in links if isinstance(links, list) else []:
        if isinstance(link, dict):
            bad = (
                "" if link.get("valid") is not False else f"; invalid: {link.get('invalid_reason')}"
            )
            round_trip = describe_round_trip(read_columns(link))
            lines.append(f"to site {link.get('to_site')}: {link.get('applied')}: {round_trip}{bad}")
    return lines


def describe_round_trip(row: dict[str, Any]) -> str:
    """Return `round trip to n9: before 0.3 ms, during 50 ms and 50 ms, after 0.3 ms; lost 0 %`."""
    names = ("before", "during_start", "during_end", "after")
    before, start, end, after = (format_quantity(row[f"rtt_{name}_s"], "s") for name in names)
    text = f"round trip to {row['peer']}: before {before}, during {start} and {end}, after {after}"
    if row["peer"] is None:
        text = "round trip not measured: no peer"
    if row["loss_achieved"] is not None:
        text += f"; lost {100 * row['loss_achieved']:.3g} %"
    if row["dropped_packets"] is not None:
        text += f"; {row['dropped_packets']} of {counted(row['sent_packets'], 'packet')} dropped"
    return text


def describe_tcp(node: NodeView) -> list[str]:
    """Return what the kernel measured on the job's own sockets."""
    values = node.values
    if values["rtt_median_s"] is None:
        return []
    low, middle, high = (
        format_quantity(values[f"rtt_{name}_s"], "s") for name in ("min", "median", "max")
    )
    text = (
        f"{node.node}: the job's own TCP: round trip {middle} (median; {low} … {high}), "
        f"connections: {values['tcp_connections']}, "
        f"segments sent again: {values['job_retransmitted_segments']}"
    )
    if values["snd_cwnd_median_segments"] is not None:
        text += (
            f", congestion window {values['snd_cwnd_median_segments']:.4g} segments "
            f"(median; largest {values['snd_cwnd_max_segments']}), receive space "
            f"{format_quantity(values['rcv_space_median_bytes'], 'bytes')} "
            f"(median; largest {format_quantity(values['rcv_space_max_bytes'], 'bytes')})"
        )
    return [text]
