"""Parses values as Torque and OpenPBS write them: job ids, durations, sizes, nodes, exit statuses.

The exit status decides a job's outcome (docs/formats.md part 8).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

JOB_ID = re.compile(r"(\d+)(?:\[(\d*)\])?(?:\.([A-Za-z0-9][\w.:-]*))?", re.ASCII)


class JobId(NamedTuple):
    """The parts of `123[4].srv`; a missing part is None."""

    number: str
    task: str | None  # "" for a complete array
    server: str | None

    def matches(self, other: JobId) -> bool:
        """Whether this id, as a user typed it, means the other job or an array that contains it.

        A short server name matches a full one: `123.srv` means `123.srv.site.org`.
        """
        if self.number != other.number or (self.task or other.task) != other.task:
            return False
        a, b = self.server, other.server
        return not a or not b or a == b or f"{b}.".startswith(f"{a}.")

    def format_array_id(self) -> str | None:
        """Return the id of a task's array, as qsub printed it; None: the job is no task."""
        if not self.task:
            return None
        return f"{self.number}[]" + (f".{self.server}" if self.server else "")


def split_job_id(text: str) -> JobId | None:
    """Return the parts of `123`, `123[4]` or `123[].srv`; None: the text is no job id."""
    match = JOB_ID.fullmatch(text)
    return JobId(match[1], match[2], match[3]) if match else None


def parse_count(text: str | None) -> int | None:
    """Parse an integer; return None if the text is none."""
    if text is None or len(text) > 18 or not re.fullmatch(r"-?[0-9]+", text):
        return None
    return int(text)


def parse_epoch(text: str | None) -> float | None:
    """Parse seconds since 1970; 0 means never (`etime=0` of a held job), which becomes None."""
    return float(found) if (found := parse_count(text)) is not None and found > 0 else None


def parse_duration_s(text: str | None) -> float | None:
    """Convert `37`, `00:02:00`, `100:00:00`, `1:02:03:04` (with days) or `12.5` to seconds."""
    if text is None or not re.fullmatch(r"(?:\d{1,9}:){0,3}\d{1,12}(?:\.\d+)?", text, re.ASCII):
        return None
    parts = [float(number) for number in text.split(":")][::-1]
    return sum(number * unit for number, unit in zip(parts, (1, 60, 3600, 86400), strict=False))


def parse_size_bytes(text: str | None) -> int | None:
    """Convert a size such as `44048kb` to bytes. The unit `w` is 8 bytes; no unit means bytes."""
    match = re.fullmatch(r"(\d{1,18})([kmgtp]?)([bw]?)", text or "", re.ASCII | re.IGNORECASE)
    if match is None:
        return None
    power = " kmgtp".index(match[2].lower() or " ")
    word_bytes = 8 if match[3] in ("w", "W") else 1
    return word_bytes * int(match[1]) << 10 * power


def parse_nodes(text: str | None) -> tuple[str, ...]:
    """Return the nodes of `vm/0+vm/1*2+vmb:15002/0-3`: vm, vmb; each once, in order."""
    parts = (chunk.split("/")[0].split(":")[0] for chunk in (text or "").split("+"))
    return tuple(dict.fromkeys(chunk for chunk in parts if chunk))


def count_requested_slots(nodes: str | None) -> int | None:
    """Return the processors that `2:ppn=25`, `n1:ppn=4+n2` or `3` requests; None: unknown.

    The text is Resource_List.nodes.
    """
    slots = 0
    for chunk in (nodes or "").split("+"):
        first, *others = chunk.split(":")
        each = [other[4:] for other in others if other.startswith("ppn=")] or ["1"]
        if not first or not each[0].isdigit():
            return None
        slots += int(each[0]) * (int(first) if first.isdigit() else 1)
    return slots


def count_processors(fields: Mapping[str, str]) -> int | None:
    """Return the number of processors of a job; None: unknown.

    Torque's exec_host may have a number in place of an index: `n1/25` is processor 25, or 25
    processors. So the requested number is used if it is larger.
    """
    for name in ("total_execution_slots", "Resource_List.ncpus"):
        if found := parse_count(fields.get(name)):
            return found
    given, requested = (
        count_slots(fields.get("exec_host")),
        count_requested_slots(fields.get("Resource_List.nodes")),
    )
    return given if given is None or requested is None else max(given, requested)


def count_slots(text: str | None) -> int | None:
    """Return the number of processors in `vm/0+vm/1*2` (OpenPBS) or `vm/0-3,7+vmb/0` (Torque)."""
    slots = 0
    for chunk in (text or "").split("+"):
        slot_text = chunk.partition("/")[2]
        if match := re.fullmatch(r"\d+\*(\d{1,6})", slot_text, re.ASCII):
            slots += int(match[1])
            continue
        for piece in slot_text.split(","):
            match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", piece, re.ASCII)
            if match is None:
                return None
            slots += int(match[2] or match[1]) - int(match[1]) + 1
    return slots


TORQUE, OPENPBS = "torque", "openpbs"

# `job_state` of qstat. The outcome of an ended job (C, F, X) comes from its exit status.
WAITING = {
    "Q": None,
    "H": "held",
    "W": "waiting for its time",
    "T": "on its way to another server",
    "M": "moved to another server",
}
RUNNING = {
    "R": None,
    "E": "ending",
    "S": "suspended",
    "U": "suspended: its node is in use by a person",
    "B": None,
}
OVER = ("C", "F", "X")

# Exit statuses that pbs_mom sets, except those that mean "could not be started".
OF_BOTH = {
    -2: ("failed", "the prologue failed: the job's script did not begin"),
    -6: ("node_fail", "the node's pbs_mom was restarted without its jobs"),
}
MEANINGS = {
    TORQUE: OF_BOTH
    | {
        -10: ("out_of_memory", "its memory limit was passed"),
        -11: ("timeout", "its time limit was passed"),
        -12: ("timeout", "its limit of CPU time was passed"),
        -14: ("failed", "the prologue failed again and again"),
    },
    OPENPBS: OF_BOTH
    | {
        -16: ("failed", "a hook of the node refused it"),
        -17: ("failed", "a hook of the node refused it"),
        -18: ("failed", "a hook sent it back to the queue"),
        -19: ("failed", "a hook of the node refused it"),
        -22: ("failed", "a hook of the node failed"),
        -26: ("out_of_memory", "its limit of virtual memory was passed"),
        -27: ("out_of_memory", "its memory limit was passed"),
        -28: ("timeout", "its limit of CPU time was passed"),
        -29: ("timeout", "its time limit was passed"),
    },
}
# NOT_BEGUN: exit statuses of starts whose script never started. Above KILLED: KILLED plus the
# number of a signal that the server sent (271: SIGTERM, 265: SIGKILL).
NOT_BEGUN = {TORQUE: frozenset((-1, -2, -3, -13, -14)), OPENPBS: frozenset((-1, -2, -3, -14, -16, -17, -19, -22))}  # fmt: skip
KILLED = 256
MOST_SIGNAL = 64


@dataclass(frozen=True, slots=True)
class Outcome:
    """State and reason of an ended job, and its exit code (128 + signal when it was killed)."""

    state: str
    reason: str | None
    exit_code: int | None


def decide_outcome(
    dialect: str, status: int | None, deleted_by: str | None = None, out_of_time: bool = False
) -> Outcome:
    """Return the outcome for `Exit_status`.

    `deleted_by` is the user who called qdel. `out_of_time`: the job ran until its time limit.
    """
    deletion = f"deleted by {deleted_by}"
    if status is None:
        if deleted_by is not None:
            return Outcome("cancelled", deletion, None)
        return Outcome("lost", "the server does not report how it ended", None)
    if status < 0:
        state, reason = MEANINGS[dialect].get(
            status, ("failed", f"it could not be started or was given up (exit status {status})")
        )
        if deleted_by is not None and state == "failed":
            return Outcome("cancelled", f"{deletion}; before that: {reason}", None)
        return Outcome(state, reason, None)
    if KILLED < status <= KILLED + MOST_SIGNAL:
        return describe_kill(status - KILLED, deletion if deleted_by else None, out_of_time)
    if deleted_by is not None:  # OpenPBS reports 0 for a job that had just started
        return Outcome("cancelled", deletion, status)
    if status:
        return Outcome("failed", f"the job ended with exit code {status}", status)
    return Outcome("completed", None, 0)


def describe_kill(signal: int, deletion: str | None, out_of_time: bool) -> Outcome:
    """Return the outcome of a job that the server killed.

    Older servers report a time limit in no other way.
    """
    code = 128 + signal
    if deletion is None and out_of_time:
        return Outcome("timeout", "its time limit was passed", code)
    return Outcome("cancelled", deletion or f"the server stopped it (signal {signal})", code)
