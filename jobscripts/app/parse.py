"""Reads a command's time, and its figures from out.CLIENT by the user's patterns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts import client_usage, cvmfs
from steelyard.jobscripts.app.number_and_unit_checks import check_complete_numbers, check_units
from steelyard.jobscripts.errors import BenchmarkError, FailedError, OutputError
from steelyard.jobscripts.output import last_message, number, read_text
from steelyard.jobscripts.output_noise import origin_of_tags
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import OwnFigures, Result
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular
from steelyard.jobscripts.user_figures_table import Figure

TIMES = re.compile(r"(\d+) (\d+) (\d+) (\d+|-) (\d+|-)\n", re.ASCII)


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return the time in s and the CVMFS counters of each iteration of the command."""
    results = []
    for iteration, took_s in enumerate(
        seconds(folder, client, int(str(parameters["iterations"]))), 1
    ):
        used = client_usage.read(folder, client, iteration)
        took_s = used.get("elapsed_s", took_s)
        results.append(Result("seconds", took_s, "s", iteration))
        results += cvmfs.results(folder, client, iteration)
    return results


def own_figures(folder: Path, client: int, figures: Mapping[str, Figure]) -> OwnFigures:
    """Return all matches of each of the study's figures, counted as iterations.

    Figures that are not found are returned with the reason.
    """
    try:
        text = read_text(folder, client, "the command")
    except BenchmarkError as error:
        return OwnFigures([], dict.fromkeys(figures, str(error)))
    found: list[Result] = []
    missing: dict[str, str] = {}
    for name, figure in figures.items():
        try:
            found += matches(f"out.{client}", name, figure, text)
        except OutputError as error:
            missing[name] = str(error)
    return OwnFigures(found, missing)


def seconds(folder: Path, client: int, iterations: int) -> list[float]:
    """Return the time of each iteration in s.

    Raises FailedError if an iteration failed, since none follows it.
    """
    name = f"app.{client}"
    try:
        text = read_regular(folder / name, NOTE_BYTES).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise OutputError(name, f"cannot be read: {error}") from error
    lines = text.splitlines(keepends=True) or [""]
    times = [seconds_of(folder, client, line) for line in lines]
    if len(times) != iterations:
        raise OutputError(name, f"expected {counted(iterations, 'line')}, found {len(times)}")
    return times


def seconds_of(folder: Path, client: int, line: str) -> float:
    """Return an iteration's wall time in s.

    If the clock was set meanwhile, it is the difference of uptimes, which have 10 ms resolution.
    """
    name, found = f"app.{client}", TIMES.fullmatch(line)
    if found is None:
        raise OutputError(name, f"not 'code start end uptime uptime': {line[:100]!r}")
    if found[1] != "0":
        message = last_message(folder, client)
        raise FailedError(
            f"the command ended with {found[1]}" + (f": {message}" if message else "")
        )
    wall_us = int(found[3]) - int(found[2])
    if "-" not in (found[4], found[5]):
        since_boot_us = int(found[5]) - int(found[4])
        if abs(wall_us - since_boot_us) > 50_000 + since_boot_us // 1000:
            wall_us = since_boot_us
    if wall_us <= 0:
        raise OutputError(name, f"a time of {wall_us} µs cannot be")
    return wall_us / 1e6


def matches(file: str, name: str, figure: Figure, text: str) -> list[Result]:
    """Return every number that the pattern matches; raise OutputError if there is none."""
    found = list(re.finditer(figure.pattern, text, re.MULTILINE))
    if not found:
        origin = origin_of_tags(text)
        message = f"{name}: nothing matches {figure.pattern}"
        raise OutputError(file, message + (f"; {origin}" if origin else ""))
    if figure.count and len(found) != figure.count:
        raise OutputError(
            file, f"{name}: {len(found)} numbers, count = {figure.count} are expected"
        )
    for match in found:
        check_complete_numbers(file, name, match, figure.unit)
    check_units(file, name, found)
    return [
        Result(name, number(file, name, match[1] or ""), figure.unit, iteration)
        for iteration, match in enumerate(found, start=1)
    ]
