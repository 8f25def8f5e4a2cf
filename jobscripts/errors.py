"""Errors of benchmarks, each with a message for the user."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'x'?`, or an empty text."""
    matches = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{matches[0]}'?" if matches else ""


class BenchmarkError(Exception):
    """Base of all expected errors of the benchmarks."""


class UnknownBenchmarkError(BenchmarkError):
    """No benchmark has that name; `known` are the available ones."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        listed = f"{', '.join(known)}{did_you_mean(name, known)}"
        super().__init__(f"unknown benchmark '{name}'; known: {listed}")
        self.name = name
        self.known = tuple(known)


class ParameterError(BenchmarkError):
    """A benchmark does not have the parameter, or does not allow its value."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class DescriptionError(BenchmarkError):
    """A benchmark's folder is invalid; the message names the file and the key."""


class OutputError(BenchmarkError):
    """Output has an unexpected form; `part` is the faulty file and line, or field."""

    def __init__(self, file: str, message: str) -> None:
        super().__init__(f"{file}: {message}")
        self.part = file
        self.message = message


class FailedError(BenchmarkError):
    """The benchmark itself reports that it failed."""
