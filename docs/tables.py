"""Writes the marked tables of docs/ anew from what the programs read; --check: says which differ.

A part of a page from `<!-- from facts/FILE.def, NAME: make docs -->` to `<!-- end of NAME -->` is not
written by hand.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from steelyard.facts.netem_keys import VALUES
from steelyard.facts.quantities import COLUMNS, TOTALS, Total
from steelyard.jobscripts.docs import cells

PAGES = Path(__file__).parent
MARKED = re.compile(
    r"(<!-- from facts/\w+\.def, (\w+): make docs -->\n).*?(<!-- end of \2 -->)", re.DOTALL
)
WHOSE = {
    "NODE": "the node",
    "PROCESSES": "the job",
    "REAPED": "the job",
    "SAMPLER": "the sampler",
}
TOLD_IN = {
    "RECORD": "",
    "DATABASE": "database",
    "COMMENT": "AdminComment",
    "BOTH": "AdminComment, database",
    "METRIC": "AdminComment, database, every run",
}


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
    """Where a column's last value stands in the record."""
    return f"`{path}`: " if path else ""


def totals() -> str:
    """The totals of a record, in the order of the database."""
    headings = ("field", "type", "elsewhere", "told in", "of several nodes", "whose", "meaning")
    return table(headings, map(total_row, TOTALS.values()))


def total_row(total: Total) -> tuple[str, ...]:
    """As `headings` of totals()."""
    return (
        total.path,
        "float or null" if total.is_real else "int or null",
        f"`{total.name}`",
        TOLD_IN[total.told_in],
        "the largest" if total.over_nodes == "LARGEST" else "the sum",
        WHOSE[total.whose],
        total.meaning,
    )


def netem_keys() -> str:
    """Every form of every key of a specification, in the order of the canonical text."""
    rows = ((f"`{v.example}`", v.does, v.values, f"`{v.json}`") for v in VALUES)
    return table(("part", "what it does", "values", "in the record"), rows)


TABLES = {"columns": columns, "totals": totals, "netem_keys": netem_keys}


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
