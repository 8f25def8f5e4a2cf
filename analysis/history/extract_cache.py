"""Caches the extracts of all sessions in one file: a database is read once after each collect.

The file is `history.json` in STUDY.sessions/ (docs/formats.md part 6). It may be removed at any
time. Equal states, as most nodes have on most days, are stored once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from steelyard.analysis.base import file_changes
from steelyard.analysis.base.errors import SteelyardError
from steelyard.analysis.base.parallel_work import SharedWork
from steelyard.analysis.history.machine_tags import State
from steelyard.analysis.history.session_extracts import Extract, FigureValues, read_extract
from steelyard.analysis.sources.study_sessions import Session
from steelyard.analysis.store.database import FILE_NAME

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
