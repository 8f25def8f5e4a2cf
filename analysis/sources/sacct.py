"""Slurm's accounting: `sacct -P --noconvert -D` with named fields, sacct's stable interface.

Its JSON and its default fields change from release to release. All of FIELDS but the OPTIONAL ones
exist in 22.05, 24.11 and 26.05.
"""

from __future__ import annotations

import functools
import io
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import IO, Self

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources import slurm_allocation, slurm_command_environment, squeue
from steelyard.analysis.sources.accounting import SEPARATOR, AccountingRow, Allocation, StepRow
from steelyard.analysis.sources.slurm_field_values import (
    REASONS,
    STATES,
    expand_nodes,
    split_job_id,
)

FIELDS = (
    "JobID",
    "JobIDRaw",
    "JobName",
    "Cluster",
    "User",
    "Account",
    "Partition",
    "State",
    "ExitCode",
    "DerivedExitCode",
    "Reason",
    "Submit",
    "Eligible",
    "Start",
    "End",
    "ElapsedRaw",
    "CPUTimeRAW",
    "TotalCPU",
    "UserCPU",
    "SystemCPU",
    "MaxRSS",
    "MaxVMSize",
    "MaxDiskRead",
    "MaxDiskWrite",
    "ConsumedEnergyRaw",
    "NNodes",
    "NCPUS",
    "NTasks",
    "NodeList",
    "ReqTRES",
    "AllocTRES",
    "Constraints",
    "WorkDir",
    "AdminComment",
    "TimelimitRaw",  # no free text, since a line break in the last field would end the line
    "Restarts",
    "SLUID",  # of the row: it changes at each requeue and at a resize
    "OriginalSLUID",  # of the start
)
OPTIONAL = frozenset(("Restarts", "SLUID", "OriginalSLUID"))  # since 24.11, 24.11, 26.05
INDEX = {name: index for index, name in enumerate(FIELDS)}

# A byte that job names do not contain by accident, unlike "|".
DELIMITER = SEPARATOR
# Plain numbers, and also starts that were requeued.
PLAINLY = ("-P", "--noconvert", "-D", "-n", f"--delimiter={DELIMITER}")

NO_NODES = ("", "None assigned")

MOST_WORDS = 500
# Words of messages about slurmdbd and the connection to it. HOPELESS: messages after which a retry
# cannot help.
SERIOUS = (
    "database",
    "slurmdbd",
    "dbd_",
    "persist",
    "accounting",
    "connect",
    "getaddrinfo",
    "resolve",
)
HOPELESS = ("accounting storage is disabled", "Invalid field requested", "configuration source")


def format_utc(unix_s: float) -> str:
    """Format a time for sacct, whose zone `slurm_command_environment` sets to UTC."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def parse_unix_s(text: str) -> float | None:
    """Convert a time of sacct to seconds since 1970 UTC; None for Unknown, None and ""."""
    if text.isascii() and text.isdigit():
        return float(text) or None
    try:
        return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None


def parse_number(text: str) -> int | None:
    """Parse an integer; None: sacct has none."""
    return int(text) if text.isascii() and text.isdigit() else None


def parse_exit_code(text: str) -> int | None:
    """Convert `3:0` to 3, and `0:9` (killed by signal 9) to 137."""
    match = re.fullmatch(r"(\d+):(\d+)", text)
    if match is None:
        return None
    code, signal = int(match[1]), int(match[2])
    return 128 + signal if signal else code


def describe_state(state_word: str, state: str, fields: Sequence[str]) -> str | None:
    """Return why the job is not completed, in one sentence; None if it is."""
    text = fields[INDEX["State"]]
    if state_word == "CANCELLED":
        who = re.search(r"by (\d+)", text)
        return f"cancelled by user id {who[1]}" if who else "cancelled"
    if state_word == "TIMEOUT":
        return f"the time limit of {fields[INDEX['TimelimitRaw']] or '?'} min was reached"
    if state_word == "FAILED":
        return f"the job ended with exit code {parse_exit_code(fields[INDEX['ExitCode']])}"
    if state_word == "PENDING":
        why = fields[INDEX["Reason"]]
        return f"waiting: {why}" if why not in ("", "None") else None
    if state_word not in STATES:
        return f"sacct says '{text}', a state this version does not know"
    return REASONS.get(state_word)


def guess_unknown_state(start_unix_s: float | None, end_unix_s: float | None) -> str:
    """Return the state for an unknown state word, by the job's times."""
    if end_unix_s is not None:
        return "failed"
    return "pending" if start_unix_s is None else "running"


@functools.lru_cache(maxsize=10_000)
def parse_node_names(text: str) -> tuple[str, ...]:
    """Return the nodes of a node list. They are cached, since many jobs have the same list."""
    return tuple(expand_nodes(text))


def parse_row(fields: Sequence[str]) -> AccountingRow | None:
    """Parse the fields of one line, in the order of FIELDS; None: the line has no job id."""
    key = split_job_id(fields[INDEX["JobID"]])
    raw = split_job_id(fields[INDEX["JobIDRaw"]])
    if key is None or raw is None:
        return None
    text = fields[INDEX["State"]]
    word = text.split(" ", 1)[0].rstrip("+") if text else ""
    start, end = parse_unix_s(fields[INDEX["Start"]]), parse_unix_s(fields[INDEX["End"]])
    state = STATES.get(word) or guess_unknown_state(start, end)
    nodes = fields[INDEX["NodeList"]] if key.step is None else ""
    code = parse_exit_code(fields[INDEX["ExitCode"]])
    if nodes in NO_NODES and key.step is None:
        start = None  # canceled while waiting: sacct repeats the end time
    if start is None or end is None or (code == 0 and state not in ("completed", "failed")):
        code = None  # "0:0" of a stopped job is not its own exit code
    is_array = key.task is not None or key.waits_in_array
    return AccountingRow(
        job_id=raw.job,
        step=key.step,
        array_job_id=key.job if is_array else None,
        array_task_id=key.task,
        waits_in_array=key.waits_in_array,
        waiting_tasks=key.waiting_tasks,
        het_offset=key.het_offset,
        restarts=parse_number(fields[INDEX["Restarts"]]),
        state=state,
        reason=describe_state(word, state, fields),
        cluster=fields[INDEX["Cluster"]] or None,
        name=fields[INDEX["JobName"]] or None,
        user=fields[INDEX["User"]] or None,
        submit_unix_s=parse_unix_s(fields[INDEX["Submit"]]),
        start_unix_s=start,
        end_unix_s=end,
        elapsed_s=None if start is None else parse_number(fields[INDEX["ElapsedRaw"]]),
        exit_code=code,
        nodes=() if nodes in NO_NODES else parse_node_names(nodes),
        admin_comment=fields[INDEX["AdminComment"]] or None,
        fields=tuple(fields),
    )


def join_broken_lines(lines: Iterable[str], columns: int) -> Iterator[str]:
    """Yield the lines of `sacct -P`; join those that a line break in a name has split."""
    pending = ""
    for line in lines:
        pending += line
        if pending.count(DELIMITER) < columns - 1:
            continue
        yield pending.rstrip("\n")
        pending = ""
    if pending.strip():
        raise MissingError(f"sacct's answer ends in the middle of a line: '{pending[:60]}'")


def parse_lines(
    lines: Iterable[str], requested_fields: Sequence[str] = FIELDS
) -> Iterator[AccountingRow]:
    """Yield the rows of sacct's output, which has `requested_fields` in this order."""
    places = [requested_fields.index(name) if name in requested_fields else None for name in FIELDS]
    for line in join_broken_lines(lines, len(requested_fields)):
        cells = line.split(DELIMITER)
        fields = ["" if index is None else cells[index] for index in places]
        row = parse_row(fields) if len(cells) == len(requested_fields) else None
        if row is None:
            raise MissingError(
                f"a line of sacct was not understood: {len(cells)} fields where {len(requested_fields)} "
                f"were asked for, starting '{cells[0][:40]}'"
            )
        yield row


def parse_lines_without_steps(
    lines: Iterable[str], requested_fields: Sequence[str]
) -> Iterator[AccountingRow | StepRow]:
    """Do the same as `parse_lines`, but do not parse steps."""
    if tuple(requested_fields[: len(FIELDS)]) != FIELDS[: len(requested_fields)]:
        yield from parse_lines(lines, requested_fields)
        return
    lacking = DELIMITER * (len(FIELDS) - len(requested_fields))  # the optional fields are last
    for line in join_broken_lines(lines, len(requested_fields)):
        job, _, step = line.split(DELIMITER, 2)[1].partition(".")
        if (
            step
            and job.isascii()
            and job.isdigit()
            and line.count(DELIMITER) == len(requested_fields) - 1
        ):
            yield StepRow(job, step, line + lacking)
        else:
            yield from parse_lines([line], requested_fields)


def is_error_line(line: str) -> bool:
    """Whether an error line of a sacct that exited with 0 shows that its answer is incomplete.

    Other error lines concern Slurm's configuration, plugins, or the user's environment.
    """
    return "error:" in line and any(word in line.casefold() for word in SERIOUS)


def shorten_message(message: str) -> str:
    """Return the messages of a Slurm program, each once: it repeats some with a counter."""
    messages: dict[str, str] = {}
    for line in message.splitlines():
        text = re.sub(r"^\w+: (error|fatal): |: No error|, attempt number -?\d+", "", line)
        if text.strip():
            messages.setdefault(text.casefold(), " ".join(text.split()))
    return "; ".join(messages.values())[:MOST_WORDS]


class NoAccountingError(MissingError):
    """The cluster has no accounting, or it is not found: a retry cannot help."""


def open_answer_file() -> IO[str]:
    """Open a temporary file for sacct's output.

    Only a line feed ends a line, not other characters.
    """
    return tempfile.TemporaryFile("w+", newline="\n", errors="replace", encoding="utf-8")


class Sacct:
    """The accounting of the cluster that the environment (SLURM_CONF) points to."""

    fields: tuple[str, ...] = FIELDS
    chunk_size = 200
    job_ids = re.compile(r"\d+(?:[_+]\d+)?", re.ASCII)
    job_ids_description = "a number, or an array task such as 4711_3"
    server_variable = "SLURM_CONF"
    ids_match_exactly = True
    counts_starts = True

    @classmethod
    def is_installed(cls) -> bool:
        """Whether sacct is installed."""
        return shutil.which("sacct") is not None

    @classmethod
    def without_retries(cls) -> Self:
        """See Accounting.without_retries."""
        return cls(time_out_s=30, tries=1, asks_squeue=True)

    @classmethod
    def matches_id(cls, typed: str, written: str) -> bool:
        """See Accounting.matches_id: records have the raw id."""
        return typed == written

    def __init__(
        self,
        program: str = "sacct",
        time_out_s: float = 120,
        tries: int = 3,
        pause_s: float = 1.0,
        *,
        asks_squeue: bool = False,
    ) -> None:
        self.program = program
        self.time_out_s = time_out_s
        self.tries = tries
        self.pause_s = pause_s
        self.asks_squeue = asks_squeue  # for jobs that the accounting does not have
        self._requested_fields: tuple[str, ...] | None = None

    def rows(
        self, job_ids: Sequence[str], since_unix_s: float = 0.0
    ) -> Iterator[AccountingRow | StepRow]:
        """See Accounting.rows.

        The answer is in a temporary file, since it may have a million rows.
        """
        if not job_ids:
            return
        known: set[str | None] = set()
        with open_answer_file() as output:
            try:
                self.run(self.build_arguments(job_ids), output.fileno())
            except MissingError:
                waiting = self.read_queued_rows(job_ids)
                if not waiting:
                    raise
                yield from waiting
                return
            output.seek(0)
            for row in parse_lines_without_steps(output, self.list_requested_fields()):
                if self.asks_squeue and isinstance(row, AccountingRow):
                    known |= {row.job_id, row.array_job_id}
                yield row
        yield from self.read_queued_rows(
            [i for i in job_ids if re.split(r"[_+]", i)[0] not in known]
        )

    def read_queued_rows(self, job_ids: Sequence[str]) -> list[AccountingRow]:
        """Return the rows of waiting or running jobs according to squeue."""
        if not self.asks_squeue or not job_ids:
            return []
        lines = io.StringIO(squeue.query_jobs(job_ids, self.time_out_s), newline="\n")
        rows = []
        for line in join_broken_lines(lines, len(squeue.LETTERS)):
            cells = line.split(DELIMITER)
            if len(cells) == len(squeue.LETTERS):
                sacct_cells = squeue.convert_to_sacct(cells)
                row = parse_row([sacct_cells.get(name, "") for name in FIELDS])
                rows += [] if row is None else [replace(row, reported_by="squeue")]
        return rows

    def build_arguments(self, job_ids: Sequence[str]) -> list[str]:
        """Return the arguments of sacct."""
        fields = ",".join(self.list_requested_fields())
        return [*PLAINLY, f"--format={fields}", "-j", ",".join(job_ids)]

    def read_starts(self, fields: Sequence[str], *which: str) -> list[AccountingRow]:
        """Return every start of jobs, without steps, with `fields`, JobID and JobIDRaw.

        `which` are options of sacct that select jobs. All rows are in memory, so that they should
        be few.
        """
        return self.read_starts_with_steps(fields, "--allocations", *which)

    def read_starts_with_steps(self, fields: Sequence[str], *which: str) -> list[AccountingRow]:
        """Do the same as `read_starts`, with the steps of each start after it."""
        columns = ("JobID", *fields, "JobIDRaw")  # the last field has no line break
        with open_answer_file() as output:
            self.run([*PLAINLY, f"--format={','.join(columns)}", *which], output.fileno())
            output.seek(0)
            return list(parse_lines(output, columns))

    def list_recent_jobs(self, user: str, since_unix_s: float) -> list[str]:
        """See Accounting.list_recent_jobs."""
        since = f"--starttime={format_utc(since_unix_s)}"
        rows = self.read_starts(("Submit",), f"--user={user}", since)
        return list(dict.fromkeys(row.array_job_id or row.job_id for row in rows))

    def read_allocation(
        self, row: AccountingRow, steps: Sequence[AccountingRow | StepRow]
    ) -> Allocation:
        """See Accounting.read_allocation."""
        lines = [s.text.split(SEPARATOR) if isinstance(s, StepRow) else s.fields for s in steps]
        allocation = slurm_allocation.read_allocation(row, FIELDS, lines)
        if row.reported_by is None:
            return allocation
        why = "squeue does not say"
        return replace(
            allocation, gpus=None, missing={**allocation.missing, "memory_bytes": why, "gpus": why}
        )

    def parse_row(self, fields: Sequence[str]) -> AccountingRow:
        """See Accounting.parse_row."""
        row = parse_row(fields)
        if row is None:
            raise MissingError(f"the database has a row of sacct without a job id: {fields[:2]}")
        return row

    def list_requested_fields(self) -> tuple[str, ...]:
        """Return FIELDS without the optional ones that this release lacks."""
        if self._requested_fields is None:
            with tempfile.TemporaryFile("w+", encoding="utf-8") as output:
                self.run(["--helpformat"], output.fileno())
                output.seek(0)
                known = set(output.read().split())
            self._requested_fields = tuple(n for n in FIELDS if n in known or n not in OPTIONAL)
        return self._requested_fields

    def run(self, arguments: Sequence[str], output: int, times: str | None = "%s") -> None:
        """Run sacct into a file, with retries if slurmdbd does not answer; raise MissingError in
        the end.

        `times` is the time format, or None. sacct's JSON fails with any (22.05).
        """
        problem, kind = "", MissingError
        for attempt in range(self.tries):
            if attempt:
                time.sleep(self.pause_s * 2 ** (attempt - 1))
            os.ftruncate(output, 0)
            os.lseek(output, 0, os.SEEK_SET)
            problem = self.try_once(arguments, output, times)
            if not problem:
                return
            if any(phrase in problem for phrase in HOPELESS):
                kind = NoAccountingError
                break
        raise kind(
            f"sacct does not answer: {problem}. Is slurmdbd running, and does SLURM_CONF point to "
            f"the cluster the jobs ran on?"
        )

    def try_once(self, arguments: Sequence[str], output: int, times: str | None) -> str:
        """Run sacct once; return the problem, or an empty string."""
        environment = slurm_command_environment.build_environment()
        environment |= {} if times is None else {"SLURM_TIME_FORMAT": times}
        try:
            done = subprocess.run(
                [self.program, *arguments],
                stdout=output,
                stderr=subprocess.PIPE,
                stdin=subprocess.DEVNULL,
                env=environment,
                timeout=self.time_out_s,
                check=False,
            )
        except OSError as error:
            raise MissingError(
                f"'{self.program}' cannot be run ({error.strerror}): Slurm's client programs are "
                f"needed to read the accounting (Debian: apt install slurm-client)"
            ) from None
        except subprocess.TimeoutExpired:
            return f"no answer in {self.time_out_s:g} s"
        message = done.stderr.decode("utf-8", "replace")
        if done.returncode == 0 and not any(map(is_error_line, message.splitlines())):
            return ""
        return shorten_message(message) or f"exit code {done.returncode}"
