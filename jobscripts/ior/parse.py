"""Reads the JSON document of steelyard-iotest in out.CLIENT: a rate for each phase."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts import mounts
from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.output import read_output
from steelyard.jobscripts.pairs import number
from steelyard.jobscripts.registry import Result

# The phases of each pattern, and the results that they are.
PHASES = {
    "easy": {"write": "write", "read": "read"},
    "hard": {"write": "write", "read": "read"},
    "md_easy": {"create": "create", "stat": "stat", "delete": "delete"},
    "md_hard": {"create": "create", "stat": "stat", "read": "read_files", "delete": "delete"},
}


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Rates of the pattern's phases, and how far the ranks came."""
    name = f"out.{client}"
    text = read_output(folder, client, "steelyard-iotest")
    try:
        document = json.loads(text)
        phases = {str(one["name"]): one for one in document["phases"]}
        named = (document["format"], document["version"], len(document["phases"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise OutputError(name, f"cut short or damaged: {error}") from error
    wanted = PHASES[str(parameters["pattern"])]
    if named != ("steelyard-ior", 1, len(wanted)) or set(phases) != set(wanted):
        raise OutputError(name, f"no document of the pattern {parameters['pattern']}, version 1")
    _check(name, document, parameters)
    reached = int(number(name, document, "reached"))
    found = [
        _rate(name, phases[phase], metric, reached, parameters) for phase, metric in wanted.items()
    ]
    least = number(name, document, "least")
    return [
        *found,
        Result("reached", float(reached), "1", 1),
        Result("least", least, "1", 1),
        *mounts.results(folder, client),
    ]


def _check(name: str, document: Mapping[str, object], parameters: Mapping[str, object]) -> None:
    """It is the problem asked for, and the ranks did no more of it than was planned."""
    for key in ("pattern", "ranks", "transfer", "block", "files", "stonewall_s"):
        if document.get(key) != parameters[key]:
            raise OutputError(name, f"{key} is {document.get(key)} instead of {parameters[key]}")
    block, transfer = int(str(parameters["block"])), int(str(parameters["transfer"]))
    metadata = str(parameters["pattern"]).startswith("md_")
    planned = int(str(parameters["files"])) if metadata else block // transfer
    reached, least = (number(name, document, key) for key in ("reached", "least"))
    if not 0 < least <= reached <= planned:
        raise OutputError(name, f"{least:g} to {reached:g} of {planned} operations: cannot be")
    if not parameters["stonewall_s"] and least < planned:
        raise OutputError(name, f"{least:g} of {planned} operations, without a stonewall")


def _rate(
    name: str,
    phase: Mapping[str, object],
    metric: str,
    reached: int,
    parameters: Mapping[str, object],
) -> Result:
    part = f"{name}: {phase['name']}"
    seconds = number(part, phase, "seconds")
    operations = reached * int(str(parameters["ranks"]))
    if number(part, phase, "operations") != operations:
        raise OutputError(part, f"{phase['operations']} operations instead of {operations}")
    if seconds == 0:
        raise OutputError(part, "in no time, which cannot be")
    if metric in ("write", "read"):
        size = operations * int(str(parameters["transfer"]))
        if number(part, phase, "bytes") != size:
            raise OutputError(part, f"{phase['bytes']} bytes instead of {size}")
        return Result(metric, size / seconds, "bytes_per_s", 1)
    return Result(metric, operations / seconds, "files_per_s", 1)
