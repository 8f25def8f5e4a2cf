"""Reads the claims and tables of a paper from its folder (README.md has the columns)."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

Facts = Mapping[str, Any]  # of a condition, or required of one: conditions.py
ABSENT = "absent"  # required: the fact is unknown
WANTED = re.compile(r"(\w+)([=>])(\S+)")
CONSTANTS = {"yes": True, "no": False, "-": ABSENT}


@dataclass(frozen=True, slots=True)
class Above:
    """A required value: any number above the limit."""

    limit: float


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim of a paper, and the range in which an interval of a study must be for it to hold."""

    words: str
    place: str  # where it is printed
    kind: str  # a name in verdicts.KINDS or in the paper's own kinds
    studies: Sequence[str]  # the example studies that measure it, separately or together
    metrics: Sequence[str]  # the first with values counts
    every_metric: bool  # each with values counts
    where: Facts  # of both sides
    level: Facts  # of the condition
    against: Facts  # of the side it is compared with
    each: Mapping[str, Sequence[Any]]  # runs are needed for each of these values
    more: Facts  # order: of the larger overhead
    less: Facts  # order: of the smaller overhead
    size: Facts  # other sizes are reported, not left out
    printed: str  # its size, as printed
    printed_share: float | None  # the same as a number
    low: float | None  # None: no lower end
    high: float | None  # None: no upper end
    reading: str  # our own interpretation


class Contradiction(NamedTuple):
    """A contradiction within the paper."""

    place: str
    words: str


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """A number of a printed table, and the facts of the runs that measure the same."""

    table: str  # the table's title
    place: tuple[str, ...]  # its row: `container`, `comm`, `CG.B`
    column: str
    printed: float | None  # None: the paper prints no number
    unit: str
    metric: str
    facts: Facts
    study: str  # the example study that measures it
    size: Facts
    scale: float = 1.0  # factor from a study's value to the paper's unit


def read_claims(folder: Path, scopes: Mapping[str, Facts]) -> list[Claim]:
    """Return the lines of claims.csv, whose condition cells may name `scopes`."""
    return [parse_claim(row, scopes) for row in read_csv_rows(folder / "claims.csv")]


def read_contradictions(folder: Path) -> list[Contradiction]:
    """Return the lines of contradictions.csv."""
    return [Contradiction(**row) for row in read_csv_rows(folder / "contradictions.csv")]


def read_csv_rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the lines of a CSV file by the names of their columns."""
    with path.open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


def parse_claim(row: Mapping[str, str], scopes: Mapping[str, Facts]) -> Claim:
    """Return the claim of a line of claims.csv; a missing column is empty."""

    def facts(column: str) -> dict[str, Any]:
        return parse_facts(row.get(column, ""), scopes)

    def number(column: str) -> float | None:
        return float(row[column]) if row.get(column) else None

    return Claim(
        words=row["words"],
        place=row["place"],
        kind=row["kind"],
        studies=row["studies"].split(),
        metrics=re.split(r"[ +]", row["metrics"]) if row["metrics"] else [],
        every_metric="+" in row["metrics"],
        where=facts("where"),
        level=facts("level"),
        against=facts("against"),
        each={name: list_values(value) for name, value in facts("each").items()},
        more=facts("more"),
        less=facts("less"),
        size=facts("size"),
        printed=row["printed"],
        printed_share=number("printed_share"),
        low=number("low"),
        high=number("high"),
        reading=row["reading"],
    )


def list_values(value: Any) -> list[Any]:
    """Return the value as a list."""
    return value if isinstance(value, list) else [value]


def parse_facts(cell: str, scopes: Mapping[str, Facts]) -> dict[str, Any]:
    """Parse `npb kernel=mg|lu nodes>1 loss_percent=-`: scope, alternatives, limit, absent fact."""
    facts: dict[str, Any] = {}
    for word in cell.split():
        if not (found := WANTED.fullmatch(word)):
            facts |= scopes[word]
        elif found[2] == ">":
            facts[found[1]] = Above(float(found[3]))
        else:
            values = [parse_value(one) for one in found[3].split("|")]
            facts[found[1]] = values[0] if len(values) == 1 else values
    return facts


def parse_value(text: str) -> Any:
    """Return a constant, an integer, a number, or text, in which `*` matches anything."""
    if text in CONSTANTS:
        return CONSTANTS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
