"""Errors that are no bugs. Each carries a message for the user.

The message states what was expected, what was found, and what to do. Any other exception is a bug
and keeps its traceback.
"""

from __future__ import annotations


class SteelyardError(Exception):
    """The base of all expected errors."""


class UsageError(SteelyardError):
    """Wrong usage or input; `part` is the faulty key, file or option."""

    def __init__(self, message: str, part: str | None = None) -> None:
        super().__init__(message)
        self.part = part


class MissingError(SteelyardError):
    """Something required does not exist: a program, a package, a service, a file of Steelyard."""


class ConditionError(SteelyardError):
    """A requested condition could not be applied."""


class RunsFailedError(SteelyardError):
    """Some runs of a study failed."""
