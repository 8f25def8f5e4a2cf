"""Reads the output of steelyard-fstest in out.CLIENT: JSON lines, one per iteration."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.output import positive, read_output
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import Result

FILES = {"small_file_copy": "copy_files", "small_file_write": "write_files"}


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return each iteration's time in s, throughput (bytes/s) and files/s, and the mount's
    counters.

    With one process per file, the times have another name.
    """
    name = f"out.{client}"
    lines = _lines(name, read_output(folder, client, "steelyard-fstest"))
    _check_start(name, lines[0], parameters)
    metric = "seconds_by_processes" if parameters["process"] == "each" else "seconds"
    iterations = [_iteration(name, i, line, metric) for i, line in enumerate(lines[1:-1], start=1)]
    if lines[-1].get("end") is not True or lines[-1].get("iterations") != len(iterations):
        raise OutputError(
            name, f"cut short after {counted(len(iterations), 'iteration')}: no last line"
        )
    if len(iterations) != parameters["iterations"]:
        raise OutputError(
            name, f"{counted(len(iterations), 'iteration')} instead of {parameters['iterations']}"
        )
    found = [result for iteration in iterations for result in iteration]
    return found + mounts.results(folder, client)


def _lines(name: str, text: str) -> list[dict[str, Any]]:
    *complete, rest = text.split("\n")
    if rest or len(complete) < 2:
        raise OutputError(name, "cut short: the last line is not complete")
    return [_object(f"{name} line {number}", line) for number, line in enumerate(complete, start=1)]


def _object(where: str, line: str) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise OutputError(where, f"no JSON: '{line[:100]}': {error}") from error
    if not isinstance(found, dict):
        raise OutputError(where, "no JSON object")
    return found


def _check_start(name: str, start: dict[str, Any], parameters: Mapping[str, object]) -> None:
    """Check that the program ran as requested; raise OutputError otherwise."""
    if start.get("steelyard_fstest") != 1:
        raise OutputError(f"{name} line 1", "not version 1 of steelyard-fstest's output")
    test = str(parameters["test"])
    large = test == "large_file_copy"
    requested = {
        "test": test,
        "files": 1 if large else parameters[FILES[test]],
        "file_bytes": parameters["size" if large else "file_size"],
        "iterations": parameters["iterations"],
        "buffer_bytes": parameters["buffer"],
        "sync": parameters["sync"],
        # Absent before 0.2.
        "process": parameters["process"],
        "keep": parameters["overwrite"],
    }
    start = {"process": "one", "keep": False} | start
    for key, value in requested.items():
        if start.get(key) != value:
            raise OutputError(f"{name} line 1", f"{key} is {start.get(key)!r} instead of {value!r}")
    if start.get("direct", False) is not parameters["direct"]:  # absent before 0.2
        raise OutputError(f"{name} line 1", f"direct is {start.get('direct')!r}")


def _iteration(name: str, number: int, line: dict[str, Any], metric: str) -> list[Result]:
    where = f"{name} line {number + 1}"
    if line.get("iteration") != number:
        raise OutputError(where, f"iteration {number} expected, found {line.get('iteration')!r}")
    seconds, size, files = (positive(where, line, key) for key in ("seconds", "bytes", "files"))
    return [
        Result(metric, seconds, "s", number),
        Result("throughput", size / seconds, "bytes_per_s", number),
        Result("files_per_s", files / seconds, "files_per_s", number),
    ]
