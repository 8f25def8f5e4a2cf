"""Tables where the terminal is narrower than they are. A pipe has room for all."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from steelyard.analysis.stats.readable import MISSING
from steelyard.wrappers.base import console

GAP = 3  # columns between two cells


def say(text: str) -> None:
    """An indented line, broken between words where the terminal is narrower."""
    room = columns()
    if room is None:
        console.print_line(f"  {text}")
        return
    filled = textwrap.fill(
        text, max(room, 20), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    for line in filled.split("\n"):
        console.print_line(line)


def columns() -> int | None:
    """Of the terminal; None: it is a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def turned(
    headings: Sequence[str], rows: Sequence[Sequence[object]], room: int | None
) -> tuple[list[str], list[list[object]]]:
    """With a column for each row, where the rows do not fit, and their columns do."""
    plain = [list(row) for row in rows]
    other = [list(column) for column in zip(headings, *rows, strict=True)]
    if room is None or width([headings, *rows]) <= room or width(other) > room:
        return list(headings), plain
    return [str(cell) for cell in other[0]], other[1:]


def without(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    dispensable: Sequence[str],
    room: int | None,
) -> tuple[list[str], list[list[object]]]:
    """Without the first of `dispensable`, as many as it takes; first what says nothing of any row."""
    names, cells = list(headings), [list(row) for row in rows]
    empty = [
        name
        for name, *column in zip(names, *cells, strict=True)
        if all(cell in (None, MISSING) for cell in column)
    ]
    for name in dict.fromkeys([*(n for n in dispensable if n in empty), *dispensable]):
        if room is None or width([names, *cells]) <= room:
            break
        place = names.index(name)
        del names[place]
        for row in cells:
            del row[place]
    return names, cells


def width(lines: Sequence[Sequence[object]]) -> int:
    """Of a table of these lines."""
    widest = [max(len(str(cell)) for cell in column) for column in zip(*lines, strict=True)]
    return sum(widest) + GAP * len(widest)
