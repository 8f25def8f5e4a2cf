"""The table of `steelyard calibrate`: truth, measured, error, limit, verdict (docs/calibrate.md).

It does not know how a load is run: it gets a load's own figures and the measured ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steelyard.facts.quantities import TOTALS

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
