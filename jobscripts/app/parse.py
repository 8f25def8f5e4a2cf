"""Reads a command's time, and its figures from out.CLIENT by the user's patterns; rejects figures that
are not what their text shows.

A figure must be a complete number: not 5 of "5,75", 5.75 of "5.75e3", 7 of "-7" or 0 of "0x10". The
matches of one figure are averaged, so they must have one unit and omit no number: `rate 1.1 GB/s`
and `rate 950 MB/s` would become 475.55, although the rates differ by only 15 %."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from steelyard.jobscripts import client_usage, cvmfs
from steelyard.jobscripts.errors import BenchmarkError, FailedError, OutputError
from steelyard.jobscripts.output import last_message, number, origin_of_tags, read_text
from steelyard.jobscripts.plurals import counted
from steelyard.jobscripts.registry import OwnFigures, Result
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular
from steelyard.jobscripts.user_figures_table import Figure

# Characters of a number that may be before and after a matched part of it. D is Fortran's exponent;
# apostrophes and narrow blanks group thousands; U+FFFD is a byte that could not be decoded, U+2212
# a minus. A letter after a number is its unit (5.5k) or a digit (0x10).
BEFORE = re.compile(
    r"(?:[\ufffd\u2212]|[0-9][.,'\u00a0\u202f]?|(?:^|[\s=:;(\[])[.,+-]|[0-9.][eEdD][+-]?)\Z",
    re.ASCII,
)
BEHIND = re.compile(r"[^\W\d_]|\ufffd|[0-9]|[.,'\u00a0\u202f][0-9]|[eEdD][+-]?[0-9]")


def check_complete_numbers(file: str, name: str, match: re.Match[str], unit: str) -> None:
    """Raise OutputError if the number continues outside the pattern's group.

    A character that the pattern itself expects there, such as the comma between columns, is not
    part of the number, nor is the figure's `unit`.
    """
    text, (start, end) = match.string, match.span(1)
    if start < 0:
        return  # the group took no part in this match, so there is no number
    before, behind = text[max(0, start - 3) : start], text[end : end + 3]
    left, right = beside_group(match.re.pattern)
    if BEFORE.search(before) and not left.endswith(_named(before[-1])):
        raise OutputError(file, _describe_match(name, match))
    is_unit = re.match(rf"{re.escape(unit)}(?!\w)", text[end : end + len(unit) + 1])
    if BEHIND.match(behind) and not is_unit and not _names(right, behind[0]):
        raise OutputError(file, _describe_match(name, match))


def _names(right: str, character: str) -> bool:
    """Whether a pattern expects this character after the group; a class or group may be letters."""
    if character.isalpha() and right.startswith(("[", "(?:", r"\w", r"\S")):
        return True
    return right.startswith(_named(character))


def _named(character: str) -> tuple[str, ...]:
    """Return the ways in which a pattern can match this character and no other."""
    escaped = re.escape(character)
    return (escaped,) if character in ".+" else (escaped, character)


def _describe_match(name: str, match: re.Match[str]) -> str:
    start, end = match.span(1)
    before = re.search(r"\S*\Z", match.string[max(0, start - 30) : start])
    behind = re.match(r"\S*", match.string[end : end + 30])
    found = f"{before[0] if before else ''}{match[1]}{behind[0] if behind else ''}"
    return (
        f"{name}: {match.re.pattern} takes '{match[1]}' out of '{found}': expected is a whole "
        "number with a decimal point, as ([-+0-9.eE]+) takes it; a comma between columns, or another "
        "unit than the figure's, has to be in the pattern beside the group"
    )


def beside_group(pattern: str) -> tuple[str, str]:
    """Return the parts of a pattern before and after its only capturing group."""
    opened: list[int] = []
    i, in_class = 0, False
    while i < len(pattern):
        if pattern[i] == "\\":
            i += 1
        elif in_class:
            in_class = pattern[i] != "]"
        elif pattern[i] == "[":
            in_class = True
            i += pattern[i + 1 : i + 3].startswith("^") + (pattern[i + 1 :].lstrip("^")[:1] == "]")
        elif pattern[i] == "(":
            opened.append(i)
        elif pattern[i] == ")":
            start = opened.pop()
            if pattern[start + 1 : start + 2] != "?" or pattern[start + 1 :].startswith("?P<"):
                return pattern[:start], pattern[i + 1 :]
        i += 1
    return pattern, ""


PREFIXES = "kKMGTPEmuµμn"
UNIT = re.compile(
    rf"[ \t]*(?P<word>(?P<prefix>[{PREFIXES}]i?)?"
    r"(?P<base>[Bb]ytes?|[Bb]its?|B|b|seconds?|secs?|s|Hz|[Ff][Ll][Oo][Pp]s?|Wh|W|J|IOPS|ops|Mops)"
    r"(?P<per>/s(?:ec)?|ps)?"
    rf"|(?P<time>min(?:utes?)?|h(?:ours?)?)|(?P<scale>[{PREFIXES}]))(?![^\s,;.)\]])"
)
ONE_NAME = {"byte": "B", "bit": "b", "second": "s", "sec": "s", "flop": "flop"}
NO_NUMBER = r"[-+]?(?i:nan|inf|infinity)(?![\w.])|(?i:n/a)(?!\w)|\*{2,}|#{2,}"

Unit = tuple[str, str]  # base unit, and its prefix or name


def check_units(file: str, name: str, found: Sequence[re.Match[str]]) -> None:
    """Raise OutputError if a figure's numbers have different units, or one was not matched."""
    units = {unit_behind(match): match for match in found}
    if len(units) > 1:
        one, other = (split_units(match) for match in list(units.values())[:2])
        raise OutputError(
            file,
            f"{name}: different units: '{one}' and '{other}'; a figure has one unit: name it in the "
            "pattern, or let the program print one",
        )
    pattern, text = found[0].re.pattern, found[0].string
    left, right = beside_group(pattern)
    group = pattern[len(left) : len(pattern) - len(right)]
    no_number = _compile(f"{left}(?:{NO_NUMBER}){right}")
    if no_number and (wrong := no_number.search(text)):
        raise OutputError(file, f"{name}: '{wrong[0].strip()[:60]}' has no number")
    (unit,) = units
    without_right = _compile(left + group)
    if unit is None or without_right is None:
        return
    starts = {match.start(1) for match in found}
    for match in without_right.finditer(text):
        other_unit = unit_behind(match)
        if match.start(1) not in starts and other_unit and other_unit[0] == unit[0]:
            raise OutputError(
                file,
                f"{name}: '{split_units(match)}' is left out: its unit is another than the others'",
            )


def unit_behind(match: re.Match[str]) -> Unit | None:
    """Return the unit after a number; None: no known unit."""
    found = UNIT.match(match.string, match.end(1))
    if found is None:
        return None
    if found["time"]:
        return "s", found["time"][0]
    if found["scale"]:
        return "", found["scale"]
    base = found["base"]
    base = ONE_NAME.get(base.lower().rstrip("s") or "s", base) if len(base) > 1 else base
    return base + ("/s" if found["per"] else ""), found["prefix"] or ""


def split_units(match: re.Match[str]) -> str:
    """Return the match, extended to the end of its unit."""
    found = UNIT.match(match.string, match.end(1))
    end = found.end() if found else match.end()
    return match.string[match.start() : max(end, match.end(1))].strip()[:60]


def _compile(pattern: str) -> re.Pattern[str] | None:
    """Compile a part of a pattern; None if the part alone is no valid pattern."""
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error:
        return None


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
