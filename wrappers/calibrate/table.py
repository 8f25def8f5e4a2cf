"""The table of `steelyard calibrate`: truth, weighed, error, limit, verdict (docs/calibrate.md).

Knows nothing of how a load is run: what it is given are a load's own figures and what was weighed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from steelyard.facts.quantities import TOTALS

EXACT, WITHIN, TOLD, WRONG = "==", "ok", "told", "WRONG"
RECORD, ACCOUNTING = "record", "accounting"


@dataclass(frozen=True)
class Quantity:
    """One figure: where it stands in the record and in AdminComment."""

    name: str
    path: str  # in the record, dotted
    key: str  # in AdminComment
    unit: str
    largest: bool = False  # of several nodes the largest counts, not the sum


def quantity(name: str, key: str) -> Quantity:
    """A total by its name here."""
    total = TOTALS[key]
    return Quantity(name, total.path, key, total.unit, total.over_nodes == "LARGEST")


CPU = quantity("CPU", "cpu_s")
READS = quantity("read calls", "rchar_bytes")
WRITES = quantity("write calls", "wchar_bytes")
FETCHED = quantity("from storage", "read_bytes")
STORED = quantity("to storage", "write_bytes")
MEMORY = quantity("memory", "max_memory_bytes")
ELAPSED = quantity("elapsed", "elapsed_s")
SENT = quantity("TCP sent", "tx_bytes")
RECEIVED = quantity("TCP received", "rx_bytes")
ENERGY = quantity("joules", "energy_j")
USUAL = (CPU, READS, WRITES, FETCHED, STORED, MEMORY, ELAPSED)


@dataclass(frozen=True)
class Limit:
    """How far the weighed may be from the truth, and why it cannot be closer."""

    less: float = 0
    more: float = 0
    why: str = ""

    def __add__(self, other: Limit) -> Limit:
        """Two reasons at once."""
        why = "; ".join(dict.fromkeys(part for part in (self.why, other.why) if part))
        return Limit(self.less + other.less, self.more + other.more, why)


@dataclass(frozen=True)
class Cell:
    """One quantity of one load, weighed in one way."""

    way: str
    load: str
    quantity: str
    unit: str
    where: str  # RECORD, ACCOUNTING, or a figure of a command's output
    truth: float
    weighed: float | None
    limit: Limit
    node: str | None = None
    reason: str | None = None  # of a null, or why the weighing says that it is incomplete

    @property
    def error(self) -> float | None:
        """Weighed less truth."""
        return None if self.weighed is None else self.weighed - self.truth

    @property
    def verdict(self) -> str:
        """Null and incomplete are no wrong numbers as long as they are told with their reason; but
        nothing is ever too much."""
        error = self.error
        if error is None:
            return TOLD if self.reason else WRONG
        if error == 0:
            return EXACT
        if -self.limit.less <= error <= self.limit.more:
            return WITHIN
        return TOLD if self.reason and error < 0 else WRONG


@dataclass(frozen=True)
class Trouble:
    """A way without cells: not possible here (`broken` False), or begun and come to nothing."""

    way: str
    why: str
    broken: bool = False


@dataclass
class Table:
    """All that is known so far."""

    cells: list[Cell] = field(default_factory=list)
    troubles: list[Trouble] = field(default_factory=list)
    interrupted: bool = False

    @property
    def wrong(self) -> list[Cell]:
        """Cells outside their limits, and nulls without a reason."""
        return [cell for cell in self.cells if cell.verdict == WRONG]

    @property
    def broken(self) -> list[Trouble]:
        """Ways that should have given cells."""
        return [entry for entry in self.troubles if entry.broken]

    @property
    def is_right(self) -> bool:
        """Something was weighed, and nothing was weighed wrong."""
        return bool(self.cells) and not self.wrong and not self.broken

    def count(self) -> dict[str, int]:
        """Cells by verdict."""
        found = dict.fromkeys((EXACT, WITHIN, TOLD, WRONG), 0)
        for cell in self.cells:
            found[cell.verdict] += 1
        return found

    def ways(self) -> list[str]:
        """Of the cells, in their order."""
        return list(dict.fromkeys(cell.way for cell in self.cells))


def number_at(document: Mapping[str, object], path: str) -> float | None:
    """The number at a dotted path, or None."""
    value: object = document
    for key in path.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def reason_at(document: Mapping[str, object], *paths: str) -> str | None:
    """Why a figure is null: under `missing`, by its own path or one above it."""
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


def unseen_reason(document: Mapping[str, object], unwaited: int) -> str | None:
    """Of processes that nobody waits for a record, or AdminComment, may not know, and has to say so;
    that excuses no other load."""
    return reason_at(document, "cpu.unseen_s", "cpu_unseen_s") if unwaited else None


def incomplete_reason(record: Mapping[str, object]) -> str | None:
    """What a record says of itself when it does not hold all of the job."""
    if record.get("complete"):
        return None
    return str(record.get("incomplete_reason") or "") or None


def summed(quantity: Quantity, values: Iterable[float]) -> float:
    """Of several nodes."""
    every = list(values)
    return (max(every) if quantity.largest else sum(every)) if every else 0
