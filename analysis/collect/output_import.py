"""Reads the figures in a benchmark's own output by the benchmark's parser."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.sources.study_files import PlannedRun
from steelyard.jobscripts.errors import BenchmarkError, FailedError
from steelyard.jobscripts.output import Note
from steelyard.jobscripts.registry import Benchmark, load


@dataclass(frozen=True, slots=True)
class Figure:
    """A row of the table `results` without run and attempt."""

    client: int
    iteration: int
    metric: str
    value: float
    unit: str
    better: str | None
    is_primary: bool


@dataclass(frozen=True, slots=True)
class Output:
    """Figures of a run's output, or the reason why there are none."""

    figures: tuple[Figure, ...] = ()
    notes: tuple[tuple[int, Note], ...] = ()  # with the client
    reason: str | None = None
    is_gap: bool = False  # False with a reason: the benchmark itself reports a failure
    missing: Mapping[str, str] = field(default_factory=dict)  # the study's own figures, and why


# Errors of a parser that meets unexpected output. One run must not stop the others.
STUMBLES = (
    ValueError, LookupError, ArithmeticError, TypeError, AttributeError, AssertionError,
    RecursionError,
)  # fmt: skip


@functools.cache
def find_benchmark(name: str) -> Benchmark:
    """Return a benchmark's description, which is read once."""
    return load(name)


def read_output(run: PlannedRun, attempt: Attempt) -> Output:
    """Return all clients' figures of a run that ended."""
    if attempt.folder is None:
        return Output(reason="the run left no folder with its output", is_gap=True)
    notes: list[tuple[int, Note]] = []
    missing: dict[str, str] = {}
    try:
        found = list(read_figures(run, attempt, notes, missing))
        # The mean of the other clients would not be the run's value.
        found = [one for one in found if one.metric not in missing]
        return Output(tuple(found), tuple(notes), missing=missing)
    except FailedError as error:
        return Output((), tuple(notes), f"the benchmark failed: {error}")
    except (BenchmarkError, OSError) as error:
        message = str(error)
    except STUMBLES as error:
        message = f"{type(error).__name__}: {error}"
    return Output((), tuple(notes), f"the output is not understood: {message}", is_gap=True)


def read_figures(
    run: PlannedRun, attempt: Attempt, notes: list[tuple[int, Note]], missing: dict[str, str]
) -> Iterator[Figure]:
    """Yield the figures client by client, as the parser returns them.

    Adds to `notes`, and adds to `missing` the reason for each of the study's own figures that a
    client lacks.
    """
    assert attempt.folder is not None  # read_output checks this
    described = find_benchmark(run.benchmark)
    specs = described.specs(run.parameters)
    for client in range(attempt.clients or 1):
        mine: list[Note] = []
        try:
            results = described.parse(attempt.folder.path, client, run.parameters, mine)
            own = described.own_figures(attempt.folder.path, client, run.parameters, mine)
        finally:
            notes += [(client, note) for note in mine]
        missing |= own.missing
        for found in (*results, *own.results):
            spec = specs[found.metric]
            yield Figure(
                client,
                found.iteration,
                found.metric,
                found.value,
                found.unit,
                spec.better,
                spec.primary,
            )
