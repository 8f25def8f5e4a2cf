"""Decides a job's outcome from the exit status in PBS (docs/formats.md part 8)."""

from __future__ import annotations

from dataclasses import dataclass

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

PROLOGUE = "the prologue failed: the job's script did not begin"
# Exit statuses that pbs_mom sets, except those that mean "could not be started".
OF_BOTH = {
    -2: ("failed", PROLOGUE),
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
