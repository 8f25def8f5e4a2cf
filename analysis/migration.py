"""Databases of an older schema, brought up to date by the next collect: the accounting may be all
that is left of jobs, so they are not made anew."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis import parts


def from_2(connection: DuckDBPyConnection, study_dir: Path) -> None:
    """Version 3 has samples in Parquet files instead of a table, and records.rtt_floor_s."""
    connection.execute("ALTER TABLE samples RENAME TO sampled")
    create_table(connection, "sample_parts")
    parts.store(connection, study_dir, "FROM sampled")
    connection.execute("DROP VIEW samples")
    connection.execute("DROP TABLE sampled")
    # Made anew by each collect; a column that is added would stand behind all others.
    connection.execute("DROP TABLE records")
    create_table(connection, "records")


def create_table(connection: DuckDBPyConnection, table: str) -> None:
    """An empty one, with its comments, as schema.sql has it."""
    text = importlib.resources.files(__package__).joinpath("schema.sql").read_text("utf-8")
    for statement in connection.extract_statements(text):
        if re.search(rf"\A\W*(CREATE TABLE|COMMENT ON (TABLE|COLUMN)) {table}\b", statement.query):
            connection.execute(statement)


STEPS: Mapping[int, Callable[[DuckDBPyConnection, Path], None]] = {2: from_2}


def migrate(connection: DuckDBPyConnection, study_dir: Path, version: int) -> None:
    """From `version`, of STEPS, to the present one; the tables made anew by collect stay as they are."""
    for number in range(version, max(STEPS) + 1):
        STEPS[number](connection, study_dir)
