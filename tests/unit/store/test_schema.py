"""The tables of docs/formats.md have what schema.sql makes, each column with its meaning."""

from __future__ import annotations

import functools
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

from steelyard.analysis.cluster import database as cluster_database
from steelyard.analysis.sources import sacct
from steelyard.analysis.store import export, sample_store, schema
from steelyard.facts import json_fields
from steelyard.facts.quantities import COLUMNS

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "formats.md"
ROW = re.compile(r"^\| (`[^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)


@functools.cache
def page_tables() -> ModuleType:
    """docs/tables.py, which belongs to no package."""
    spec = importlib.util.spec_from_file_location("tables", ROOT / "docs" / "tables.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def connection() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute(schema.build_schema())
    sample_store.make_view(connection, [])
    return connection


def page_columns(name: str = "tables") -> dict[str, list[str]]:
    """Table: columns, as the site has them."""
    texts = page_tables().BUILT[name]().split("\n**")
    found = {}
    for text in texts:
        rows = ROW.findall(text)
        assert all(meaning.strip() for _, _, meaning in rows)
        columns = [column for cells, _, _ in rows for column in re.findall("`([^`]+)`", cells)]
        found[text.strip("*").partition("**")[0]] = columns
    return found


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


def test_the_page_has_every_column_of_a_clusters_database() -> None:
    with duckdb.connect() as base:
        base.execute(cluster_database.build_schema())
        tables = base.execute("SELECT table_name FROM duckdb_tables()").fetchall()
        expected = {name: database_columns(base, name) for (name,) in tables}
    assert page_columns("cluster_tables") == expected


def test_the_page_has_a_place_for_each_table_and_no_other() -> None:
    text = PAGE.read_text(encoding="utf-8")
    places = re.findall(r"^<!--table:(\w+)-->$", text, re.MULTILINE)
    assert sorted(places) == sorted(page_tables().BUILT)
    assert "<!--table" not in page_tables().filled(text)


def test_the_page_has_every_declared_field() -> None:
    text = page_tables().filled(PAGE.read_text(encoding="utf-8"))
    for name in json_fields.names():
        for row in json_fields.read(name).rows:
            cells = ", ".join(f"`{path}`" for path in row.paths)
            assert f"| {cells} | {row.type} |" in text, (name, row.paths)
