"""What `tracejob` says of jobs that qstat has forgotten: whatever logs this user may read.

    11/22/2026 19:27:37  A    user=labpbs group=labpbs jobname=ok queue=batch …
    11/22/2026 19:27:36  S    Job Run at request of Scheduler@vm

A: a record of the accounting, without its type, which its fields tell; S: a line of the server.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.sources.pbs import programs
from steelyard.analysis.sources.pbs.cells import TRACEJOB
from steelyard.analysis.sources.pbs.history import History, read_history
from steelyard.analysis.sources.pbs.lines import Line, LineReader, Unreadable
from steelyard.analysis.sources.pbs.server_log import naive_s

DAYS = 30
HEAD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d)(?:\.\d+)?\s+([A-Z])\s*(.*)", re.ASCII)
OWNER = re.compile(r"owner = ([^@,\s]+)@.*job name = (.*), queue = (\S+)")
QUEUED = re.compile(r"enqueuing into ([^,\s]+)")
DELETED = re.compile(r"Job (?:deleted|to be deleted) at request of (\S+)")

Told = tuple[Line | Unreadable, float | None]


def histories(
    job_ids: Sequence[str], dialect: str, time_out_s: float, program: str = "tracejob"
) -> Iterator[History]:
    """Of the jobs that it knows; those that it does not are left out."""
    for job_id in job_ids:
        try:
            answer = programs.run([program, "-z", f"-n{DAYS}", job_id], time_out_s)
        except MissingError:
            return
        told = list(parse(answer.out, job_id, dialect))
        if told:
            history = read_history(name_of(answer.out, job_id), told, dialect)
            history.source = TRACEJOB
            yield history


def name_of(text: str, asked: str) -> str:
    """The whole id, as it stands above."""
    found = re.search(r"^Job: (\S+)", text, re.MULTILINE)
    return found[1] if found else asked


def parse(text: str, job_id: str, dialect: str) -> Iterator[Told]:
    """Its lines as if they stood in the accounting."""
    reader = LineReader(dialect)
    matches = list(heads(text))
    has_records = any(match[2] == "A" and "user=" in match[3] for match in matches)
    for match in matches:
        stamp, source, words = match[1], match[2], match[3]
        if source == "A":
            kind = kind_of(words)
            line = reader.read(f"{stamp};{kind};{job_id};{'' if kind == 'R' else words}")
            yield line, local_s(stamp)
        elif source == "S" and not has_records:
            yield from ((line, local_s(stamp)) for line in of_server(stamp, job_id, words))


def heads(text: str) -> Iterator[re.Match[str]]:
    """Its lines; of an empty record (Torque's R) the end of the line is lacking."""
    for line in text.split("\n"):
        match = HEAD.match(line)
        if match is not None:
            yield match
            if (inner := HEAD.match(match[3])) is not None:
                yield inner


def kind_of(words: str) -> str:
    """The type that tracejob leaves out."""
    if not words or HEAD.match(words):
        return "R"
    if words.startswith("requestor="):
        return "D"
    if "Exit_status=" in words:
        return "E"
    return "S" if " start=" in words else "Q"


def of_server(stamp: str, job_id: str, words: str) -> Iterator[Line]:
    """A line of the server's own log: who, when, and the exit status; not where."""
    at = local_s(stamp)
    if at is None:
        return
    if match := OWNER.search(words):
        fields = {"user": match[1], "jobname": match[2], "queue": match[3], "ctime": f"{at:.0f}"}
        yield Line(stamp, "Q", job_id, fields)
    elif match := QUEUED.match(words):
        yield Line(stamp, "Q", job_id, {"queue": match[1], "ctime": f"{at:.0f}"})
    elif words.startswith("Job Run at request"):
        yield Line(stamp, "S", job_id, {"start": f"{at:.0f}"})
    elif words.startswith("Job Rerun at request"):
        yield Line(stamp, "R", job_id, {"": ""})
    elif match := DELETED.search(words):
        yield Line(stamp, "D", job_id, {"requestor": match[1]})
    elif words.startswith("Exit_status="):
        fields = dict(re.findall(r"(\S+?)=(\S+)", words))
        yield Line(stamp, "E", job_id, fields | {"end": f"{at:.0f}"})


def local_s(stamp: str) -> float | None:
    """Seconds since 1970 of the server's local time, which must be that of this machine."""
    local = naive_s(stamp)
    return None if local is None else time.mktime((*time.gmtime(local)[:8], -1))
