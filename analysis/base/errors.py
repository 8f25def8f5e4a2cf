"""What can go wrong through no bug of ours: each carries a sentence for the person at the keyboard.

The sentence says what was expected, what was found, and what to do. Anything else that is raised
is a bug and keeps its traceback.
"""

from __future__ import annotations


class SteelyardError(Exception):
    """Base of all expected errors."""


class UsageError(SteelyardError):
    """Wrong usage or input; `part` is the faulty piece (a key, a file, an option)."""

    def __init__(self, message: str, part: str | None = None) -> None:
        super().__init__(message)
        self.part = part


class MissingError(SteelyardError):
    """Something needed is not there: a program, a package, a service, a file of ours."""


class ConditionError(SteelyardError):
    """A condition that was asked for could not be applied."""


class RunsFailedError(SteelyardError):
    """Some runs of a study failed."""
