"""Reads quantities.def: the columns of the samples and the totals of the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.facts.rows import rows, text_of

UNITS = {"S": "s", "J": "J", "BYTES": "bytes", "ONE": "1"}
REAL = ("s", "J")  # units of numbers with a fraction


@dataclass(frozen=True, slots=True)
class Column:
    """A column that every file of samples has; `unit` is s, J, bytes or 1."""

    cell: str
    name: str
    unit: str
    kind: str  # CLOCK, COUNTER, GAUGE
    filled_by: str  # file below plugins/node
    meaning: str

    @property
    def is_real(self) -> bool:
        """It has a fraction; else it is whole."""
        return self.unit in REAL


@dataclass(frozen=True, slots=True)
class Total:
    """What a job has used on a node in all, and how it is summed over nodes."""

    id: str
    name: str
    path: str  # in the record, dotted
    unit: str
    cell: str
    over_time: str  # LAST, LARGEST
    over_nodes: str  # SUM, LARGEST
    whose: str  # NODE, PROCESSES, REAPED, SAMPLER
    told_in: str  # RECORD, DATABASE, COMMENT, BOTH, METRIC
    run_name: str  # in `steelyard run`; empty: not shown there
    heading: str  # in `steelyard show`; empty: not shown there
    words: str
    meaning: str

    @property
    def is_real(self) -> bool:
        """It has a fraction; else it is whole."""
        return self.unit in REAL

    @property
    def column(self) -> str | None:
        """The column of the samples that it comes from; None: it has none."""
        return next((column.name for column in COLUMNS if column.cell == self.cell), None)

    @property
    def in_database(self) -> bool:
        """The table `records` has it."""
        return self.told_in in ("DATABASE", "BOTH", "METRIC")

    @property
    def in_comment(self) -> bool:
        """The sampler's answer and AdminComment have it."""
        return self.told_in in ("COMMENT", "BOTH", "METRIC")

    @property
    def is_of_node(self) -> bool:
        """Whoever used it: it is the job's only where the job was alone."""
        return self.whose == "NODE"

    @property
    def is_largest(self) -> bool:
        """Of its samples the largest counts, not the last."""
        return self.over_time == "LARGEST"


def cells_of(kind: str) -> Iterator[list[str]]:
    """Those of each row of a kind."""
    for name, cells in rows(text_of("quantities.def")):
        if name == kind:
            yield [UNITS.get(cell, cell) for cell in cells]


COLUMNS = tuple(Column(*cells) for cells in cells_of("COLUMN"))
TOTALS = {total.name: total for total in (Total(*cells) for cells in cells_of("TOTAL"))}
# What every run has, summed over its nodes.
METRICS = {name: total for name, total in TOTALS.items() if total.told_in == "METRIC"}
# Of them those that a file of samples ends with.
COUNTERS = tuple(name for name, total in METRICS.items() if not total.is_largest)
