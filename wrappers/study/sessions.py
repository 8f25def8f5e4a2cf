"""Sessions of a repeated study: starts a session, and compares it with the last one.

A session has its own study folder, NAME.sessions/SESSION.study. Its runs share no block with those
of another session, and levels may change between sessions. analysis/sources/study_sessions.py reads
the index that this module writes."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from steelyard.analysis.base import locks
from steelyard.analysis.sources import study_files, study_sessions
from steelyard.analysis.sources.study_sessions import Session
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.base.options import TODAY
from steelyard.wrappers.study.folder import SUFFIX
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.study.study import NAME, NAME_WORDS

MOST_NAMED = 3  # most conditions named as new or gone
JUDGED_BY = 3  # earlier sessions that predict times and spreads


def session_name(text: str | None) -> str | None:
    """Return the checked name of `--session NAME`; TODAY means the date. None without the
    option."""
    if text is None:
        return None
    name = time.strftime("%Y-%m-%d") if text == TODAY else text
    if not re.fullmatch(NAME, name):
        raise UsageError(f"--session '{name}' is no name: expected {NAME_WORDS}", part=name)
    return name


def begin_session(folder: Path) -> tuple[Session, str | None]:
    """Return the session of this folder, and a warning if the clock contradicts the earlier
    sessions. A folder of no session gets the next number.

    The number is in the index, on disk, before the session has a plan: a crash in between loses a
    number, but no session."""
    known = study_sessions.find_session(folder)
    if known is not None:
        return known, None
    name, now = folder.name.removesuffix(SUFFIX), time.time()
    fd = os.open(
        folder.parent / study_sessions.INDEX_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644
    )
    try:
        locks.lock_file(fd, wait=True)
        sessions = study_sessions.list_sessions(folder.parent)
        given = [number for number, _ in study_sessions.read_index(folder.parent).values()]
        number = 1 + max([*given, *(one.number for one in sessions)], default=0)
        entry = {"name": name, "number": number, "began_unix_s": now}
        size = os.fstat(fd).st_size
        cut = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
        os.write(fd, (b"\n" if cut else b"") + json.dumps(entry).encode() + b"\n")
        os.fsync(fd)
    finally:
        os.close(fd)
    doubt = None
    if sessions and sessions[-1].began_unix_s > now:
        doubt = (
            f"by this machine's clock session {number} begins before session "
            f"{sessions[-1].number}, {study_sessions.format_label(sessions[-1].folder)}: check the clock; "
            "sessions are ordered by number"
        )
    return Session(name, number, now, folder), doubt


def describe_changes(folder: Path, study: str, runs: Sequence[Run]) -> str | None:
    """Return one line on how a new session differs from the last one; None if they are equal.
    Raises UsageError if the last session ran other benchmarks."""
    sessions = study_sessions.list_sessions(folder.parent)
    if not sessions:
        return None
    last = sessions[-1]
    before = study_files.read_plan_as(last.folder, Run)[1]
    benchmarks = [sorted({run.benchmark for run in some}) for some in (before, runs)]
    label = study_sessions.format_label(last.folder)
    if set(benchmarks[0]).isdisjoint(benchmarks[1]):
        raise UsageError(
            f"{folder.parent} has sessions of another study: the last one, {label}, ran "
            f"{', '.join(benchmarks[0])}, and this study file runs {', '.join(benchmarks[1])}; give it "
            f"another name than {study}"
        )
    then, now = (
        {(run.variant, run.condition_label): None for run in some} for some in (before, runs)
    )
    changes = [
        f"{word}: {format_conditions([one for one in some if one not in other])}"
        for word, some, other in (("new", now, then), ("gone", then, now))
        if not some.keys() <= other.keys()
    ]
    return f"changed since {label}: {'; '.join(changes)}" if changes else None


def list_history_folders(folder: Path) -> list[Path]:
    """Return the study's own folder; for a session also the folders of up to JUDGED_BY other
    sessions."""
    if not study_sessions.is_session(folder):
        return [folder]
    others = [one.folder for one in study_sessions.list_sessions(folder.parent)]
    return [folder, *[one for one in others if one.name != folder.name][-JUDGED_BY:]]


def format_conditions(found: Sequence[tuple[str, str]]) -> str:
    """Return text such as `app (threads=4), …`, limited to the first few."""
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(f"{variant} ({label})" for variant, label in found[:MOST_NAMED]) + more
