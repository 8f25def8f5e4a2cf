"""One start of a job as a row: allocation and usage, their sources, and reasons for gaps."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from steelyard.analysis.cluster import job_records
from steelyard.analysis.cluster.job_records import RecordIndex
from steelyard.analysis.job.job_totals import is_idle
from steelyard.analysis.job.job_view import JobView
from steelyard.analysis.job.usage import RECORDS, find_best_value
from steelyard.analysis.sources import admin_comment
from steelyard.analysis.sources.accounting import FINAL_STATES, AccountingRow, Allocation
from steelyard.analysis.sources.cluster_sacct import JobStart
from steelyard.facts.quantities import TOTALS

QUANTITIES = ("energy_j", "cpu_s", "rchar_bytes", "wchar_bytes", "read_bytes", "write_bytes")
# Columns of the table `jobs` with the job's allocation, as in its accounting.
ACCOUNTED = (
    "partition",
    "account",
    "cpus",
    "cpus_requested",
    "memory_bytes",
    "gpus",
    "time_limit_s",
)
COMMENT, SLURM = "admin_comment", "accounting"
APPLICATION = "application"  # the tag that names the application
CONTRADICTS = "its record contradicts the accounting"
Key = tuple[str, str, float]


@dataclass(slots=True)
class UsedTotals:
    """Totals that a job used. A value that is None has its reason in `missing`."""

    values: dict[str, float | None] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    marks: list[str] = field(default_factory=list)

    def set_total(
        self, name: str, value: float | None, source: str, why: str | None = None
    ) -> None:
        """Set a total and its source, or the reason why it is unknown."""
        self.values[name] = value
        if value is not None:
            self.sources[name] = source
        else:
            self.missing[name] = why or "nobody says"


def job_key(row: AccountingRow) -> Key:
    """Return Slurm's own key of a start."""
    return row.cluster or "", row.job_id, row.submit_unix_s or 0.0


def digest_accounting(begun: JobStart) -> str:
    """Return a digest of a job's accounting, which is unchanged as long as the accounting is."""
    return hashlib.blake2b(repr(begun).encode("utf-8", "replace"), digest_size=12).hexdigest()


def is_over(row: AccountingRow) -> bool:
    """Whether this start has ended for good."""
    return row.state in FINAL_STATES and row.end_unix_s is not None


def can_have_records(row: AccountingRow) -> bool:
    """Whether the start ran and has ended, so that its nodes can have left records."""
    return is_over(row) and row.start_unix_s is not None


@dataclass(slots=True)
class Job:
    """A start of a job with its records and usage."""

    begun: JobStart
    view: JobView
    found: job_records.FoundRecords
    used: UsedTotals

    @property
    def is_settled(self) -> bool:
        """Whether the row is final: the start never ran, or every node left a complete record."""
        row = self.begun.row
        if not is_over(row):
            return False
        complete = sum(
            checked.record.has_final_totals(of_node=False)
            for checked in self.found.by_node.values()
        )
        return row.start_unix_s is None or (complete >= len(self.view.all_nodes) > 0)


def measure(
    begun: JobStart,
    starts: Sequence[float],
    record_index: RecordIndex,
    before: Mapping[str, job_records.ReadRecord],
) -> Job:
    """Measure one start of a job.

    `starts` are the starts of other jobs with its id; for `near` and `before` see
    `job_records.read_job_records`.
    """
    row = begun.row
    comment = admin_comment.read_own_comment(row.admin_comment) if row.admin_comment else None
    view = JobView(
        row.task_id or row.job_id, row, tuple(starts), comment, allocation=begun.allocation
    )
    ran = can_have_records(row)
    found = (
        job_records.read_job_records(view, record_index, before)
        if ran
        else job_records.FoundRecords()
    )
    used = compute_usage(view, begun.allocation) if ran else make_unfinished_usage(row)
    used.marks += found.marks
    for mark in used.marks[: len(used.marks) - len(found.marks)]:
        found.gaps.append((None, "contradiction", mark))
    found.gaps += [(None, kind, reason) for kind, reason in list_accounting_marks(begun)]
    return Job(begun, view, found, used)


def list_accounting_marks(begun: JobStart) -> Iterator[tuple[str, str]]:
    """Yield what users must know of the accounting's own figures of a job."""
    if reason := begun.allocation.missing.get("cpu_s"):
        yield "impossible", reason
    if suspended_s := begun.row.suspended_s:
        yield "suspended", f"it was suspended for {suspended_s:.10g} s, which only its records have"


def make_unfinished_usage(row: AccountingRow) -> UsedTotals:
    """Return the usage of a job that is running or never started: only reasons."""
    used = UsedTotals()
    why = "it never began" if is_over(row) else "it has not ended"
    for name in (*QUANTITIES, "memory_used_bytes"):
        used.set_total(name, None, SLURM, why)
    return used


def compute_usage(view: JobView, allocation: Allocation) -> UsedTotals:
    """Return the usage of an ended job.

    Records come first, then AdminComment, then sacct's CPU time. If any total of the records
    contradicts the accounting, only those that AdminComment confirms are used.
    """
    used = UsedTotals()
    totals = {name: view.total_or_reason(name) for name in QUANTITIES}
    wrong = dict(find_contradictions(view, allocation, totals))
    for name in QUANTITIES:
        value, why = compute_total(view, name, *totals[name])
        comment_value = job_records.find_comment_total(view.admin_comment, name)
        if wrong and (comment_value is None or value is None or name in wrong):
            value, why = None, CONTRADICTS
        if value is not None:
            used.set_total(name, value, RECORDS)
        elif comment_value is not None:
            used.set_total(name, comment_value, COMMENT)
        elif name == "cpu_s" and allocation.cpu_s is not None:
            used.set_total(name, allocation.cpu_s, SLURM)
        else:
            used.set_total(name, None, RECORDS, why)
    used.marks += wrong.values()
    set_memory(view, used, bool(wrong))
    return used


def compute_total(
    view: JobView, name: str, value: float | None, why: str | None
) -> tuple[float | None, str | None]:
    """Return total and reason of `JobView.total_or_reason`, or the records' own common reason."""
    if value is not None:
        return value, why
    lacking = [n for n in view.nodes if n.values[name] is None and not is_idle(n.record)]
    reasons = {n.missing[name] for n in lacking if n.record.missing_reason(TOTALS[name].path)}
    if len(view.nodes) == len(view.all_nodes) and len(reasons) == 1:
        return None, reasons.pop()
    return value, why


def find_contradictions(
    view: JobView, allocation: Allocation, totals: Mapping[str, tuple[float | None, str | None]]
) -> Iterator[tuple[str, str]]:
    """Yield quantities whose record values contradict the accounting, with a description."""
    nodes = len(view.all_nodes)
    for name in QUANTITIES:
        value, _ = totals[name]
        if value is None:
            continue
        comment_value = job_records.find_comment_total(view.admin_comment, name)
        if comment_value is not None and not job_records.is_consistent_with_comment(
            name, value, comment_value, nodes
        ):
            yield (
                name,
                f"{name} is {value:.10g} by its records, {comment_value:.10g} by AdminComment",
            )
        elif name == "cpu_s" and not job_records.is_consistent_with_cpu(
            value, allocation.cpu_s, nodes
        ):
            yield name, f"cpu_s is {value:.10g} by its records, {allocation.cpu_s:.10g} by sacct"


def set_memory(view: JobView, used: UsedTotals, is_wrong: bool) -> None:
    """Set the memory used: the sum of the nodes' highest values, in bytes.

    AdminComment has the largest value of a node, which is the same for a job of one node. Slurm's
    MaxRSS is that of one task, only a lower bound, and is not used.
    """
    value, is_least, _ = find_best_value(view, "max_memory_bytes", None)
    comment_value = job_records.find_comment_total(view.admin_comment, "max_memory_bytes")
    if value is not None and not is_least and not is_wrong:
        used.set_total("memory_used_bytes", value, RECORDS)
    elif comment_value is not None and len(view.all_nodes) == 1:
        used.set_total("memory_used_bytes", comment_value, COMMENT)
    else:
        why = CONTRADICTS if is_wrong else view.total_or_reason("max_memory_bytes")[1]
        used.set_total("memory_used_bytes", None, RECORDS, why or "not known on every node")


def find_node_type(job: Job) -> str | None:
    """Return the type of the job's nodes, `mixed`, or None if it is unknown."""
    node_types = {node.values["node_type"] for node in job.view.nodes} - {None}
    if not node_types and job.view.admin_comment is not None:
        node_types = {job.view.admin_comment.get("node_type")} - {None}
    return None if not node_types else str(node_types.pop()) if len(node_types) == 1 else "mixed"


def find_tags(job: Job) -> dict[str, str]:
    """Return the tags of the records, replaced by those of AdminComment."""
    comment_tags = (job.view.admin_comment or {}).get("tags")
    found = {k: v for checked in job.found.by_node.values() for k, v in checked.record.tags.items()}
    mine = comment_tags if isinstance(comment_tags, dict) else {}
    return found | {str(k): str(v) for k, v in mine.items()}


def build_columns(job: Job) -> dict[str, Any]:
    """Return the job's row of the table `jobs`."""
    row, allocation, tags = job.begun.row, job.begun.allocation, find_tags(job)
    names = ("name", "user", "state", "reason", "exit_code", "start_unix_s", "end_unix_s")
    cluster, job_id, submit = job_key(row)
    return {
        "cluster": cluster,
        "job_id": job_id,
        "submit_unix_s": submit,
        **{name: getattr(row, name) for name in names},
        **{name: getattr(allocation, name) for name in ACCOUNTED},
        **job.used.values,
        "task": row.task_id or row.job_id,
        "restarts": row.restarts,
        "application": tags.get(APPLICATION) or row.name,
        "elapsed_s": row.elapsed_s,
        "nodes": list(row.nodes),
        "node_type": find_node_type(job),
        "tags": tags,
        "sources": job.used.sources,
        "missing": job.used.missing,
        "marks": job.used.marks,
        "whole_records": sum(s.record.has_final_totals(False) for s in job.found.by_node.values()),
        "is_over": is_over(row),
        "is_settled": job.is_settled,
        "facts": digest_accounting(job.begun),
    }
