"""The output of the benchmarks xrootd and roottree: how a client writes it, how parse.py reads it.

It is JSON, one object per line: `start` (the parameters, and what must be found), one per
iteration, `server` (its counts, or why there are none), `end` with the SHA-256 of all lines before
it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from steelyard.jobscripts.errors import FailedError, OutputError
from steelyard.jobscripts.output import read_output
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import Result

VERSION = 1
MASS_TOLERANCE = 1e-9  # cosh and cos differ in their last bits between processors


class Writer:
    """Collects the lines of the output."""

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark
        self.lines: list[str] = []

    def add(self, kind: str, content: Mapping[str, Any]) -> None:
        """Add a line."""
        self.lines.append(json.dumps({"kind": kind, **content}))

    def text(self) -> str:
        """Return the complete output, with the last line."""
        body = "".join(line + "\n" for line in self.lines)
        last = {"kind": "end", "benchmark": self.benchmark, "version": VERSION}
        return body + json.dumps({**last, "sha256": digest(body)}) + "\n"


def digest(body: str) -> str:
    """Return the SHA-256 of the lines before the last one."""
    return hashlib.sha256(body.encode()).hexdigest()


def read(
    folder: Path, client: int, benchmark: str, parameters: Mapping[str, object]
) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return `start`, the iterations and `server`.

    Raises OutputError if the output is incomplete, of another benchmark, or of other parameters.
    """
    name = f"out.{client}"
    text = read_output(folder, client, benchmark)
    body, last = split(name, text)
    expected = {"kind": "end", "benchmark": benchmark, "version": VERSION, "sha256": digest(body)}
    if last != expected:
        raise OutputError(name, f"cut short or damaged: no last line that fits ({benchmark})")
    start, iterations, server = parts(name, body)
    for key, value in parameters.items():
        found = start["asked"].get(key)
        if found != value:
            raise OutputError(name, f"{key} was {found!r} instead of {value!r}")
    if len(iterations) != parameters["iterations"]:
        raise OutputError(
            name, f"{counted(len(iterations), 'iteration')}, not {parameters['iterations']}"
        )
    return start, iterations, server


def parts(name: str, body: str) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return the lines by kind, which have this order."""
    found = [json.loads(line) for line in body.splitlines()]
    kinds = [line["kind"] for line in found]
    if len(found) < 2 or kinds != ["start", *["iteration"] * (len(found) - 2), "server"]:
        raise OutputError(name, f"lines of the kinds start, iteration, server, not {kinds}")
    return found[0], found[1:-1], found[-1]


def split(name: str, text: str) -> tuple[str, Any]:
    """Return the lines before the last one, and the last one as an object."""
    body, _, last = text.removesuffix("\n").rpartition("\n")
    if not text.endswith("\n") or not body:
        raise OutputError(name, "cut short: the last line is not complete")
    try:
        return body + "\n", json.loads(last)
    except ValueError as error:
        raise OutputError(name, f"cut short: the last line is no JSON: {error}") from error


def verify(found: Mapping[str, Any], expected: Mapping[str, Any] | None, who: str) -> None:
    """Raise FailedError if a client's results are not those of the input."""
    if expected is None:
        return
    required = {**expected, "written": expected["selected"]} if "selected" in expected else expected
    for key, value in required.items():
        right = found.get(key) == value
        if key == "mass_sum_gev":
            right = abs(found.get(key, 0.0) - value) <= MASS_TOLERANCE * abs(value)
        if not right:
            raise FailedError(
                f"{who} found {key} = {found.get(key)!r}, but the input was made with {value!r}"
            )


def common(name: str, number: int, line: Mapping[str, Any]) -> list[Result]:
    """Return the figures of every kind of task, for all clients of an iteration together."""
    answers: Sequence[Mapping[str, Any]] = line["clients"]
    seconds = max(a["end_s"] for a in answers) - min(a["begin_s"] for a in answers)
    if not seconds > 0 or any(a["end_s"] <= a["begin_s"] for a in answers):
        raise OutputError(name, f"iteration {number} took {seconds} s, which cannot be")
    results = [
        Result("seconds", seconds, "s", number),
        Result("client_cpu_s", sum(a["cpu_s"] for a in answers), "s", number),
    ]
    if "bytes_read" in answers[0]:
        size = float(sum(a["bytes_read"] for a in answers))
        results.append(Result("bytes_per_s", size / seconds, "bytes_per_s", number))
        results.append(Result("bytes_read", size, "bytes", number))
    if "events" in answers[0]:
        events = sum(a["events"] for a in answers)
        results.append(Result("events_per_s", events / seconds, "events_per_s", number))
    if line["cached_share"] is not None:
        results.append(Result("cached_share", line["cached_share"], "1", number))
    return results


def of_clients(number: int, line: Mapping[str, Any], in_turn: bool) -> list[Result]:
    """Return the figures of single clients, in addition to those of all of them together."""
    answers: Sequence[Mapping[str, Any]] = line["clients"]
    begins = [a["begin_s"] for a in answers]
    own_s = [a["end_s"] - a["begin_s"] for a in answers]
    first = (number - 1) * len(answers) + 1
    results = [Result("client_seconds", s, "s", first + i) for i, s in enumerate(own_s)]
    if "bytes_read" in answers[0]:
        rates = sum(a["bytes_read"] / s for a, s in zip(answers, own_s, strict=True))
        results.append(Result("summed_bytes_per_s", rates, "bytes_per_s", number))
    first_end_s = min(a["end_s"] for a in answers) - min(begins)
    results.append(Result("first_end_s", first_end_s, "s", number))
    if not in_turn:
        results.append(Result("start_spread_s", max(begins) - min(begins), "s", number))
    if line["clock_error_s"] is not None:
        results.append(Result("clock_error_s", line["clock_error_s"], "s", number))
    return results
