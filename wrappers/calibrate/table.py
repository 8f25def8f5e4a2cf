"""The table of `steelyard calibrate`: truth, measured, error, limit, verdict (docs/calibrate.md); and
its output on the terminal, as JSON and as an HTML page."""

from __future__ import annotations

import importlib.resources
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from steelyard.facts.quantities import TOTALS
from steelyard.wrappers.base import console

EXACT, WITHIN, STATED, WRONG = "==", "ok", "stated", "WRONG"
RECORD, ACCOUNTING = "record", "accounting"


@dataclass(frozen=True)
class Quantity:
    """One figure, with its place in the record and in AdminComment."""

    name: str
    path: str  # in the record, dotted
    key: str  # in AdminComment
    unit: str
    largest: bool = False  # for several nodes the largest value counts, not the sum


def find_quantity(name: str, key: str) -> Quantity:
    """Return the quantity with this name."""
    total = TOTALS[key]
    return Quantity(name, total.path, key, total.unit, total.over_nodes == "LARGEST")


CPU = find_quantity("CPU", "cpu_s")
READS = find_quantity("read calls", "rchar_bytes")
WRITES = find_quantity("write calls", "wchar_bytes")
FETCHED = find_quantity("from storage", "read_bytes")
STORED = find_quantity("to storage", "write_bytes")
MEMORY = find_quantity("memory", "max_memory_bytes")
ELAPSED = find_quantity("elapsed", "elapsed_s")
SENT = find_quantity("TCP sent", "tx_bytes")
RECEIVED = find_quantity("TCP received", "rx_bytes")
ENERGY = find_quantity("joules", "energy_j")
USUAL = (CPU, READS, WRITES, FETCHED, STORED, MEMORY, ELAPSED)


@dataclass(frozen=True)
class Limit:
    """How far the measured value may be below or above the truth, with the reason."""

    less: float = 0
    more: float = 0
    why: str = ""

    def __add__(self, other: Limit) -> Limit:
        """Return the limit that two reasons allow together."""
        reasons = f"{self.why}; {other.why}".split("; ")
        why = "; ".join(dict.fromkeys(filter(None, reasons)))
        return Limit(self.less + other.less, self.more + other.more, why)


@dataclass(frozen=True)
class Cell:
    """One quantity of one known load, measured with one launch method."""

    launch_method: str
    load: str
    quantity: str
    unit: str
    where: str  # RECORD, ACCOUNTING, or a figure of a command's output
    truth: float
    measured: float | None
    limit: Limit
    node: str | None = None
    reason: str | None = None  # why the value is null or incomplete

    @property
    def error(self) -> float | None:
        """Measured value minus truth."""
        return None if self.measured is None else self.measured - self.truth

    @property
    def verdict(self) -> str:
        """EXACT, WITHIN, STATED or WRONG. A null or too small value with a reason is stated; a too
        large value is always wrong."""
        error = self.error
        if error is None:
            return STATED if self.reason else WRONG
        if error == 0:
            return EXACT
        if -self.limit.less <= error <= self.limit.more:
            return WITHIN
        return STATED if self.reason and error < 0 else WRONG


@dataclass(frozen=True)
class Trouble:
    """A launch method without cells: not possible here (`failed` False), or started without a
    result."""

    launch_method: str
    reason: str
    failed: bool = False


@dataclass
class Table:
    """All results so far."""

    cells: list[Cell] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    interrupted: bool = False

    def add_outcome(self, outcome: Iterable[Cell | Trouble]) -> None:
        """Add the cells of a launch method, or the reason why it has none."""
        for found in outcome:
            if isinstance(found, Cell):
                self.cells.append(found)
            else:
                self.troubles.append(found)

    def require_totals(self, where: str) -> None:
        """Add a trouble if no cell has a total: a single job may miss its totals, but not all
        jobs."""
        cells = [cell for cell in self.cells if cell.where == where]
        if cells and all(cell.measured is None for cell in cells):
            why = (
                "no job's totals reached the scheduler's accounting. In Slurm admin_comment=no in "
                "plugstack.conf is one cause; steelyard-node doctor names others"
            )
            self.troubles.append(Trouble("all", why, failed=True))

    @property
    def wrong(self) -> list[Cell]:
        """Cells outside their limits, and nulls without a reason."""
        return [cell for cell in self.cells if cell.verdict == WRONG]

    @property
    def broken(self) -> list[Trouble]:
        """Launch methods that should have given cells."""
        return [entry for entry in self.troubles if entry.failed]

    @property
    def is_right(self) -> bool:
        """Whether something was measured, and nothing was measured wrong."""
        return bool(self.cells) and not self.wrong and not self.broken

    def count(self) -> dict[str, int]:
        """Return the number of cells by verdict."""
        verdicts = [cell.verdict for cell in self.cells]
        return {verdict: verdicts.count(verdict) for verdict in (EXACT, WITHIN, STATED, WRONG)}


def reason_at(document: Mapping[str, object], *paths: str) -> str | None:
    """Return why a figure is null: under `missing`, by its own path or one above it."""
    missing = document.get("missing")
    if not isinstance(missing, Mapping):
        return None
    for path in paths:
        parts = path.split(".")
        for length in range(len(parts), 0, -1):
            found = missing.get(".".join(parts[:length]))
            if found:
                return str(found)
    return None


def find_unseen_reason(document: Mapping[str, object], unwaited: int) -> str | None:
    """Return why the usage of processes without a waiting parent may be missing, which a record or
    AdminComment has to state; None for other loads, which it does not excuse."""
    return reason_at(document, "cpu.unseen_s", "cpu_unseen_s") if unwaited else None


def incomplete_reason(record: Mapping[str, object]) -> str | None:
    """Return the record's own reason why it does not cover all of the job, or None."""
    if record.get("complete"):
        return None
    return str(record.get("incomplete_reason") or "") or None


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
