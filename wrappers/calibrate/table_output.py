"""Renders the table for the terminal, as JSON and as an HTML page."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from steelyard.wrappers.base import console
from steelyard.wrappers.calibrate.table import (
    ACCOUNTING,
    EXACT,
    STATED,
    WITHIN,
    WRONG,
    Cell,
    Table,
)

ORDER = (EXACT, WITHIN, STATED, WRONG)  # the worst last
# Columns of the overview; other quantities (TCP, rate, delay, joules) are in its last column.
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
DETAILS = ("quantity", "where", "truth", "measured", "error", "limit", "verdict")


def list_overview(table: Table) -> tuple[list[str], list[list[str]]]:
    """Return the overview: the worst verdict of all cells of each launch method and quantity."""
    rows: dict[str, dict[str, int]] = {}
    names = [*COLUMNS.values(), OTHERS]
    for cell in table.cells:
        worst = rows.setdefault(cell.launch_method, dict.fromkeys(names, -1))
        name = COLUMNS.get(cell.quantity, OTHERS)
        worst[name] = max(worst[name], ORDER.index(cell.verdict))
    return ["launch method", *names], [
        [method, *(ORDER[rank] if rank >= 0 else "" for rank in worst.values())]
        for method, worst in rows.items()
    ]


def format_number(value: float | None, unit: str, sign: str = "") -> str:
    """Format bytes exactly and seconds to a tenth of a millisecond, so that an error is visible."""
    if value is None:
        return "–"
    digits = {"s": 4, "J": 1}.get(unit, 0)
    return f"{value:{sign if value else ''}.{digits}f}".replace("-", "−")


def format_detail(cell: Cell) -> list[str]:
    """Return a row below DETAILS: `sacct` means AdminComment; a limit is `−0.1…+0.005`."""
    less, more = cell.limit.less, cell.limit.more
    limit = (f"−{less:.6g}…" if less else "") + f"+{more:.8g}"
    where = cell.where + (f" {cell.node}" if cell.node else "")
    return [
        cell.quantity,
        "sacct" if cell.where == ACCOUNTING else where,
        format_number(cell.truth, cell.unit),
        format_number(cell.measured, cell.unit),
        format_number(cell.error, cell.unit, "+"),
        limit if less or more else EXACT,
        cell.verdict,
    ]


def group_by_key(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Group values by key, each value once, in their order."""
    found: dict[str, list[Any]] = {}
    for key, value in pairs:
        values = found.setdefault(key, [])
        if value not in values:
            values.append(value)
    return found


def group_cells(cells: Iterable[Cell]) -> dict[str, list[Cell]]:
    """Group cells by launch method and load, which are the headings."""
    found: dict[str, list[Cell]] = {}
    for cell in cells:
        method = cell.launch_method
        heading = method if cell.load in method else f"{method}: {cell.load}"
        found.setdefault(heading, []).append(cell)
    return found


def list_reasons(table: Table) -> dict[str, list[str]]:
    """Return the reasons of null or incomplete figures, each with its figures."""
    return group_by_key(
        (cell.reason or "", f"{cell.launch_method} ({cell.quantity})")
        for cell in table.cells
        if cell.verdict == STATED
    )


def list_limits(table: Table) -> dict[str, list[str]]:
    """Return every reason for a limit with its quantities."""
    return group_by_key(
        (why, cell.quantity)
        for cell in table.cells
        for why in filter(None, cell.limit.why.split("; "))
    )


def format_verdict(table: Table) -> str:
    """Return a sentence with the verdict."""
    count = table.count()
    parts = [
        f"{count[EXACT]} exact",
        f"{count[WITHIN]} within their limits",
        f"{count[STATED]} stated as not measured or incomplete",
        f"{count[WRONG]} wrong",
    ]
    if table.broken:
        parts.append(f"{len(table.broken)} launch methods without a result")
    head = "interrupted; so far: " if table.interrupted else ""
    if not table.cells:
        return f"{head}nothing was measured"
    if table.is_right:
        scale = "this scale is right"
    elif table.wrong:
        scale = "this scale is NOT right"
    else:
        scale = "nothing was measured wrong, but not all that was begun could be measured"
    return f"{head}{', '.join(parts)}" + ("" if table.interrupted else f": {scale}")


def print_table(table: Table, everything: bool) -> None:
    """Print the table on the terminal."""
    if table.cells:
        headings, rows = list_overview(table)
        console.print_table(headings, rows, title="the worst of record and accounting")
    chosen = table.cells if everything else table.wrong
    for heading, cells in group_cells(chosen).items():
        console.print_table(DETAILS, [format_detail(cell) for cell in cells], title=heading)
    for line in list_remarks(table):
        console.print_line(line)
    print(format_verdict(table))


def list_remarks(table: Table) -> Iterator[str]:
    """Yield the remarks below a table: reasons of stated cells, and launch methods without
    cells."""
    for why, names in list_reasons(table).items():
        more = f", … ({len(names)} in all)" if len(names) > 2 else ""
        yield f"{STATED}: {', '.join(names[:2])}{more}: {why}"
    for entry in table.troubles:
        kind = "FAILED" if entry.failed else "not possible here"
        yield f"{kind}: {entry.launch_method}: {entry.reason}"


def as_json(table: Table, facts: dict[str, Any]) -> dict[str, Any]:
    """Return the document of docs/formats.md part 10."""
    return {
        "format": "steelyard-calibration",
        "version": 1,
        **facts,
        "correct": table.is_right,
        "interrupted": table.interrupted,
        "counts": table.count(),
        "cells": [cell_json(cell) for cell in table.cells],
        "not_measured": [asdict(entry) for entry in table.troubles],
    }


def cell_json(cell: Cell) -> dict[str, Any]:
    """Return one cell for the document."""
    fields = asdict(cell)
    limit = fields.pop("limit")
    return fields | {
        "error": cell.error,
        "limit_less": limit["less"],
        "limit_more": limit["more"],
        "limit_reason": limit["why"] or None,
        "verdict": cell.verdict,
    }


def render_page(table: Table, facts: dict[str, Any]) -> str:
    """Return one HTML file without external resources, in the style of the reports."""
    import jinja2

    folder = importlib.resources.files("steelyard.analysis.report")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    template = environment.from_string(folder.joinpath("calibration.html.j2").read_text("utf-8"))
    headings, rows = list_overview(table)
    return template.render(
        css=folder.joinpath("report.css").read_text("utf-8"),
        facts=[(key.replace("_", " "), value) for key, value in facts.items()],
        verdict=format_verdict(table),
        is_right=table.is_right,
        overview={"headings": headings, "rows": rows},
        details=DETAILS,
        groups={
            heading: [(format_detail(cell), cell.verdict) for cell in cells]
            for heading, cells in group_cells(table.cells).items()
        },
        limits=list_limits(table),
        reasons=list_reasons(table),
        troubles=table.troubles,
    )
