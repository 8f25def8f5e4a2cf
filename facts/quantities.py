"""Reads quantities.def: the columns of the samples and the totals of the record."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Iterator
from dataclasses import dataclass

ROW = re.compile(r"^(COLUMN|TOTAL)\((.*?)\)$", re.MULTILINE | re.DOTALL)
TEXT_CONTINUED = re.compile(r'"\s+"')
CELL = re.compile(r'"([^"]*)"|(\w+)')

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


def rows(text: str, kind: str) -> Iterator[list[str]]:
    """The arguments of each row of a kind."""
    for name, row in ROW.findall(text):
        if name == kind:
            cells = CELL.findall(TEXT_CONTINUED.sub("", row))
            yield [quoted or UNITS.get(bare, bare) for quoted, bare in cells]


_TEXT = importlib.resources.files(__package__).joinpath("quantities.def").read_text("utf-8")
COLUMNS = tuple(Column(*row) for row in rows(_TEXT, "COLUMN"))
TOTALS = {total.name: total for total in (Total(*row) for row in rows(_TEXT, "TOTAL"))}
# What every run has, summed over its nodes.
METRICS = {name: total for name, total in TOTALS.items() if total.told_in == "METRIC"}
# Of them those that a file of samples ends with.
COUNTERS = tuple(name for name, total in METRICS.items() if not total.is_largest)
