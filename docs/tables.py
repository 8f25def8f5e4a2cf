"""Writes the marked tables of docs/ anew from what the programs read; --check: says which differ.

A part of a page from `<!-- from FILE, NAME: make docs -->` to `<!-- end of NAME -->` is not written by
hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from itertools import groupby
from pathlib import Path

import duckdb

from steelyard.analysis.sources import sacct
from steelyard.analysis.store.schema import schema_text
from steelyard.facts.netem_keys import VALUES
from steelyard.facts.quantities import COLUMNS, TOTALS, Total
from steelyard.jobscripts.docs import cells

PAGES = Path(__file__).parent
MARKED = re.compile(
    r"(<!-- from [\w/]+\.\w+, (\w+): make docs -->\n).*?(<!-- end of \2 -->)", re.DOTALL
)
WHOSE = {
    "NODE": "node",
    "PROCESSES": "job",
    "REAPED": "job",
    "SAMPLER": "sampler",
}
ROW = re.compile("^one row(?: per|:) ")  # as comments of tables begin
# A: AdminComment, D: the database, R: a metric of every run.
COPIES = {"RECORD": "", "DATABASE": "D", "COMMENT": "A", "BOTH": "AD", "METRIC": "ADR"}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = (headings, ["---"] * len(headings), *rows)
    return "".join(f"{cells(list(line))}\n" for line in lines)


def columns() -> str:
    """The columns that every file of samples has, in its order."""
    paths = {total.column: total.path for total in TOTALS.values() if not total.is_largest}
    return table(
        ("column", "unit", "kind", "meaning"),
        (
            (c.name, c.unit, c.kind.lower(), as_total(paths.get(c.name)) + c.meaning)
            for c in COLUMNS
        ),
    )


def as_total(path: str | None) -> str:
    """The field of the record that has a column's last value."""
    return f"`{path}`: " if path else ""


def totals() -> str:
    """The totals of a record, in the order of the database."""
    headings = ("field", "name", "copies", "nodes", "whose", "meaning")
    return table(headings, map(total_row, TOTALS.values()))


def total_row(total: Total) -> tuple[str, ...]:
    """As `headings` of totals()."""
    return (
        total.path,
        f"`{total.name}`",
        COPIES[total.told_in],
        "largest" if total.over_nodes == "LARGEST" else "sum",
        WHOSE[total.whose],
        total.meaning,
    )


def tables_of_study() -> str:
    """Every table of a study's database: what a row is, and its columns with their types."""
    with duckdb.connect() as base:
        base.execute(schema_text())
        rows = base.execute(
            "SELECT table_name, t.comment, list(struct_pack(name := column_name, type := data_type)"
            " ORDER BY column_index) FROM duckdb_tables() t JOIN duckdb_columns() c"
            " USING (table_name) GROUP BY table_name, t.comment, t.table_oid ORDER BY t.table_oid"
        ).fetchall()
    return table(
        ("table", "a row", "columns"),
        ((name, ROW.sub("", comment), columns_of(found)) for name, comment, found in rows),
    )


def columns_of(found: Sequence[dict[str, str]]) -> str:
    """Names, with the type behind those that are no text; a long row of a kind in two words."""
    texts = []
    for kind, group in groupby(found, lambda column: kind_of(column["name"])):
        together = list(group)
        if kind and len(together) > 10:
            texts.append(kind)
        else:
            texts += [f"{one['name']} {one['type']}".removesuffix(" VARCHAR") for one in together]
    return ", ".join(texts)


def kind_of(name: str) -> str:
    """What explains a column elsewhere, if anything."""
    if name in sacct.FIELDS:
        return "*sacct's fields*"
    return "*the totals*" if name in TOTALS and TOTALS[name].in_database else ""


def netem_keys() -> str:
    """Every form of every key of a specification, in the order of the canonical text."""
    rows = ((f"`{v.example}`", v.does, v.values, f"`{v.json}`") for v in VALUES)
    return table(("part", "what it does", "values", "in the record"), rows)


TABLES = {
    "columns": columns,
    "totals": totals,
    "netem_keys": netem_keys,
    "tables": tables_of_study,
}


def renewed(text: str) -> str:
    """A page with its marked tables as they ought to be."""
    return MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", text)


def main(arguments: Sequence[str]) -> None:
    """Exit code 1, with a line: --check has found pages that differ."""
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("**/*.md"))}
    stale = [page for page, text in texts.items() if renewed(text) != text]
    if stale and "--check" in arguments:
        names = ", ".join(page.name for page in stale)
        sys.exit(f"{names}: tables differ from what the programs read: say make docs")
    for page in stale:
        page.write_text(renewed(texts[page]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
