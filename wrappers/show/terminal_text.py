"""Text for a terminal: numbers with units, wrapped lines, and tables that fit its width.

A pipe has no width: lines and tables are printed complete there."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Sequence

from steelyard.analysis.stats.number_format import MISSING
from steelyard.wrappers.base import console


def format_joules(value: float | None) -> str:
    """Return, for example, `1.5 kJ`; `–` for None."""
    if value is None:
        return "–"
    for unit in ("J", "kJ", "MJ"):
        if abs(value) < 1000:
            return f"{value:.4g} {unit}"
        value /= 1000
    return f"{value:.4g} GJ"


def format_percent(share: float | None) -> str:
    """Return, for example, `35.7 %`; `–` for None."""
    if share is None:
        return "–"
    return "< 0.1 %" if 0 < share < 0.001 else f"{100 * share:.1f} %"


def group_by_reason(missing: dict[str, str]) -> dict[str, list[str]]:
    """Return the names of each reason."""
    found: dict[str, list[str]] = {}
    for name, why in missing.items():
        found.setdefault(str(why), []).append(name)
    return found


GAP = 3  # columns between two cells


def print_wrapped(text: str) -> None:
    """Print an indented line, wrapped between words on a narrower terminal."""
    room = terminal_columns()
    if room is None:
        console.print_line(f"  {text}")
        return
    filled = textwrap.fill(
        text, max(room, 20), initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )
    for line in filled.split("\n"):
        console.print_line(line)


def terminal_columns() -> int | None:
    """Return the columns of the terminal; None for a pipe."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def transpose_wide_table(
    headings: Sequence[str], rows: Sequence[Sequence[object]], room: int | None
) -> tuple[list[str], list[list[object]]]:
    """Return the table with a column for each row, if only this form fits the terminal; else
    unchanged."""
    plain = [list(row) for row in rows]
    other = [list(column) for column in zip(headings, *rows, strict=True)]
    if room is None or table_width([headings, *rows]) <= room or table_width(other) > room:
        return list(headings), plain
    return [str(cell) for cell in other[0]], other[1:]


def drop_columns(
    headings: Sequence[str],
    rows: Sequence[Sequence[object]],
    dispensable: Sequence[str],
    room: int | None,
) -> tuple[list[str], list[list[object]]]:
    """Return the table without as many of `dispensable` as necessary to fit; empty columns are
    dropped first."""
    names, cells = list(headings), [list(row) for row in rows]
    empty = [
        name
        for name, *column in zip(names, *cells, strict=True)
        if all(cell in (None, MISSING) for cell in column)
    ]
    for name in dict.fromkeys([*(n for n in dispensable if n in empty), *dispensable]):
        if room is None or table_width([names, *cells]) <= room:
            break
        index = names.index(name)
        del names[index]
        for row in cells:
            del row[index]
    return names, cells


def table_width(lines: Sequence[Sequence[object]]) -> int:
    """Return the width of a table of these lines."""
    widest = [max(len(str(cell)) for cell in column) for column in zip(*lines, strict=True)]
    return sum(widest) + GAP * len(widest)
