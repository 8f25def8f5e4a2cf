"""Reads every job of a cluster in a time span from sacct.

Names and folders of jobs are text of any user and may have line breaks. A random delimiter prevents
a name from being parsed as the line of another user's job.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.accounting import SEPARATOR, AccountingRow, Allocation, StepRow
from steelyard.analysis.sources.sacct import (
    FIELDS,
    OPTIONAL,
    Sacct,
    format_utc,
    open_answer_file,
    parse_row,
)

# Fields that a cluster's database stores; root writes AdminComment.
WANTED = (
    *("JobID", "JobIDRaw", "JobName", "Cluster", "User", "Account", "Partition", "State"),
    *("ExitCode", "Reason", "Submit", "Start", "End", "ElapsedRaw", "TotalCPU", "MaxRSS"),
    *("NTasks", "NodeList", "ReqTRES", "AllocTRES", "AdminComment", "TimelimitRaw", "Restarts"),
)
# Without states slurmdbd omits jobs whose eligible time it never received (observed for jobs that a
# controller starts right after its own start). R selects jobs that ran in the time, S suspended
# jobs, the others jobs that ended in it (as_mysql_jobacct_process.c, _state_time_string).
STATES = "R,S,CD,CA,F,TO,NF,PR,BF,DL,OOM,RQ,RV"


@dataclass(frozen=True, slots=True)
class JobStart:
    """A start of a job in the accounting, and its allocation."""

    row: AccountingRow
    allocation: Allocation


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A line that belongs to no job."""

    text: str


class ClusterSacct(Sacct):
    """The accounting of all users' jobs of a cluster."""

    def read_window(
        self, since_unix_s: float, until_unix_s: float
    ) -> Iterator[JobStart | Unreadable]:
        """Yield all starts of jobs that ran or ended in that time, each once, without steps.

        Raises MissingError before the first start when the accounting does not answer.
        """
        times = [f"--starttime={format_utc(since_unix_s)}", f"--endtime={format_utc(until_unix_s)}"]
        yield from self.read_job_starts("--allusers", f"--state={STATES}", *times)

    def read_jobs(self, job_ids: Sequence[str]) -> Iterator[JobStart | Unreadable]:
        """Yield all starts of the jobs with these ids."""
        for start in range(0, len(job_ids), self.chunk_size):
            chunk = job_ids[start : start + self.chunk_size]
            yield from self.read_job_starts("--allusers", f"--jobs={','.join(chunk)}")

    def read_job_starts(self, *which: str) -> Iterator[JobStart | Unreadable]:
        """Yield the starts in sacct's answer, which is stored in a temporary file."""
        columns = [
            name for name in WANTED if name not in OPTIONAL or name in self.list_requested_fields()
        ]
        between = f"\x1f{secrets.token_hex(8)}\x1f"
        fixed = ["-P", "--noconvert", "-D", "-n", f"--delimiter={between}"]
        with open_answer_file() as output:
            self.run([*fixed, f"--format={','.join(columns)}", *which], output.fileno())
            output.seek(0)
            yield from self.group_steps(parse_lines(output, columns, between))

    def group_steps(
        self, lines: Iterable[AccountingRow | StepRow | Unreadable]
    ) -> Iterator[JobStart | Unreadable]:
        """Group the steps with their jobs. Each job's line must come before those of its steps."""
        job: AccountingRow | None = None
        steps: list[StepRow] = []
        for line in lines:
            if isinstance(line, Unreadable):
                yield line
            elif isinstance(line, StepRow):
                if job is not None and job.job_id == line.job_id:
                    steps.append(line)
            else:
                if job is not None:
                    yield self.build_job_start(job, steps)
                job, steps = line, []
        if job is not None:
            yield self.build_job_start(job, steps)

    def build_job_start(self, row: AccountingRow, steps: Sequence[StepRow]) -> JobStart:
        """Return the start without its text: a day's jobs must fit into memory."""
        return JobStart(replace(row, fields=()), self.read_allocation(row, steps))


def parse_lines(
    lines: Iterable[str], requested_fields: Sequence[str], between: str
) -> Iterator[AccountingRow | StepRow | Unreadable]:
    """Yield jobs and steps, and other lines as Unreadable."""
    places = [requested_fields.index(name) if name in requested_fields else None for name in FIELDS]
    pending = ""
    for line in lines:
        pending += line
        if pending.count(between) < len(requested_fields) - 1:
            continue  # a line break in a name
        cells = pending.rstrip("\n").split(between)
        yield parse_job_line(["" if p is None else cells[p] for p in places]) or Unreadable(
            pending[:200]
        )
        pending = ""
    if pending.strip():
        raise MissingError(f"sacct's answer ends in the middle of a line: '{pending[:60]}'")


def parse_job_line(fields: Sequence[str]) -> AccountingRow | StepRow | None:
    """Parse one line; None: it has no job id."""
    job, _, step = fields[1].partition(".")
    if step and job.isascii() and job.isdigit():
        text = SEPARATOR.join(fields)
        if text.count(SEPARATOR) >= len(fields):
            text = SEPARATOR.join(cell.replace(SEPARATOR, " ") for cell in fields)
        return StepRow(job, step, text)
    return parse_row(fields)
