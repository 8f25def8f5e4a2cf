"""Writes tables of pages from the data that the programs read.

The text of a page from `<!-- from FILE, NAME: make docs -->` to `<!-- end of NAME -->` is
rewritten; --check names the pages that differ. `<!--table:NAME-->` is replaced on the site only
(docs/site/conf.py).
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

import duckdb

from steelyard.analysis.cluster import database as cluster_database
from steelyard.analysis.collect import network
from steelyard.analysis.sources import record_packs, records, sacct
from steelyard.analysis.store import schema
from steelyard.facts import json_fields
from steelyard.facts.netem_keys import VALUES
from steelyard.facts.quantities import COLUMNS, TOTALS, Total
from steelyard.jobscripts.docs import cells
from steelyard.wrappers.sweep import packing

PAGES = Path(__file__).parent
BUILT_MARK = re.compile(r"^<!--table:(\w+)-->\n", re.MULTILINE)
MARKED = re.compile(
    r"(<!-- from [\w/]+\.\w+, (\w+): make docs -->\n).*?(<!-- end of \2 -->)", re.DOTALL
)
WHOSE = {
    "NODE": "node",
    "PROCESSES": "job",
    "REAPED": "job",
    "SAMPLER": "sampler",
}
# Rows of the table `network` that are lists.
OF_DEVICES = {"qdiscs": "[].qdisc", "names": "[].device"}
# Fields of sacct that schema.sql explains.
EXPLAINED = ("Start", "ConsumedEnergyRaw", "Restarts", "SLUID", "OriginalSLUID")
# A: AdminComment, D: the database, R: a metric of every run.
COPIES = {"RECORD": "", "DATABASE": "D", "COMMENT": "A", "BOTH": "AD", "METRIC": "ADR"}


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = (headings, ["---"] * len(headings), *rows)
    return "".join(f"{cells(list(line))}\n" for line in lines)


def columns() -> str:
    """Return the columns of every file of samples, in its order."""
    paths = {total.column: total.path for total in TOTALS.values() if not total.is_largest}
    return table(
        ("column", "unit", "kind", "meaning"),
        (
            (c.name, c.unit, c.kind.lower(), as_total(paths.get(c.name)) + c.meaning)
            for c in COLUMNS
        ),
    )


def as_total(path: str | None) -> str:
    """Return the name of the record's field that has a column's last value."""
    return f"`{path}`: " if path else ""


def totals() -> str:
    """Return the totals of a record, in the order of the database."""
    headings = ("field", "copies", "nodes", "whose", "meaning")
    return table(headings, map(total_row, TOTALS.values()))


def total_row(total: Total) -> tuple[str, ...]:
    """Return a row for the headings of totals()."""
    return (
        total.path if total.path.endswith(f".{total.name}") else f"{total.path} (`{total.name}`)",
        COPIES[total.reported_in],
        "largest" if total.over_nodes == "LARGEST" else "sum",
        WHOSE[total.whose],
        total.meaning,
    )


def fields(name: str) -> str:
    """Return the fields of a JSON document that facts/fields declares."""
    rows = json_fields.read(name).rows
    return table(
        ("field", "type", "meaning"),
        ((", ".join(f"`{path}`" for path in row.paths), row.type, row.meaning) for row in rows),
    )


def tables_of_study() -> str:
    """Return every table of a study's database: its rows, and its columns with their types."""
    copied = {
        "records": {name: f"`{path}`" for name, (path, _) in records.COLUMNS.items()},
        "network": {
            name: f"`{path}{OF_DEVICES.get(kind, '')}`"
            for name, (path, kind) in network.COLUMNS.items()
        },
        "accounting": {name: "as in sacct(1)" for name in sacct.FIELDS if name not in EXPLAINED},
    }
    return database_tables(schema.build_schema(), copied)


def tables_of_cluster() -> str:
    """Return the tables of a cluster's database."""
    copied = {"records": {name: f"`{path}`" for name, (path, _) in records.COLUMNS.items()}}
    return database_tables(cluster_database.build_schema(), copied)


def database_tables(statements: str, copied: Mapping[str, Mapping[str, str]]) -> str:
    """Return the tables that the statements create.

    `copied` has, by table, columns that are described elsewhere.
    """
    with duckdb.connect() as base:
        base.execute(statements)
        tables = base.execute(
            "SELECT table_name, comment FROM duckdb_tables() ORDER BY table_oid"
        ).fetchall()
        columns = base.execute(
            "SELECT table_name, column_name, data_type, comment FROM duckdb_columns()"
            " WHERE NOT internal ORDER BY table_oid, column_index"
        ).fetchall()
    known: dict[str, str] = {}
    texts = []
    for name, comment in tables:
        rows = [row[1:] for row in columns if row[0] == name]
        texts.append(f"**{name}**: {comment}\n\n")
        texts.append(
            table(("column", "type", "meaning"), column_rows(rows, copied.get(name, {}), known))
        )
        known |= {column: name for column, _, text in rows if text and column not in known}
        texts.append("\n")
    return "".join(texts)


def column_rows(
    rows: Iterable[tuple[str, str, str | None]],
    copied: Mapping[str, str],
    known: Mapping[str, str],
) -> Iterator[tuple[str, str, str]]:
    """Yield rows of columns; a column without a comment has the meaning of its source.

    Otherwise it has that of the same column in the earlier table `known`; raises KeyError if it is
    in neither.
    """
    for (kind, text), group in groupby(
        rows, lambda row: (row[1], copied.get(row[0]) or row[2] or f"as in `{known[row[0]]}`")
    ):
        yield ", ".join(f"`{row[0]}`" for row in group), kind, text


def packs() -> str:
    """Return the columns of records in a pack; those of the table `records` are one row."""
    copied = dict.fromkeys(records.COLUMNS, "as in the table `records`") | record_packs.MEANINGS
    rows = [(name, kind, None) for name, kind in packing.COLUMNS.items()]
    return table(("column", "type", "meaning"), column_rows(rows, copied, {}))


def netem_keys() -> str:
    """Return every form of every key of a specification, in the order of the canonical text."""
    rows = ((f"`{v.example}`", v.does, v.values, f"`{v.json}`") for v in VALUES)
    return table(("part", "what it does", "values", "in the record"), rows)


TABLES = {"netem_keys": netem_keys}
# Replacements of `<!--table:NAME-->` on the site.
BUILT: dict[str, Callable[[], str]] = {
    "columns": columns,
    "totals": totals,
    "packs": packs,
    "tables": tables_of_study,
    "cluster_tables": tables_of_cluster,
    **{name: functools.partial(fields, name) for name in json_fields.names()},
}


def filled(text: str) -> str:
    """Return a page with the tables that only the site has."""
    return BUILT_MARK.sub(lambda found: BUILT[found[1]](), text)


def renewed(text: str) -> str:
    """Return a page with its marked tables updated."""
    return MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}{found[3]}", text)


def main(arguments: Sequence[str]) -> None:
    """Update the pages; with --check, exit with 1 and a line if pages differ."""
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(PAGES.glob("**/*.md"))}
    stale = [page for page, text in texts.items() if renewed(text) != text]
    if stale and "--check" in arguments:
        names = ", ".join(page.name for page in stale)
        sys.exit(f"{names}: tables differ from what the programs read: say make docs")
    for page in stale:
        page.write_text(renewed(texts[page]), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
