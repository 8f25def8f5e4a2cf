"""The sessions of a study that is repeated (docs/formats.md part 6).

Each session is a study's folder NAME.study in STUDY.sessions/. The index sessions.jsonl there has a
line for each: name, number and start. A number is never reused, even after a session's folder was
deleted by hand. A folder that was renamed by hand is not in the index: its plan has the number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources.study_files import PLAN_FILE, read_fields, read_plan
from steelyard.analysis.store.row_files import parse_json
from steelyard.jobscripts.regular_files import PLAN_BYTES, read_regular

SUFFIX, SESSION_SUFFIX = ".sessions", ".study"
INDEX_FILE = "sessions.jsonl"
FIELDS = {"name": (str,), "number": (int,), "began_unix_s": (int, float)}


@dataclass(frozen=True)
class Session:
    """One session of a study.

    Sessions are sorted by `number` (1, 2, 3 … in the order of submission), not by time, since
    clocks can be set back.
    """

    name: str  # name of its folder, without .study
    number: int
    began_unix_s: float  # time of its first submission
    folder: Path


def list_sessions(folder: Path) -> list[Session]:
    """Return the submitted sessions in a folder STUDY.sessions, by number; [] without the folder.

    Reads the index, and a plan only if the index lacks its session. Raises UsageError for a session
    whose number is in neither.
    """
    known = read_index(folder)
    found = []
    for name in list_submitted_names(folder):
        session = folder / f"{name}{SESSION_SUFFIX}"
        number, began_unix_s = known.get(name) or read_from_plan(session)
        found.append(Session(name, number, began_unix_s, session))
    return sorted(found, key=lambda session: (session.number, session.began_unix_s))


def find_session(folder: Path) -> Session | None:
    """Return the session of this folder; None: it is no session's, or nothing was submitted."""
    path = folder.absolute()
    if not is_session(path) or not (path / PLAN_FILE).is_file():
        return None
    name = path.name.removesuffix(SESSION_SUFFIX)
    number, began_unix_s = read_index(path.parent).get(name) or read_from_plan(path)
    return Session(name, number, began_unix_s, path)


def is_session(folder: Path) -> bool:
    """Whether a study's folder is that of a session, by its path alone."""
    return folder.name.endswith(SESSION_SUFFIX) and folder.absolute().parent.name.endswith(SUFFIX)


def format_label(folder: Path) -> str:
    """Return a study's name on the command line: NAME, or NAME@SESSION."""
    name = folder.name.removesuffix(SESSION_SUFFIX)
    if not is_session(folder):
        return name
    return f"{folder.absolute().parent.name.removesuffix(SUFFIX)}@{name}"


def list_submitted_names(folder: Path) -> list[str]:
    """Return the names of session folders with a plan; others were interrupted before it."""
    return [
        plan.parent.name.removesuffix(SESSION_SUFFIX)
        for plan in folder.glob(f"*{SESSION_SUFFIX}/{PLAN_FILE}")
    ]


def read_index(folder: Path) -> dict[str, tuple[int, float]]:
    """Return number and start by name.

    A truncated line is ignored. The last line of a name counts, since the session was deleted and
    submitted again.
    """
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
    """Return number and start from the plan of a session that the index lacks."""
    section: Any = read_plan(session).study.get("session")
    try:
        entry = read_fields(section if isinstance(section, Mapping) else {}, FIELDS)
    except (KeyError, TypeError) as error:
        raise UsageError(
            f"{session / PLAN_FILE} lacks {error} of its session: expected a session that `steelyard "
            f"submit --session` made; move the folder out of {session.parent}",
            str(session),
        ) from None
    return entry["number"], float(entry["began_unix_s"])
