"""Writes the marked tables of docs/ anew from what the programs read; --check: says which differ.

A part of a page from `<!-- from FILE, NAME: make docs -->` to `<!-- end of NAME -->` is not written by
hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import duckdb

from steelyard.analysis.cluster import database as cluster_database
from steelyard.analysis.sources import records, sacct
from steelyard.analysis.store import schema
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
    headings = ("field", "copies", "nodes", "whose", "meaning")
    return table(headings, map(total_row, TOTALS.values()))


def total_row(total: Total) -> tuple[str, ...]:
    """As `headings` of totals()."""
    return (
        total.path if total.path.endswith(f".{total.name}") else f"{total.path} (`{total.name}`)",
        COPIES[total.told_in],
        "largest" if total.over_nodes == "LARGEST" else "sum",
        WHOSE[total.whose],
        total.meaning,
    )


def tables_of_study() -> str:
    """Every table of a study's database: what a row is, and its columns with their types."""
    stored = [name for name, total in TOTALS.items() if total.in_database]
    return database_tables(
        schema.schema_text(), {"*sacct's fields*": sacct.FIELDS, "*the totals*": stored}
    )


def tables_of_cluster() -> str:
    """The same of a cluster's database."""
    return database_tables(
        cluster_database.schema_text(), {"*columns of `records` in part 8*": records.COLUMNS}
    )


def database_tables(statements: str, known: Mapping[str, Container[str]]) -> str:
    """What the statements make; `known`: columns that are explained elsewhere, by what names them."""
    with duckdb.connect() as base:
        base.execute(statements)
        rows = base.execute(
            "SELECT table_name, t.comment, list(struct_pack(name := column_name, type := data_type)"
            " ORDER BY column_index) FROM duckdb_tables() t JOIN duckdb_columns() c"
            " USING (table_name) GROUP BY table_name, t.comment, t.table_oid ORDER BY t.table_oid"
        ).fetchall()
    return table(
        ("table", "a row", "columns"),
        ((name, ROW.sub("", comment), columns_of(found, known)) for name, comment, found in rows),
    )


def columns_of(found: Sequence[dict[str, str]], known: Mapping[str, Container[str]]) -> str:
    """Names, with the type behind those that are no text; a long row of known ones in one word."""

    def group_of(column: dict[str, str]) -> str:
        return next((word for word, names in known.items() if column["name"] in names), "")

    texts = []
    for word, group in groupby(found, group_of):
        columns = [f"{one['name']} {one['type']}".removesuffix(" VARCHAR") for one in group]
        texts += [word] if word and len(columns) > 10 else columns
    return ", ".join(texts)


def netem_keys() -> str:
    """Every form of every key of a specification, in the order of the canonical text."""
    rows = ((f"`{v.example}`", v.does, v.values, f"`{v.json}`") for v in VALUES)
    return table(("part", "what it does", "values", "in the record"), rows)


TABLES = {
    "columns": columns,
    "totals": totals,
    "netem_keys": netem_keys,
    "tables": tables_of_study,
    "cluster_tables": tables_of_cluster,
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
