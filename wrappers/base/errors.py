"""The tables of expected exceptions; one that is in neither is a bug and keeps its traceback."""

from __future__ import annotations

import errno

from steelyard.analysis.base.errors import (
    ConditionError,
    MissingError,
    RunsFailedError,
    SteelyardError,
    UsageError,
)
from steelyard.jobscripts.errors import did_you_mean

__all__ = [
    "ConditionError",
    "MissingError",
    "RunsFailedError",
    "SteelyardError",
    "UsageError",
    "did_you_mean",
    "exit_code",
]

DONE, BUG, USAGE, MISSING, CONDITION, RUNS_FAILED, REGRESSION = range(7)
INTERRUPTED = 130  # 128 + SIGINT, as in shells

EXIT_CODES: dict[type[SteelyardError], int] = {
    UsageError: USAGE,
    MissingError: MISSING,
    ConditionError: CONDITION,
    RunsFailedError: RUNS_FAILED,
}
EXPECTED = tuple(EXIT_CODES)

# Errors of a file system that are reported in a line, without a traceback.
NOT_OURS = {
    errno.EACCES: "you may not read it, or not write there: name another folder",
    errno.EPERM: "you may not change it: it belongs to somebody else",
    errno.EROFS: "it is on a file system that is read-only: name another folder",
    errno.ENOSPC: "make room on its file system, or name another folder",
    errno.EDQUOT: "make room below your quota, or name another folder",
}
FULL = (errno.ENOSPC, errno.EDQUOT)  # on a write, for which Python does not name the file


def exit_code(error: SteelyardError) -> int:
    """Return the exit code of an expected error, by the nearest class in the table."""
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)
