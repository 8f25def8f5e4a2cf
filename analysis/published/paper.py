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
    study: str  # the example study that asks it
    metric: Sequence[str] = ()  # the first that has values counts
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
    study: str


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
    return Paper(
        folder.name,
        found["title"],
        found["short"],
        [Claim(**one) for one in found["claim"]],
        [Fault(**one) for one in found.get("fault", ())],
        [value for table in found.get("table", ()) for value in printed_values(folder, table)],
    )


def printed_values(folder: Path, table: Mapping[str, Any]) -> list[PrintedValue]:
    """The numbers of a table: its rows by its columns `values`."""
    with (folder / table["file"]).open(newline="", encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return [
        value_of(table, row, name, column)
        for row in rows
        for name, column in table["values"].items()
    ]


def value_of(
    table: Mapping[str, Any], row: Mapping[str, str], name: str, column: Mapping[str, Any]
) -> PrintedValue:
    """What one cell says; of the row's keys each has facts of its own."""
    keys: Mapping[str, Mapping[str, Any]] = table["keys"]
    facts = dict(table.get("where", {})) | dict(column.get("where", {}))
    for key, by_text in keys.items():
        facts |= by_text[row[key]]
    metric = facts.pop("metric", None) or column["metric"]  # of the row, else of the column
    unit = str(facts.pop("unit", None) or column["unit"])
    return PrintedValue(
        table=table["title"],
        place=tuple(row[key] for key in keys),
        column=name,
        printed=float(row[name]) if row[name] else None,
        unit=unit,
        metric=str(metric) + column.get("suffix", ""),
        scale=float(column.get("scale", 1.0)),
        facts=facts,
        size=table.get("size", {}),
        study=table["study"],
    )
