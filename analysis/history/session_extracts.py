"""Extracts what a history needs of each session, and caches the extracts of all sessions in one file.

An extract has the main figures' values and the nodes' states. It is plain data: it is cached as
JSON, so that a database is read once after each collect. The file is `history.json` in
STUDY.sessions/ (docs/formats.md part 6). It may be removed at any time. Equal states, as most nodes
have on most days, are stored once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steelyard.analysis.base import file_changes
from steelyard.analysis.base.benchmark_traits import is_program_tag
from steelyard.analysis.base.errors import SteelyardError
from steelyard.analysis.base.parallel_work import SharedWork
from steelyard.analysis.history.machine_tags import (
    State,
    flatten,
    is_machine_tag,
    read_machine_tags,
)
from steelyard.analysis.sources.study_sessions import Session
from steelyard.analysis.store.database import FILE_NAME
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


CACHE_FILE = "history.json"
FORMAT, VERSION = "steelyard-history-cache", 1

Entries = dict[str, dict[str, Any]]  # by session: the identity of its database, and its extract


@dataclass(frozen=True)
class ReadSession:
    """A session and its extract; the extract is None, with the reason, if it cannot be read."""

    session: Session
    extract: Extract | None
    reason: str | None = None


def read_sessions(folder: Path, sessions: Sequence[Session]) -> list[ReadSession]:
    """Read the sessions in order; one that cannot be read has a reason, and the others are used."""
    cached = read_cache(folder / CACHE_FILE)
    identities = [identify(session) for session in sessions]
    stale = [
        index
        for index, session in enumerate(sessions)
        if cached.get(session.name, {}).get("identity") != identities[index]
        or identities[index] is None
    ]
    with SharedWork([partial(read_session, sessions[index]) for index in stale]) as work:
        fresh = dict(zip(stale, work.results(), strict=True))
    found = []
    for index, session in enumerate(sessions):
        one = fresh.get(index)
        if one is None or (
            one.extract is None and is_valid_for(cached, session, identities[index])
        ):
            one = ReadSession(session, parse_extract(cached[session.name]["extract"]))
        found.append(one)
    if fresh or len(cached) != len(sessions):
        write_cache(folder / CACHE_FILE, found, identities)
    return found


def is_valid_for(cached: Entries, session: Session, identity: list[int | str] | None) -> bool:
    """Return whether the cached extract was made from this database.

    It is then used if this version of Steelyard cannot read the database, which an earlier version
    read.
    """
    known = cached.get(session.name, {}).get("identity")
    return identity is not None and known is not None and known[:-1] == identity[:-1]


def identify(session: Session) -> list[int | str] | None:
    """Return the identity of a database, and last that of this program; None without a database."""
    try:
        file = file_changes.read_identity(str(session.folder / FILE_NAME))
    except OSError:
        return None
    return [*file, file_changes.digest_program()]


def read_session(session: Session) -> ReadSession:
    """Read a session from its database."""
    try:
        return ReadSession(session, read_extract(session.folder))
    except SteelyardError as error:
        return ReadSession(session, None, str(error))


def read_cache(path: Path) -> Entries:
    """Return the cached sessions; empty if the file is missing or of another version."""
    try:
        document = json.loads(path.read_bytes())
        if (document["format"], document["version"]) != (FORMAT, VERSION):
            return {}
        states: list[State] = document["states"]
        for entry in document["sessions"].values():
            numbers = entry["extract"]["states"]
            entry["extract"]["states"] = {node: states[number] for node, number in numbers.items()}
        return dict(document["sessions"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return {}


def parse_extract(document: dict[str, Any]) -> Extract:
    """Make an extract from the cached document; both share data."""
    figures = [FigureValues(**figure) for figure in document["figures"]]
    return Extract(**{**document, "figures": figures})


def list_fields(one: Extract | FigureValues) -> dict[str, Any]:
    """Return the fields by name, uncopied: dataclasses.asdict() would copy a million values."""
    return {field.name: getattr(one, field.name) for field in dataclasses.fields(one)}


def write_cache(
    path: Path, sessions: Sequence[ReadSession], identities: Sequence[list[int | str] | None]
) -> None:
    """Write the cache; nothing is written if the folder is not writable."""
    states: dict[str, int] = {}
    unique: list[State] = []
    entries: Entries = {}
    for one, identity in zip(sessions, identities, strict=True):
        if one.extract is None or identity is None:
            continue
        document = list_fields(one.extract)
        document["figures"] = [list_fields(figure) for figure in one.extract.figures]
        document["states"] = {}
        for node, state in one.extract.states.items():
            text = json.dumps(state, sort_keys=True)
            if text not in states:
                states[text] = len(unique)
                unique.append(state)
            document["states"][node] = states[text]
        entries[one.session.name] = {"identity": identity, "extract": document}
    text = json.dumps(
        {"format": FORMAT, "version": VERSION, "states": unique, "sessions": entries},
        separators=(",", ":"),
    )
    half = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError):
        try:
            half.write_text(text, encoding="utf-8")
            half.replace(path)
        finally:
            half.unlink(missing_ok=True)
