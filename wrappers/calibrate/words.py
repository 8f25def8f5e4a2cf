"""The calibration as a person, a program and a page read it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from steelyard.wrappers.base import console
from steelyard.wrappers.calibrate.table import (
    ACCOUNTING,
    EXACT,
    TOLD,
    WITHIN,
    WRONG,
    Cell,
    Table,
)

ORDER = (EXACT, WITHIN, TOLD, WRONG)  # the worst last
# Of the overview; what is not in it (TCP, rate, delay, joules) stands in its last column.
COLUMNS = {
    "CPU": "CPU",
    "read calls": "reads",
    "write calls": "writes",
    "from storage": "from",
    "to storage": "to disk",
    "memory": "memory",
    "elapsed": "elapsed",
}
OTHERS = "other"
DETAILS = ("quantity", "where", "truth", "weighed", "error", "limit", "verdict")


def overview(table: Table) -> tuple[list[str], list[list[str]]]:
    """Ways and quantities: of all cells of both the worst verdict."""
    names = [*COLUMNS.values(), OTHERS]
    rows = []
    for way in table.ways():
        worst = dict.fromkeys(names, -1)
        for cell in table.cells:
            if cell.way == way:
                name = COLUMNS.get(cell.quantity, OTHERS)
                worst[name] = max(worst[name], ORDER.index(cell.verdict))
        rows.append([way, *(ORDER[rank] if rank >= 0 else "" for rank in worst.values())])
    return ["way", *names], rows


def number(value: float | None, unit: str, sign: bool = False) -> str:
    """Bytes to the byte, seconds to a tenth of a millisecond: an error must be seen."""
    if value is None:
        return "–"
    places = 4 if unit == "s" else 1 if unit == "J" else 0
    text = f"{value:{'+' if sign and value else ''}.{places}f}"
    return text.replace("-", "−")


def limit(cell: Cell) -> str:
    """`−0.1…+0.005`, `+20000`, or `==`."""
    less, more = cell.limit.less, cell.limit.more
    if less == more == 0:
        return EXACT
    return (f"−{less:.6g}…" if less else "") + f"+{more:.8g}"


def place(cell: Cell) -> str:
    """`record n1`, `qstat n1`; `sacct`, which is where AdminComment is read."""
    if cell.where == ACCOUNTING:
        return "sacct"
    return cell.where + (f" {cell.node}" if cell.node else "")


def detail(cell: Cell) -> list[str]:
    """A row below DETAILS."""
    return [
        cell.quantity,
        place(cell),
        number(cell.truth, cell.unit),
        number(cell.weighed, cell.unit),
        number(cell.error, cell.unit, sign=True),
        limit(cell),
        cell.verdict,
    ]


def groups(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """By way and load, as headings say them."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        heading = cell.way if cell.load in cell.way else f"{cell.way}: {cell.load}"
        found.setdefault(heading, []).append(cell)
    return found


def reasons(table: Table) -> dict[str, list[str]]:
    """Why something is told and not weighed; and of what."""
    found: dict[str, list[str]] = {}
    for cell in table.cells:
        if cell.verdict == TOLD:
            name = f"{cell.way} ({cell.quantity})"
            places = found.setdefault(cell.reason or "", [])
            if name not in places:
                places.append(name)
    return found


def limits(table: Table) -> dict[str, list[str]]:
    """Every reason for a limit, and the quantities that it is for."""
    found: dict[str, list[str]] = {}
    for cell in table.cells:
        for why in filter(None, cell.limit.why.split("; ")):
            names = found.setdefault(why, [])
            if cell.quantity not in names:
                names.append(cell.quantity)
    return found


def verdict_line(table: Table) -> str:
    """One sentence for the end."""
    count = table.count()
    parts = [
        f"{count[EXACT]} exact",
        f"{count[WITHIN]} within their limits",
        f"{count[TOLD]} told as not weighed or incomplete",
        f"{count[WRONG]} wrong",
    ]
    if table.broken:
        parts.append(f"{len(table.broken)} ways came to nothing")
    head = "interrupted; so far: " if table.interrupted else ""
    if not table.cells:
        return f"{head}nothing was weighed"
    if table.is_right:
        scale = "this scale is right"
    elif table.wrong:
        scale = "this scale is NOT right"
    else:
        scale = "nothing was weighed wrong, but not all that was begun could be weighed"
    return f"{head}{', '.join(parts)}" + ("" if table.interrupted else f": {scale}")


def show(table: Table, everything: bool) -> None:
    """On the terminal."""
    if table.cells:
        headings, rows = overview(table)
        console.print_table(headings, rows, title="the worst of record and accounting")
    shown = table.cells if everything else table.wrong
    for heading, cells in groups(shown).items():
        console.print_table(DETAILS, [detail(cell) for cell in cells], title=heading)
    for line in remarks(table):
        console.print_line(line)
    print(verdict_line(table))


def remarks(table: Table) -> Iterator[str]:
    """What a table has no room for."""
    for why, names in reasons(table).items():
        more = f", … ({len(names)} in all)" if len(names) > 2 else ""
        yield f"told: {', '.join(names[:2])}{more}: {why}"
    for entry in table.troubles:
        yield f"{'FAILED' if entry.broken else 'not possible here'}: {entry.way}: {entry.why}"


def as_json(table: Table, meta: dict[str, Any]) -> dict[str, Any]:
    """docs/formats.md part 10."""
    return {
        "format": "steelyard-calibration",
        "version": 1,
        **meta,
        "right": table.is_right,
        "interrupted": table.interrupted,
        "counts": table.count(),
        "cells": [cell_json(cell) for cell in table.cells],
        "troubles": [
            {"way": entry.way, "why": entry.why, "failed": entry.broken} for entry in table.troubles
        ],
    }


def cell_json(cell: Cell) -> dict[str, Any]:
    """One cell; units stand beside the numbers."""
    return {
        "way": cell.way,
        "load": cell.load,
        "quantity": cell.quantity,
        "unit": cell.unit,
        "where": cell.where,
        "node": cell.node,
        "truth": cell.truth,
        "weighed": cell.weighed,
        "error": cell.error,
        "limit_less": cell.limit.less,
        "limit_more": cell.limit.more,
        "limit_reason": cell.limit.why or None,
        "verdict": cell.verdict,
        "reason": cell.reason,
    }


def as_page(table: Table, meta: dict[str, Any]) -> str:
    """One HTML file in the reports' style."""
    from steelyard.analysis.report.calibration import page

    headings, rows = overview(table)
    return page(
        {
            "facts": [(key.replace("_", " "), value) for key, value in meta.items()],
            "verdict": verdict_line(table),
            "is_right": table.is_right,
            "overview": {"headings": headings, "rows": rows},
            "details": DETAILS,
            "groups": {
                heading: [(detail(cell), cell.verdict) for cell in cells]
                for heading, cells in groups(table.cells).items()
            },
            "limits": limits(table),
            "reasons": reasons(table),
            "troubles": table.troubles,
        }
    )
