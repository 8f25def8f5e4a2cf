"""Reads the tags of jobs, and the parameters, programs and libraries of their runs."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from steelyard.analysis.base.benchmark_traits import is_program_tag

if TYPE_CHECKING:
    import duckdb


@dataclass(frozen=True, slots=True)
class TagValue:
    """One value of one tag, and the nodes and runs that have it."""

    key: str
    value: str
    nodes: tuple[str, ...]
    runs: int


@dataclass(frozen=True, slots=True)
class Program:
    """One program or library by checksum, and the nodes and runs that used it."""

    kind: str
    path: str
    sha256: str
    nodes: tuple[str, ...]
    runs: int


def read_tags(connection: duckdb.DuckDBPyConnection) -> list[TagValue]:
    """Return the tags of all counted attempts, by key and value."""
    rows = connection.execute(
        """
        SELECT t.key, t.value, list_sort(list(DISTINCT t.node)), count(DISTINCT t.run_id)
        FROM tags AS t JOIN runs AS r ON r.run_id = t.run_id AND r.attempt = t.attempt
        GROUP BY t.key, t.value ORDER BY t.key, t.value
        """
    ).fetchall()
    return [TagValue(key, value, tuple(nodes), runs) for key, value, nodes, runs in rows]


def read_program_tags(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, set[str]]]:
    """Return the tag values in which benchmarks describe their programs, by run and key."""
    keys = connection.execute("SELECT DISTINCT key FROM tags").fetchall()
    rows = connection.execute(
        """
        SELECT DISTINCT t.run_id, t.key, t.value
        FROM tags AS t JOIN runs AS r ON r.run_id = t.run_id AND r.attempt = t.attempt
        WHERE list_contains(?, t.key)
        """,
        [[key for (key,) in keys if is_program_tag(key)]],
    ).fetchall()
    found: dict[str, dict[str, set[str]]] = {}
    for run_id, key, value in rows:
        found.setdefault(run_id, {}).setdefault(key, set()).add(value)
    return found


def read_parameters(connection: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Any]]:
    """Return the parameters of each variant; one that is a factor has any of its levels."""
    rows = connection.execute("SELECT variant, min(parameters) FROM runs GROUP BY variant")
    return {variant: json.loads(text) for variant, text in rows.fetchall()}


def read_programs(connection: duckdb.DuckDBPyConnection) -> list[Program]:
    """Return the programs and libraries of all counted attempts, programs first."""
    rows = connection.execute(
        """
        SELECT e.kind, e.path, e.sha256, list_sort(list(DISTINCT e.node)),
            count(DISTINCT e.run_id)
        FROM environment AS e JOIN runs AS r ON r.run_id = e.run_id AND r.attempt = e.attempt
        GROUP BY e.kind, e.path, e.sha256 ORDER BY e.kind DESC, e.path, e.sha256
        """
    ).fetchall()
    return [Program(kind, path, sha, tuple(nodes), runs) for kind, path, sha, nodes, runs in rows]
