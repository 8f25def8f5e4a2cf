"""Refuses a figure that is a part of a number: 5 of "5,75", 5.75 of "5.75e3", 7 of "-7", 0 of "0x10"."""

from __future__ import annotations

import re

from steelyard.jobscripts.errors import OutputError

# What of a number may stand before and behind a part of it: D is Fortran's exponent; apostrophes and
# narrow blanks group thousands; U+FFFD is a byte that could not be read,
# U+2212 a minus. A letter behind a number is its unit (5.5k) or a digit (0x10).
BEFORE = re.compile(
    r"(?:[\ufffd\u2212]|[0-9][.,'\u00a0\u202f]?|(?:^|[\s=:;(\[])[.,+-]|[0-9.][eEdD][+-]?)\Z",
    re.ASCII,
)
BEHIND = re.compile(r"[^\W\d_]|\ufffd|[0-9]|[.,'\u00a0\u202f][0-9]|[eEdD][+-]?[0-9]")


def uncut(part: str, name: str, match: re.Match[str], unit: str) -> None:
    """OutputError where the number goes on beside the pattern's group.

    A character that the pattern itself names there, such as the comma between columns, is none of
    the number, nor is the figure's `unit`.
    """
    text, (start, end) = match.string, match.span(1)
    if start < 0:
        return  # the group has no part in this match, so there is no number either
    before, behind = text[max(0, start - 3) : start], text[end : end + 3]
    left, right = beside_group(match.re.pattern)
    if BEFORE.search(before) and not left.endswith(_named(before[-1])):
        raise OutputError(part, _words(name, match))
    is_unit = re.match(rf"{re.escape(unit)}(?!\w)", text[end : end + len(unit) + 1])
    if BEHIND.match(behind) and not is_unit and not _names(right, behind[0]):
        raise OutputError(part, _words(name, match))


def _names(right: str, character: str) -> bool:
    """Whether a pattern expects this character behind the group; a class or a group may name letters."""
    if character.isalpha() and right.startswith(("[", "(?:", r"\w", r"\S")):
        return True
    return right.startswith(_named(character))


def _named(character: str) -> tuple[str, ...]:
    """How a pattern names a character, and only it."""
    escaped = re.escape(character)
    return (escaped,) if character in ".+" else (escaped, character)


def _words(name: str, match: re.Match[str]) -> str:
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
    """What stands in a pattern before and behind its one group that captures."""
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
