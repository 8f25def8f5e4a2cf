"""What can go wrong with a benchmark, each with a sentence for the person at the keyboard."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` or nothing."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean '{near[0]}'?" if near else ""


class BenchmarkError(Exception):
    """Base of all expected errors of the benchmarks."""


class UnknownBenchmarkError(BenchmarkError):
    """No benchmark of that name; `known` are those there are."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        listed = f"{', '.join(known)}{did_you_mean(name, known)}"
        super().__init__(f"unknown benchmark '{name}'; known: {listed}")
        self.name = name
        self.known = tuple(known)


class ParameterError(BenchmarkError):
    """A parameter that a benchmark does not take, or a value that it does not allow."""

    def __init__(self, message: str, parameter: str) -> None:
        super().__init__(message)
        self.parameter = parameter


class DescriptionError(BenchmarkError):
    """A benchmark's own folder breaks the contract: which file, which key."""


class OutputError(BenchmarkError):
    """Output that is not understood; `part` is the file and line, or the field, at fault."""

    def __init__(self, part: str, message: str) -> None:
        super().__init__(f"{part}: {message}")
        self.part = part
        self.message = message


class FailedError(BenchmarkError):
    """The benchmark itself says that it failed."""
