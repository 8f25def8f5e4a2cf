"""Extracts what a history needs of a session: the main figures' values and the nodes' states.

An extract is plain data: `extract_cache.py` keeps those of all sessions as JSON.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis.base.benchmark_traits import is_program_tag
from steelyard.analysis.history.machine_tags import (
    State,
    flatten,
    is_machine_tag,
    read_machine_tags,
)
from steelyard.analysis.summary import study_data, tags_and_programs
from steelyard.analysis.summary.database_connection import open_database
from steelyard.analysis.summary.study_data import Meta
from steelyard.analysis.summary.study_run import Run
from steelyard.analysis.summary.summary import count_runs

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


# How a record's totals were counted, which may differ between runs and affects no main figure.
OF_TOTALS = ("energy.covers", "cpu.source", "memory.source", "io.source")
NO_MATTER = ("time_limit", "at_once", "tags")  # keys of [job] without effect on measurements
SHOWN_DIGITS = 12  # of a SHA-256 in a state: enough to distinguish two files


@dataclass(frozen=True, slots=True)
class FigureValues:
    """A main figure of one variant and condition in one session."""

    variant: str
    label: str  # of the condition, as in the plan
    condition: dict[str, Any]
    levels: dict[str, str]  # by factor, as displayed
    metric: str
    unit: str | None
    better: str | None
    values: list[float]  # one per valid, completed run, in the order of their starts
    nodes: list[list[str]]  # of each value


@dataclass(frozen=True, slots=True)
class Extract:
    """The data of one session that a history needs."""

    study: str
    figures: list[FigureValues]
    states: dict[str, State]  # by node: its last record of the session
    programs: dict[str, State]  # by variant: what was measured
    completed: int
    failed: int
    invalid: int
    waiting: int


def read_extract(folder: Path) -> Extract:
    """Read the database of a session; raises SteelyardError if it is missing or damaged."""
    with open_database(folder) as connection:
        meta = study_data.read_meta(connection)
        runs = study_data.read_runs(connection)
        counts = count_runs(runs)
        return Extract(
            study=meta.study.partition("@")[0],  # NAME@SESSION
            figures=read_figures(connection, meta, runs),
            states=read_states(connection),
            programs=read_programs(connection, meta),
            completed=counts.completed,
            failed=counts.failed,
            invalid=counts.invalid,
            waiting=counts.waiting,
        )


def read_figures(
    connection: DuckDBPyConnection, meta: Meta, runs: Iterable[Run]
) -> list[FigureValues]:
    """Return the main figures; a figure without values in this session is included."""
    metrics, values, _ = study_data.read_values(connection, only_main=True)
    groups: dict[tuple[str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.variant, run.label), []).append(run)
    return [
        build_figure_values(meta, members, metric, values.get((variant, label, metric.name), {}))
        for (variant, label), members in groups.items()
        for metric in metrics.get(variant, [])
    ]


def build_figure_values(
    meta: Meta, runs: list[Run], metric: study_data.Metric, found: Mapping[str, float | None]
) -> FigureValues:
    """Return the values of one figure in the given runs, which share a variant and condition."""
    pairs = [(run, found.get(run.run_id)) for run in runs if run.counts]
    known = [(run, value) for run, value in pairs if value is not None]
    first = runs[0]
    return FigureValues(
        variant=first.variant,
        label=first.label,
        condition=first.condition,
        levels={name: meta.level_text(name, level) for name, level in first.condition.items()},
        metric=metric.name,
        unit=metric.unit,
        better=metric.better,
        values=[value for _, value in known],
        nodes=[list(run.nodes) for run, _ in known],
    )


def read_states(connection: DuckDBPyConnection) -> dict[str, State]:
    """Return the states of nodes: tags of the last record, other machine tags, libraries."""
    rows = connection.execute(
        """
        SELECT n.node, arg_max(n.record, coalesce(n.start_unix_s, 0))
        FROM records AS n JOIN runs AS r ON r.run_id = n.run_id AND r.attempt = n.attempt
        GROUP BY n.node ORDER BY n.node
        """
    ).fetchall()
    states = {
        node: {
            key: value
            for key, value in read_machine_tags(json.loads(record)).items()
            if key not in OF_TOTALS
        }
        for node, record in rows
    }
    add_tags(connection, states)
    add_libraries(connection, states)
    return states


def add_tags(connection: DuckDBPyConnection, states: dict[str, State]) -> None:
    """Add the users' and scripts' tags of machines; several values of a node are joined."""
    for node, key, values in read_tags(connection, "t.node"):
        if is_machine_tag(key):
            states.setdefault(node, {})[key] = values


def read_tags(connection: DuckDBPyConnection, owner: str) -> Iterator[tuple[str, str, str]]:
    """Yield owner, key and values of the tags of the counted attempts."""
    rows = connection.execute(
        f"""
        SELECT {owner}, t.key, list(DISTINCT t.value)
        FROM tags AS t JOIN runs AS r ON r.run_id = t.run_id AND r.attempt = t.attempt
        GROUP BY {owner}, t.key
        """
    ).fetchall()
    for name, key, values in rows:
        yield name, key, join_values(values)


def add_libraries(connection: DuckDBPyConnection, states: dict[str, State]) -> None:
    """Add the libraries that the runs' programs were linked with, by path."""
    for node, path, checksums in read_files(connection, "e.node", "library"):
        states.setdefault(node, {})[f"library {path}"] = checksums


def join_values(values: Iterable[str]) -> str:
    """Join several values of one key, in sorted order."""
    return ", ".join(sorted(values))


def read_files(
    connection: DuckDBPyConnection, owner: str, kind: str
) -> Iterator[tuple[str, str, str]]:
    """Yield owner, path and the first digits of the checksums of programs or libraries."""
    rows = connection.execute(
        f"""
        SELECT {owner}, e.path, list(DISTINCT e.sha256[:{SHOWN_DIGITS}])
        FROM environment AS e JOIN runs AS r ON r.run_id = e.run_id AND r.attempt = e.attempt
        WHERE e.kind = ? GROUP BY {owner}, e.path
        """,
        [kind],
    ).fetchall()
    for name, path, checksums in rows:
        yield name, path, join_values(checksums)


def read_programs(connection: DuckDBPyConnection, meta: Meta) -> dict[str, State]:
    """Return by variant the programs' checksums and tags, parameters, and the study's [job]."""
    job = {f"[job] {key}": value for key, value in flatten(read_job_table(meta.toml or ""))}
    found = {
        variant: job | dict(flatten(parameters))
        for variant, parameters in tags_and_programs.read_parameters(connection).items()
    }
    for variant, key, values in read_tags(connection, "r.variant"):
        if is_program_tag(key):
            found[variant][key] = values
    for variant, path, checksums in read_files(connection, "r.variant", "program"):
        found[variant][f"program {path}"] = checksums
    return found


def read_job_table(toml: str) -> dict[str, Any]:
    """Return the keys of [job] in a study file that affect measurements; empty without [job]."""
    try:
        job = tomllib.loads(toml).get("job", {})
    except tomllib.TOMLDecodeError:
        return {}
    return {k: v for k, v in job.items() if k not in NO_MATTER} if isinstance(job, dict) else {}
