"""docs/formats.md part 8 and analysis/store/schema.sql say the same."""

from __future__ import annotations

import re
from pathlib import Path

import duckdb
import pytest

from steelyard.analysis.sources import sacct
from steelyard.analysis.store import export, sample_store, schema
from steelyard.facts.quantities import COLUMNS, TOTALS

PAGE = Path(__file__).parents[3] / "docs" / "formats.md"


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(schema.schema_text())
    sample_store.make_view(connection, [])
    return connection


def page_columns() -> dict[str, list[str]]:
    """Table: columns, from the page's table, without their types."""
    part = PAGE.read_text(encoding="utf-8").split("## 8 The database")[1].split("## 9 ")[0]
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| ([^|]+) \|$", part, re.MULTILINE)
    tables = {
        name: [one for column in text.split(", ") for one in names(column)] for name, text in rows
    }
    del tables["table"]
    return tables


def names(column: str) -> list[str]:
    """The columns that a cell of the page stands for: the totals have a table in part 1."""
    stored = [total.name for total in TOTALS.values() if total.in_database]
    together = {"*the totals*": stored, "*sacct's fields*": list(sacct.FIELDS)}
    return together.get(column, [column.split()[0]])


def database_columns(connection: duckdb.DuckDBPyConnection, table: str) -> list[str]:
    rows = connection.execute(f'SELECT name FROM pragma_table_info("{table}")').fetchall()
    return [row[0] for row in rows]


def test_the_page_names_every_table_and_no_other(connection: duckdb.DuckDBPyConnection) -> None:
    tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert sorted(page_columns()) == sorted(row[0] for row in tables)


@pytest.mark.parametrize("table", list(page_columns()))
def test_the_page_names_every_column(connection: duckdb.DuckDBPyConnection, table: str) -> None:
    assert page_columns()[table] == database_columns(connection, table)


def test_samples_have_the_fixed_columns_of_the_files(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    expected = ["run_id", "attempt", "node", *(column.name for column in COLUMNS)]
    assert database_columns(connection, "samples") == expected


def test_accounting_has_the_fields_asked_of_sacct(connection: duckdb.DuckDBPyConnection) -> None:
    expected = ["submission_id", "run_id", "attempt", "step", "extra", *sacct.FIELDS]
    assert database_columns(connection, "accounting") == expected


def test_the_page_describes_the_view(connection: duckdb.DuckDBPyConnection) -> None:
    names = ", ".join(database_columns(connection, "measurements"))
    assert f"`measurements` ({names}" in PAGE.read_text(encoding="utf-8")


def test_every_table_is_exported_as_parquet(connection: duckdb.DuckDBPyConnection) -> None:
    """`notes` was not."""
    tables = connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert sorted(export.TABLES) == sorted(row[0] for row in tables)


def test_every_table_and_view_has_a_comment(connection: duckdb.DuckDBPyConnection) -> None:
    bare = connection.execute(
        "SELECT table_name FROM duckdb_tables() WHERE comment IS NULL UNION ALL "
        "SELECT view_name FROM duckdb_views() WHERE comment IS NULL AND NOT internal AND NOT temporary"
    ).fetchall()
    assert bare == []
