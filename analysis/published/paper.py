"""What a paper claims and prints, as data: the folders of papers/ (README.md there says from where)."""

from __future__ import annotations

import csv
import importlib.resources
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Facts = Mapping[str, Any]
CLAIMS = "claims.toml"


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence of a paper, and what of a study must lie where for it to hold (papers/README.md)."""

    words: str
    place: str  # where it is printed
    kind: str  # one of verdicts.KINDS
    studies: Sequence[str]  # the example studies that ask it: one, or several together
    metric: Sequence[str] = ()  # the first that has values counts
    all_metrics: bool = False  # each that has values counts
    printed: str = ""  # its size, as printed
    printed_share: float | None = None  # the same as a number, to draw
    where: Facts = field(default_factory=dict)  # of both sides
    level: Facts = field(default_factory=dict)  # of the condition
    against: Facts = field(default_factory=dict)  # of what it is compared with
    each: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # has to be there, one by one
    more: Facts = field(default_factory=dict)  # order: whose overhead is the larger
    less: Facts = field(default_factory=dict)  # order: whose is the smaller
    size: Facts = field(default_factory=dict)  # others are told, not left out
    low: float | None = None  # the claim: between these; None: no end
    high: float | None = None
    reading: str = ""  # what of this is ours


@dataclass(frozen=True, slots=True)
class Fault:
    """What in the paper does not agree with itself."""

    words: str
    place: str


@dataclass(frozen=True, slots=True)
class PrintedValue:
    """A number of a printed table, and which runs of a study measure the same."""

    table: str
    place: tuple[str, ...]  # its row: `container`, `comm`, `CG.B`
    column: str
    printed: float | None  # None: the paper says that there is none
    unit: str
    metric: str
    scale: float  # ours times this is in the paper's unit
    facts: Facts
    size: Facts
    studies: Sequence[str]


@dataclass(frozen=True)
class Paper:
    """All of a paper that is kept."""

    name: str
    title: str
    short: str
    claims: Sequence[Claim]
    faults: Sequence[Fault]
    values: Sequence[PrintedValue]


def names() -> list[str]:
    """The papers there are, by name."""
    folder = importlib.resources.files(__package__).joinpath("papers")
    return sorted(path.name for path in folder.iterdir() if path.joinpath(CLAIMS).is_file())


def read_paper(name: str) -> Paper:
    """One of names()."""
    files = importlib.resources.files(__package__).joinpath("papers", name)
    with importlib.resources.as_file(files) as folder:
        return read_folder(folder)


def read_folder(folder: Path) -> Paper:
    """Any folder with such files; TypeError and KeyError for what is not of the form."""
    found = tomllib.loads((folder / CLAIMS).read_text(encoding="utf-8"))
    shared = found.get("shared", {})
    return Paper(
        folder.name,
        found["title"],
        found["short"],
        [claim_of(shared, **one) for one in found["claim"]],
        [Fault(**one) for one in found.get("fault", ())],
        [
            value
            for table in found.get("table", ())
            for value in printed_values(folder, table | {"where": where_of(shared, table)})
        ],
    )


def claim_of(shared: Mapping[str, Facts], study: str | list[str], **one: Any) -> Claim:
    """A claim as it is written."""
    where = where_of(shared, one)
    one.pop("among", None)
    return Claim(**one | {"studies": listed(study), "where": where})


def where_of(shared: Mapping[str, Facts], one: Mapping[str, Any]) -> Facts:
    """Its own facts, and those that it shares with others by names (`among`)."""
    facts: dict[str, Any] = {}
    for name in listed(one.get("among", [])):
        facts |= shared[name]
    return {**facts, **one.get("where", {})}


def listed(names: str | list[str]) -> list[str]:
    """One name is a list of one."""
    return [names] if isinstance(names, str) else names


def printed_values(folder: Path, table: Mapping[str, Any]) -> list[PrintedValue]:
    """The numbers of a table: its rows by its columns `values`."""
    with (folder / table["file"]).open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return [
        value_of(table, row, name, column)
        for row in rows
        for name, column in table["values"].items()
    ]


OF_ROWS = ("metric", "unit", "size", "study")  # not facts: what else a row's key may give


def value_of(
    table: Mapping[str, Any], row: Mapping[str, str], name: str, column: Mapping[str, Any]
) -> PrintedValue:
    """What one cell says; of the row's keys each has facts of its own."""
    keys: Mapping[str, Mapping[str, Any]] = table["keys"]
    facts = dict(table["where"]) | dict(column.get("where", {}))
    size = dict(table.get("size", {}))
    for key, by_text in keys.items():
        size |= by_text[row[key]].get("size", {})
        facts |= by_text[row[key]]
    own = {name: facts.pop(name, None) for name in OF_ROWS}  # of the row, else of the column
    return PrintedValue(
        table=table["title"],
        place=tuple(row[key] for key in keys),
        column=name,
        printed=float(row[name]) if row[name] else None,
        unit=str(own["unit"] or column["unit"]),
        metric=str(own["metric"] or column["metric"]) + column.get("suffix", ""),
        scale=float(column.get("scale", 1.0)),
        facts=facts,
        size=size,
        studies=listed(own["study"] or table["study"]),
    )
