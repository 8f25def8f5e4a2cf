"""Adds what Slurm's accounting misses of ended jobs from their records: one query to slurmdbd, one
connection to write."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from steelyard.analysis.cluster import job_records
from steelyard.analysis.collect.job_index import age_sort_key
from steelyard.analysis.job import comment_builder
from steelyard.analysis.job.job_view import JobView, find_records
from steelyard.analysis.sources import admin_comment
from steelyard.analysis.sources.accounting import FINAL_STATES, AccountingRow
from steelyard.analysis.sources.cluster_sacct import STATES
from steelyard.analysis.sources.sacct import INDEX, Sacct, format_utc, shorten_message
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.base.programs import find_program

FIELDS = ("State", "Submit", "Start", "End", "Cluster", "NodeList", "AdminComment")
ENERGY = "ConsumedEnergyRaw"
# The sampler and Slurm may write until this long after a job's end.
SETTLED_S = 60.0
PROGRAM = "steelyard-slurmdb"
LIMIT_S = 600.0
# 285 GW for a year, and below 2^63. Comparisons of NaN with it are false.
MOST_J = 9e18


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """What to publish, of which jobs."""

    since_s: float
    record_dirs: Sequence[Path]
    energy: bool = False
    most: int = 10_000


@dataclass(frozen=True, slots=True)
class PlannedComment:
    """The comment that a job is to get."""

    job_id: str  # as users write it
    document: dict[str, Any]  # the input of steelyard-slurmdb


@dataclass(slots=True)
class PublishResult:
    """The result of a call; jobs by their ids."""

    jobs: int = 0
    planned: list[PlannedComment] = field(default_factory=list)
    written: int = 0
    complete: int = 0  # AdminComment was complete
    no_record: int = 0
    deferred: int = 0  # left to the next call, beyond --most
    unchanged: dict[str, str] = field(default_factory=dict)  # with the reason: the text is not ours
    failed: dict[str, str] = field(default_factory=dict)  # with the reason


def find_comments(request: PublishRequest, accounting: Sacct, now_unix_s: float) -> PublishResult:
    """Return what is to be written for the jobs that ended in the requested time."""
    found = PublishResult()
    for rows in group_by_job(request, accounting, now_unix_s):
        found.jobs += 1
        if len(found.planned) >= request.most:
            found.deferred += 1
        else:
            judge_job(found, rows, request)
    return found


def group_by_job(
    request: PublishRequest, accounting: Sacct, now_unix_s: float
) -> Iterator[list[AccountingRow]]:
    """Yield all starts of each ended job, in their order."""
    # Without states slurmdbd omits jobs whose eligible time it does not know.
    since, until = format_utc(now_unix_s - request.since_s), format_utc(now_unix_s)
    by_id: dict[tuple[str | None, str], list[AccountingRow]] = {}
    fields = (*FIELDS, ENERGY) if request.energy else FIELDS
    for row in accounting.read_starts(fields, "-a", "-S", since, "-E", until, "-s", STATES):
        by_id.setdefault((row.cluster, row.job_id), []).append(row)
    for rows in by_id.values():
        rows.sort(key=age_sort_key)
        if is_settled(rows[-1], now_unix_s):
            yield rows


def is_settled(row: AccountingRow, now_unix_s: float) -> bool:
    """Return whether the job ran, and neither the sampler nor Slurm still writes."""
    if row.state not in FINAL_STATES or row.state == "requeued" or row.start_unix_s is None:
        return False
    return row.end_unix_s is not None and row.end_unix_s <= now_unix_s - SETTLED_S


def judge_job(found: PublishResult, rows: Sequence[AccountingRow], request: PublishRequest) -> None:
    """Decide what one job gets: its planned comment, or the reason why it gets none."""
    row = rows[-1]
    starts = tuple(r.start_unix_s for r in rows[:-1] if r.start_unix_s is not None)
    name = row.task_id or row.job_id
    view = JobView(name, row, starts)
    # Only complete records are used.
    find_records(view, request.record_dirs, row.job_id, with_samples=False, within_window=True)
    own = admin_comment.read_own_comment(row.admin_comment or "")
    if not view.nodes or not comment_builder.find_complete_records(view):
        if own is not None and not own.get("so_far") and not admin_comment.is_partial(own):
            found.complete += 1
        else:
            found.no_record += 1
        return
    document = make_comment(found, view, own)
    joules = total_joules(view) if request.energy else None
    if joules is not None and row.fields[INDEX[ENERGY]] != str(joules):
        document["energy_j"] = joules
    if document:
        found.planned.append(PlannedComment(name, job_address(row) | document))
    elif name not in found.unchanged:
        found.complete += 1


def make_comment(found: PublishResult, view: JobView, own: dict[str, Any] | None) -> dict[str, Any]:
    """Return our value if the written comment misses some of it. A record is its user's file, so it
    only adds to what root has written (analysis/cluster/job_records.py)."""
    document = comment_builder.build_comment(view)
    ours = admin_comment.fill_in_defaults(document)
    if own is not None and not comment_builder.is_less_complete(own, ours):
        other = comment_builder.find_different_totals(own, ours)
        for name in other:
            if own.get(name) is None or job_records.is_consistent_with_comment(
                name, ours[name], own[name], ours["nodes"]
            ):
                continue
            found.unchanged[view.job_id] = (
                f"{name} is {own[name]:.10g} there and {ours[name]:.10g} by its records, which "
                "cannot be"
            )
            return {}
        if not other:
            return {}
    return {"own": json.dumps(document, separators=(",", ":"), ensure_ascii=False)}


def total_joules(view: JobView) -> int | None:
    """Return the job's energy (J); None if it is not known, because 0 would be a statement. Slurm
    counts to 2^64, where the largest numbers have other meanings; MOST_J is far below them."""
    joules = view.total("energy_j")
    if joules is None or not 0 <= joules < MOST_J:
        return None
    return round(joules)


def job_address(row: AccountingRow) -> dict[str, Any]:
    """Return which job steelyard-slurmdb modifies: a task's raw id may be its array's."""
    found: dict[str, Any] = {"cluster": row.cluster or "", "job_id": int(row.job_id)}
    if row.submit_unix_s is not None:
        found["submit_unix_s"] = int(row.submit_unix_s)
    if row.array_job_id is not None and row.array_task_id is not None:
        found |= {"job_id": int(row.array_job_id), "array_task_id": int(row.array_task_id)}
    return found


def write_comments(found: PublishResult) -> None:
    """Write all comments over one connection. Jobs that slurmdbd refused go to `failed`, jobs with
    another program's text to `unchanged`. Raises MissingError if nothing was written."""
    if not found.planned:
        return
    program = find_program(PROGRAM)
    if program is None:
        raise MissingError(
            f"{PROGRAM} is missing: say `make all` in the checkout, where Slurm's headers and "
            "libslurm are (Debian: libslurm-dev), or put it on PATH"
        )
    lines = "".join(json.dumps(comment.document) + "\n" for comment in found.planned)
    try:
        done = subprocess.run(
            [program], input=lines, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise MissingError(f"slurmdbd was not done within {LIMIT_S:.0f} s: ask again") from None
    if done.returncode:
        message = shorten_message(done.stderr) or f"exit code {done.returncode}"
        raise MissingError(f"nothing was written: {message}")
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    for comment, answer in zip(found.planned, answers, strict=False):
        if "error" in answer:
            found.failed[comment.job_id] = str(answer["error"])
        elif "unchanged" in answer:
            found.unchanged[comment.job_id] = str(answer["unchanged"])
        elif answer.get("modified") == 0:
            found.complete += 1
        found.written += answer.get("modified", 0)
    for comment in found.planned[len(answers) :]:
        found.failed[comment.job_id] = "no answer"
