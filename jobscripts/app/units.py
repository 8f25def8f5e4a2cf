"""Refuses the matches of one figure that have different units, or that leave a number out.

The numbers of a figure are averaged. `rate 1.1 GB/s` beside `rate 950 MB/s` would make 475.55 of two
rates that are 15 % apart, and a `nan` that no pattern of digits matches would silently not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from steelyard.jobscripts.app.part_of_number import beside_group
from steelyard.jobscripts.errors import OutputError

PREFIXES = "kKMGTPEmuµμn"
UNIT = re.compile(
    rf"[ \t]*(?P<word>(?P<prefix>[{PREFIXES}]i?)?"
    r"(?P<base>[Bb]ytes?|[Bb]its?|B|b|seconds?|secs?|s|Hz|[Ff][Ll][Oo][Pp]s?|Wh|W|J|IOPS|ops|Mops)"
    r"(?P<per>/s(?:ec)?|ps)?"
    rf"|(?P<time>min(?:utes?)?|h(?:ours?)?)|(?P<scale>[{PREFIXES}]))(?![^\s,;.)\]])"
)
ONE_NAME = {"byte": "B", "bit": "b", "second": "s", "sec": "s", "flop": "flop"}
NO_NUMBER = r"[-+]?(?i:nan|inf|infinity)(?![\w.])|(?i:n/a)(?!\w)|\*{2,}|#{2,}"

Unit = tuple[str, str]  # what is measured, in which multiple of it


def check_units(part: str, name: str, found: Sequence[re.Match[str]]) -> None:
    """OutputError where numbers of the figure have different units, or where one was not matched."""
    units = {unit_behind(match): match for match in found}
    if len(units) > 1:
        one, other = (words_of(match) for match in list(units.values())[:2])
        raise OutputError(
            part,
            f"{name}: different units: '{one}' and '{other}'; a figure has one unit: name it in the "
            "pattern, or let the program print one",
        )
    pattern, text = found[0].re.pattern, found[0].string
    left, right = beside_group(pattern)
    group = pattern[len(left) : len(pattern) - len(right)]
    no_number = _compile(f"{left}(?:{NO_NUMBER}){right}")
    if no_number and (wrong := no_number.search(text)):
        raise OutputError(part, f"{name}: '{wrong[0].strip()[:60]}' has no number")
    (unit,) = units
    without_right = _compile(left + group)
    if unit is None or without_right is None:
        return
    starts = {match.start(1) for match in found}
    for match in without_right.finditer(text):
        other_unit = unit_behind(match)
        if match.start(1) not in starts and other_unit and other_unit[0] == unit[0]:
            raise OutputError(
                part,
                f"{name}: '{words_of(match)}' is left out: its unit is another than the others'",
            )


def unit_behind(match: re.Match[str]) -> Unit | None:
    """The unit behind a number; None: no unit that is known."""
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


def words_of(match: re.Match[str]) -> str:
    """The match up to the unit behind it."""
    found = UNIT.match(match.string, match.end(1))
    end = found.end() if found else match.end()
    return match.string[match.start() : max(end, match.end(1))].strip()[:60]


def _compile(pattern: str) -> re.Pattern[str] | None:
    """None where a part of a pattern is none by itself."""
    try:
        return re.compile(pattern, re.MULTILINE)
    except re.error:
        return None
