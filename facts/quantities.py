"""Reads quantities.def: the columns of the samples and the totals of the record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.facts.def_rows import rows, text_of

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
        """Whether the values have a fraction; others are integers."""
        return self.unit in REAL


@dataclass(frozen=True, slots=True)
class Total:
    """The total usage of a job on a node, and how it is summed over nodes."""

    id: str
    name: str
    path: str  # in the record, dotted
    unit: str
    cell: str
    over_time: str  # LAST, LARGEST
    over_nodes: str  # SUM, LARGEST
    whose: str  # NODE, PROCESSES, REAPED, SAMPLER
    reported_in: str  # RECORD, DATABASE, COMMENT, BOTH, METRIC
    run_name: str  # in `steelyard run`; empty: not shown
    heading: str  # in `steelyard show`; empty: not shown
    words: str
    meaning: str

    @property
    def is_real(self) -> bool:
        """Whether the total has a fraction; others are integers."""
        return self.unit in REAL

    @property
    def column(self) -> str | None:
        """Return the column of the samples that has the total; None: no column does."""
        return next((column.name for column in COLUMNS if column.cell == self.cell), None)

    @property
    def in_database(self) -> bool:
        """Whether the table `records` has the total."""
        return self.reported_in in ("DATABASE", "BOTH", "METRIC")

    @property
    def in_comment(self) -> bool:
        """Whether the sampler's answer and AdminComment have the total."""
        return self.reported_in in ("COMMENT", "BOTH", "METRIC")

    @property
    def is_of_node(self) -> bool:
        """Whether the total is the node's; it is the job's only if the job was alone there."""
        return self.whose == "NODE"

    @property
    def is_largest(self) -> bool:
        """Whether the total is the largest of the samples, not the last one."""
        return self.over_time == "LARGEST"


def cells_of(kind: str) -> Iterator[list[str]]:
    """Yield the cells of each row of a kind: COLUMN or TOTAL."""
    for name, cells in rows(text_of("quantities.def")):
        if name == kind:
            yield [UNITS.get(cell, cell) for cell in cells]


COLUMNS = tuple(Column(*cells) for cells in cells_of("COLUMN"))
TOTALS = {total.name: total for total in (Total(*cells) for cells in cells_of("TOTAL"))}
# The metrics of every run, summed over its nodes.
METRICS = {name: total for name, total in TOTALS.items() if total.reported_in == "METRIC"}
# The metrics that are last values of the samples.
COUNTERS = tuple(name for name, total in METRICS.items() if not total.is_largest)
