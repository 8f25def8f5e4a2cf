"""Figures that a study defines, for benchmarks whose output is not known in advance.

A parameter of type `figures` is a table of tables: NAME = {pattern, unit, better, primary, count}.
It is stored as canonical JSON text, like any other parameter. Each figure is a main figure unless
`primary` is false.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from steelyard.facts.quantities import METRICS

NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
KEYS = ("pattern", "unit", "better", "primary", "count")
BETTER = ("lower", "higher", "none")
# Metrics of every run (docs/formats.md part 8), and that of the benchmark app.
TAKEN = ("seconds", "elapsed_s", *METRICS)


class FiguresError(ValueError):
    """A table of figures is invalid; the message is one sentence."""


@dataclass(frozen=True)
class Figure:
    """A figure: the only group of `pattern` is its number, in `unit`.

    `count`: how many numbers a run has; 0: any.
    """

    pattern: str
    unit: str
    better: str
    primary: bool
    count: int


def canonical(value: object) -> str:
    """Return the canonical JSON of a table of figures, or of its JSON text.

    Raises FiguresError.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise FiguresError(
                "no JSON: a table NAME = {pattern, unit, better} is needed"
            ) from error
    if not isinstance(value, Mapping):
        raise FiguresError("a table NAME = {pattern, unit, better} is needed")
    found = {name: vars(read_one(name, entry)) for name, entry in sorted(value.items())}
    return json.dumps(found, sort_keys=True)


def figures_of(text: str) -> dict[str, Figure]:
    """Return the figures of a canonical text, by name."""
    return {name: Figure(**entry) for name, entry in json.loads(text).items()}


def read_one(name: object, entry: object) -> Figure:
    """Return one figure of the table; raise FiguresError if it is invalid."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise FiguresError(f"{name!r}: a figure's name is lower-case letters, digits and '_'")
    if name in TAKEN:
        raise FiguresError(f"{name}: every run has a figure of this name: take another one")
    if not isinstance(entry, Mapping):
        raise FiguresError(f"{name}: a table {{pattern, unit, better}} is needed")
    for key in entry:
        if key not in KEYS:
            raise FiguresError(f"{name}.{key}: unknown key; known: {', '.join(KEYS)}")
    better, primary = entry.get("better", "none"), entry.get("primary", True)
    if better not in BETTER:
        raise FiguresError(f"{name}.better: {better!r} is none of {', '.join(BETTER)}")
    if not isinstance(primary, bool):
        raise FiguresError(f"{name}.primary: true or false is needed, found {primary!r}")
    count = entry.get("count", 0)
    if isinstance(count, bool) or not isinstance(count, int) or count < 0:
        raise FiguresError(f"{name}.count: a number of matches is needed (0: any), found {count!r}")
    pattern = pattern_of(name, entry.get("pattern"))
    return Figure(pattern, unit_of(name, entry), better, primary, count)


def unit_of(name: str, entry: Mapping[str, object]) -> str:
    """Return the unit: a short printable text; "1" for none."""
    unit = entry.get("unit")
    if not isinstance(unit, str) or not unit.isprintable() or not 0 < len(unit) <= 32:
        raise FiguresError(f'{name}.unit: a unit is needed ("1" for none), found {unit!r}')
    return unit


def pattern_of(name: str, pattern: object) -> str:
    """Return a regular expression, checked to have one group."""
    if not isinstance(pattern, str):
        raise FiguresError(f"{name}.pattern: a regular expression is needed, found {pattern!r}")
    try:
        groups = re.compile(pattern, re.MULTILINE).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise FiguresError(f"{name}.pattern: {pattern!r}: {error}") from error
    if groups != 1:
        raise FiguresError(
            f"{name}.pattern: {pattern!r} has {groups} groups: exactly one is needed, around the "
            "number; write (?:…) for others"
        )
    return pattern
