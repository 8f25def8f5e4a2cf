"""The sessions of a study that is run again and again: docs/formats.md part 6.

Each session is a study's folder of its own, NAME.study in STUDY.sessions/. The index sessions.jsonl
there has a line for each: its name, its number and when it began. A number is never given twice, not
even after a session's folder was deleted by hand. A folder that was renamed by hand is not in the
index: its plan has the number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources.study_files import PLAN_FILE, read_fields, read_plan
from steelyard.analysis.store.spool import parse_json
from steelyard.jobscripts.userfiles import PLAN_BYTES, read_regular

SUFFIX, SESSION_SUFFIX = ".sessions", ".study"
INDEX_FILE = "sessions.jsonl"
FIELDS = {"name": (str,), "number": (int,), "began_unix_s": (int, float)}


@dataclass(frozen=True)
class Session:
    """One session of a study.

    Sorted by `number` (1, 2, 3 … in the order of submission), not by time: clocks step back.
    """

    name: str  # of its folder, without .study
    number: int
    began_unix_s: float  # when it was first submitted
    folder: Path


def list_sessions(folder: Path) -> list[Session]:
    """The submitted sessions in a folder STUDY.sessions, by number; none where there is no folder.

    Reads the index, and a plan only where the index lacks its session; UsageError for a session
    of which neither tells the number.
    """
    known = read_index(folder)
    found = []
    for name in list_submitted_names(folder):
        session = folder / f"{name}{SESSION_SUFFIX}"
        number, began_unix_s = known.get(name) or read_from_plan(session)
        found.append(Session(name, number, began_unix_s, session))
    return sorted(found, key=lambda session: (session.number, session.began_unix_s))


def find_session(folder: Path) -> Session | None:
    """The session whose folder this is; None: it is no session's, or nothing of it was submitted."""
    path = folder.absolute()
    if not is_session(path) or not (path / PLAN_FILE).is_file():
        return None
    name = path.name.removesuffix(SESSION_SUFFIX)
    number, began_unix_s = read_index(path.parent).get(name) or read_from_plan(path)
    return Session(name, number, began_unix_s, path)


def is_session(folder: Path) -> bool:
    """Whether a study's folder is in one of sessions, by its path alone."""
    return folder.name.endswith(SESSION_SUFFIX) and folder.absolute().parent.name.endswith(SUFFIX)


def format_label(folder: Path) -> str:
    """How a study's folder is named on the command line: NAME, or NAME@SESSION."""
    name = folder.name.removesuffix(SESSION_SUFFIX)
    if not is_session(folder):
        return name
    return f"{folder.absolute().parent.name.removesuffix(SUFFIX)}@{name}"


def list_submitted_names(folder: Path) -> list[str]:
    """The names of the session folders that have a plan: others were interrupted before it."""
    return [
        plan.parent.name.removesuffix(SESSION_SUFFIX)
        for plan in folder.glob(f"*{SESSION_SUFFIX}/{PLAN_FILE}")
    ]


def read_index(folder: Path) -> dict[str, tuple[int, float]]:
    """By name: number and begin. A line cut short is left out; of a name's lines the last counts:
    the session was deleted, and submitted again."""
    try:
        lines = read_regular(folder / INDEX_FILE, PLAN_BYTES).split(b"\n")
    except FileNotFoundError:
        return {}
    found: dict[str, tuple[int, float]] = {}
    for line in lines:
        try:
            entry = read_fields(parse_json(line), FIELDS)
        except (ValueError, RecursionError, KeyError, TypeError):
            continue
        found[entry["name"]] = entry["number"], float(entry["began_unix_s"])
    return found


def read_from_plan(session: Path) -> tuple[int, float]:
    """Number and begin of a session that the index lacks."""
    said: Any = read_plan(session).study.get("session")
    try:
        entry = read_fields(said if isinstance(said, Mapping) else {}, FIELDS)
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{session / PLAN_FILE} lacks {error} of its session: expected a session that `steelyard "
            f"submit --session` made; move the folder out of {session.parent}",
            str(session),
        ) from None
    return entry["number"], float(entry["began_unix_s"])
