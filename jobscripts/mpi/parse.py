"""Reads the JSON document of the benchmark mpi in out.CLIENT: one figure per repetition."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.mpiprofile import profile_results
from steelyard.jobscripts.output import read_document, read_output
from steelyard.jobscripts.pairs import number
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import Result

# Bytes transferred in one operation, in message sizes; the other tests have times.
RATES = {"bandwidth": 1, "bi_bandwidth": 2}
COLLECTIVE = ("alltoall", "reduce", "allreduce", "barrier")


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the latency of the smallest message, other figures of the largest, and the profile."""
    name = f"out.{client}"
    text = read_output(folder, client, "the program")
    document, _ = read_document(name, text)
    try:
        rows = {(row["test"], row["bytes"]): row for row in document["tests"]}
        ranks = len(document["nodes"])
    except (KeyError, TypeError) as error:
        raise OutputError(name, f"cut short or damaged: {error}") from error
    if document.get("format") != "steelyard-mpi" or document.get("version") != 1:
        raise OutputError(name, "no document of the benchmark mpi, version 1")
    if ranks != parameters["ranks"] or len(rows) != len(document["tests"]):
        raise OutputError(
            name, f"{counted(ranks, 'rank')} instead of {parameters['ranks']}, or doubled rows"
        )
    requested = str(parameters["test"])
    tests = ("latency", *RATES, *COLLECTIVE) if requested == "all" else (requested,)
    found = []
    for test in tests:
        found += _figures(name, test, rows, parameters)
    return found + profile_results(folder, client, parameters)


def _figures(
    name: str,
    test: str,
    rows: Mapping[tuple[object, object], Mapping[str, object]],
    parameters: Mapping[str, object],
) -> list[Result]:
    """Return a test's figure in each repetition."""
    size = 0 if test == "barrier" else parameters["smallest" if test == "latency" else "largest"]
    row = rows.get((test, size), {})
    seconds = row.get("seconds")
    if not isinstance(seconds, list) or len(seconds) != parameters["repetitions"]:
        raise OutputError(name, f"{test} with {size} bytes was not measured as often as asked")
    found = []
    for iteration, value in enumerate(seconds, 1):
        took = number(f"{name}: {test}", {"seconds": value}, "seconds")
        if took == 0:
            raise OutputError(name, f"{test}: an operation in no time cannot be")
        if test in RATES:
            rate = RATES[test] * int(str(size)) / took
            found.append(Result(f"{test}_bytes_per_s", rate, "bytes_per_s", iteration))
        else:
            found.append(Result(f"{test}_s", took, "s", iteration))
    return found
