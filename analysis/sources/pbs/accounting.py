"""The accounting of Torque and OpenPBS, from the best source that this user may read.

That is the server's logs, or qstat if they cannot be read. The column `extra` of every row names
the source.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Self

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import (
    CLOCKS_S,
    WAITING_STATES,
    AccountingRow,
    Allocation,
    StepRow,
)
from steelyard.analysis.sources.pbs import accounting_logs, accounting_rows, pbs_commands
from steelyard.analysis.sources.pbs.accounting_rows import FIELDS
from steelyard.analysis.sources.pbs.field_values import (
    JOB_ID,
    OPENPBS,
    JobId,
    parse_count,
    parse_duration_s,
    parse_size_bytes,
    split_job_id,
)
from steelyard.analysis.sources.pbs.job_starts import History


class Pbs:
    """The accounting of the server that the environment (PBS_DEFAULT, PBS_CONF_FILE) points to."""

    fields: tuple[str, ...] = accounting_rows.FIELDS
    chunk_size = 10_000  # the logs are read once for all of them
    job_ids = re.compile(JOB_ID.pattern, re.ASCII)
    job_ids_description = (
        "a number, a task such as 4711[3], or either with its server: 4711[3].pbs.site"
    )
    server_variable = "PBS_DEFAULT, PBS_CONF_FILE"
    ids_match_exactly = False  # a user may type 4711 for 4711.server
    counts_starts = False  # Steelyard counts them: the first number without a folder

    def __init__(self, time_out_s: float = 120) -> None:
        self.time_out_s = time_out_s

    @classmethod
    def is_installed(cls) -> bool:
        """Whether qstat and pbsnodes of a PBS are installed."""
        return pbs_commands.is_installed()

    @classmethod
    def without_retries(cls) -> Self:
        """See Accounting.without_retries."""
        return cls(time_out_s=30)

    @classmethod
    def matches_id(cls, typed: str, written: str) -> bool:
        """See Accounting.matches_id."""
        a, b = split_job_id(typed), split_job_id(written)
        return a is not None and b is not None and a.matches(b)

    def rows(
        self, job_ids: Sequence[str], since_unix_s: float = 0.0
    ) -> Iterator[AccountingRow | StepRow]:
        """See Accounting.rows."""
        requested = [job for text in job_ids if (job := split_job_id(text)) is not None]
        if not requested:
            return
        found, why = self.read_from_logs(requested, since_unix_s)
        found = list(self.requery_open_jobs(found))
        yield from found
        unanswered = [one for one in requested if not any(is_requested(one, row) for row in found)]
        if unanswered:
            yield from self.read_from_programs(unanswered, why)

    def read_from_logs(
        self, requested: Sequence[JobId], since_unix_s: float
    ) -> tuple[list[AccountingRow], str]:
        """Return the rows from the server's logs, and why they could not be read, or ""."""
        log_folder = accounting_logs.find_log_folder()
        if log_folder is None:
            return [], "no accounting logs are to be read here (STEELYARD_PBS_ACCOUNTING)"
        try:
            found = accounting_logs.scan_logs(log_folder, requested, since_unix_s)
        except OSError as error:
            return [], f"{error.filename or log_folder}: {error.strerror}"
        return list(build_all_rows(accounting_logs.build_histories(found))), ""

    def requery_open_jobs(self, found: Sequence[AccountingRow]) -> Iterator[AccountingRow]:
        """Yield the rows, completed by qstat where the logs have no end of a job.

        Torque writes no end for some reruns, and nothing about array tasks that were deleted while
        they waited.
        """
        open_ids = [r.job_id for r in found if r.state in WAITING_STATES and not r.waits_in_array]
        qstat_jobs: dict[str, pbs_commands.Job] | None = None
        if open_ids and pbs_commands.is_installed():
            with contextlib.suppress(MissingError):  # the logs suffice
                qstat_jobs = pbs_commands.query_jobs(open_ids, self.time_out_s)
        dialect = (pbs_commands.detect_dialect() or OPENPBS) if qstat_jobs is not None else OPENPBS
        for row in found:
            if qstat_jobs is None or row.state not in WAITING_STATES or row.waits_in_array:
                yield row
            else:
                yield accounting_rows.complete_from_qstat(row, qstat_jobs.get(row.job_id), dialect)

    def read_from_programs(
        self, requested: Sequence[JobId], reason: str
    ) -> Iterator[AccountingRow]:
        """Yield rows from qstat, for jobs that the logs lack.

        qstat is asked for the complete array of a task; only requested tasks are returned. Raises
        MissingError if neither logs nor qstat can be read.
        """
        if not pbs_commands.is_installed():
            if reason:
                raise MissingError(f"{reason}, and qstat is not here either: ask on a login node")
            return
        dialect = pbs_commands.detect_dialect() or OPENPBS
        qstat_jobs = pbs_commands.query_jobs(
            [format_job_id(job) for job in requested], self.time_out_s
        )
        for job_id, job in qstat_jobs.items():
            row = accounting_rows.build_qstat_row(job_id, job, dialect)
            if row is not None and any(is_requested(one, row) for one in requested):
                yield row

    def list_recent_jobs(self, user: str, since_unix_s: float) -> list[str]:
        """See Accounting.list_recent_jobs. Reads the logs and what qstat still lists."""
        log_folder = accounting_logs.find_log_folder()
        ids: list[str] = []
        if log_folder is not None:
            with contextlib.suppress(OSError):
                ids += accounting_logs.list_user_jobs(log_folder, user, since_unix_s)
        if pbs_commands.is_installed():
            qstat_jobs = pbs_commands.query_jobs_once((), self.time_out_s)
            owners = {
                i: job.get("Job_Owner", "").partition("@")[0] for i, job in qstat_jobs.items()
            }
            ids += [i for i, owner in owners.items() if owner == user]
        elif log_folder is None:
            raise MissingError(
                "no accounting logs are to be read here (STEELYARD_PBS_ACCOUNTING), and qstat is "
                "not here either: ask on a login node"
            )
        parts = ((text, split_job_id(text)) for text in ids)
        return list(dict.fromkeys((job and job.format_array_id()) or text for text, job in parts))

    def read_allocation(
        self, row: AccountingRow, steps: Sequence[AccountingRow | StepRow]
    ) -> Allocation:
        """See Accounting.read_allocation; PBS jobs have no steps."""
        return read_allocation(row)

    def parse_row(self, fields: Sequence[str]) -> AccountingRow:
        """See Accounting.parse_row."""
        return accounting_rows.build_row(tuple(field or "" for field in fields))


def format_job_id(job: JobId) -> str:
    """Return the id as text."""
    task = "" if job.task is None else f"[{job.task}]"
    return job.number + task + (f".{job.server}" if job.server else "")


def is_requested(requested: JobId, row: AccountingRow) -> bool:
    """Whether the row is of the requested job."""
    job = split_job_id(row.job_id)
    return job is not None and requested.matches(job)


def build_all_rows(histories: Sequence[History]) -> Iterator[AccountingRow]:
    """Yield the rows of all jobs. An array gets the histories of its tasks."""
    tasks: dict[str | None, list[History]] = defaultdict(list)
    for one in histories:
        job = split_job_id(one.job_id)
        tasks[job.format_array_id() if job is not None else None].append(one)
    for one in histories:
        yield from accounting_rows.build_rows(one, tasks.get(one.job_id, ()))


NO_MEMORY = "none was asked for (Resource_List.mem)"
NOT_ADDED_UP = "resources_used.walltime is 0: PBS had not added up what the job's nodes used, and cput is that of one"


def read_allocation(row: AccountingRow) -> Allocation:
    """Return a job's allocation and usage.

    `mem` and `ncpus` are of the complete job in both dialects. `pmem` is of one process and not
    used.
    """
    cells = dict(zip(FIELDS, row.fields, strict=True))
    extra: dict[str, Any] = json.loads(cells["extra"] or "{}")
    memory = parse_size_bytes(format_field(extra, "Resource_List.mem"))
    limit = parse_duration_s(format_field(extra, "Resource_List.walltime"))
    # 0: the job ended before it was polled.
    used = parse_size_bytes(format_field(extra, "resources_used.mem")) or None
    missing = {"memory_bytes": NO_MEMORY} if memory is None else {}
    if limit is None:
        missing["time_limit_s"] = "none was asked for (Resource_List.walltime)"
    cpu_s = parse_duration_s(format_field(extra, "resources_used.cput")) or None
    if cpu_s and is_one_node_only(row, format_field(extra, "resources_used.walltime")):
        cpu_s, missing["cpu_s"] = None, NOT_ADDED_UP
    has_begun = row.start_unix_s is not None
    return Allocation(
        partition=cells["Partition"] or None,
        account=cells["Account"] or None,
        nodes=len(row.nodes) or None,
        cpus=parse_count(cells["NCPUS"]) if has_begun else None,
        cpus_requested=parse_count(format_field(extra, "Resource_List.ncpus")),
        memory_bytes=memory if has_begun else None,
        gpus=parse_count(format_field(extra, "Resource_List.ngpus")),
        time_limit_s=limit,
        cpu_s=cpu_s,
        resident_low_bytes=used,
        resident_high_bytes=used,
        shares_request=row.array_job_id is not None,
        missing=missing,
    )


def is_one_node_only(row: AccountingRow, walltime: str | None) -> bool:
    """Whether OpenPBS wrote the line before it had added up the nodes: CPU time is one node's."""
    return (
        len(row.nodes) > 1 and parse_duration_s(walltime) == 0 and (row.elapsed_s or 0.0) > CLOCKS_S
    )


def format_field(extra: dict[str, Any], name: str) -> str | None:
    """Return a field as the server wrote it, or None."""
    value = extra.get(name)
    return None if value is None else str(value)
