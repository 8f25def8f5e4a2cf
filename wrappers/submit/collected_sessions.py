"""Sessions that are collected completely, which `steelyard collect` of all sessions skips.

A session is complete after a collect that found all runs ended and nothing missing (or a week after
the last submission). Then .settled in its folder has the identity of its plan, submissions and
database, a digest of the figures of the study file, and one of this Steelyard. While all of these
are unchanged, the session is skipped. To collect it anyway, name it: NAME@SESSION."""

from __future__ import annotations

import contextlib
import json
import os
import time
import tomllib
from collections.abc import Collection, Iterable
from pathlib import Path

from steelyard.analysis.base import file_changes
from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_sessions import Session
from steelyard.analysis.store import database
from steelyard.jobscripts.regular_files import NOTE_BYTES, read_regular
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.submit import output_pattern_updates, run_state

FILE = ".settled"
FILES = (study_files.PLAN_FILE, study_files.SUBMISSIONS_FILE, database.FILE_NAME)
OPEN = ("planned", *run_state.RUNNING, *run_state.WAITING)
PATIENCE_S = 7 * 86400.0  # for records and accounting that come late
# Gaps that a later collect does not close: they concern the runs' own results.
LASTING = frozenset(("result", "output", "figure", "clock", "record_version"))


class SettledSessions:
    """Whether the sessions of a study are complete, for one command."""

    def __init__(self, sessions: Iterable[Session]) -> None:
        self.sessions = list(sessions)
        first = self.sessions[0].folder if self.sessions else Path()
        self._figures = figures_digest(output_pattern_updates.find_study_file(first, None))

    def list_unsettled(self) -> list[Session]:
        """Return the sessions that need a collect, by number."""
        return [one for one in self.sessions if not self.is_settled(one.folder)]

    def is_settled(self, folder: Path) -> bool:
        """Return whether nothing has changed since the session was complete."""
        try:
            return bool(json.loads(read_regular(folder / FILE, NOTE_BYTES)) == self._state(folder))
        except (OSError, ValueError):
            return False

    def record(self, folder: Path, states: Collection[str], gaps: Collection[str]) -> None:
        """Mark the session complete if the states of its runs and the kinds of gaps after a collect
        allow it."""
        if not is_over(folder, states, gaps):
            return
        with contextlib.suppress(OSError):  # not writable: it is collected again
            ledger.write_atomically(folder / FILE, json.dumps(self._state(folder)), durable=False)

    def _state(self, folder: Path) -> dict[str, object]:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            files = [file_changes.read_identity(name, fd) for name in FILES]
        finally:
            os.close(fd)
        program = file_changes.digest_program()
        return {"files": files, "figures": self._figures, "program": program}


def is_over(folder: Path, states: Collection[str], gaps: Collection[str]) -> bool:
    """Return whether no run is open, and missing data is lasting or overdue."""
    if any(state in OPEN for state in states):
        return False
    if LASTING.issuperset(gaps):
        return True
    return time.time() - (folder / study_files.SUBMISSIONS_FILE).stat().st_mtime > PATIENCE_S


def figures_digest(file: Path | None) -> str | None:
    """Return a digest of the figures in a study file, which `collect` reads from kept output; None
    without one."""
    if file is None:
        return None
    try:
        tables = tomllib.loads(file.read_text(encoding="utf-8")).get("benchmark")
    except (OSError, ValueError):
        return None
    found = [one.get("figures") for one in tables or () if isinstance(one, dict)]
    return file_changes.digest(found)


def list_waiting_sessions(sessions: Iterable[Session]) -> list[Session]:
    """Return the sessions whose files have runs that may wait or run."""
    busy = (*run_state.RUNNING, *run_state.WAITING)
    return [
        one
        for one in sessions
        if any(run.state in busy for run in run_state.read_file_states(StudyDir(one.folder)))
    ]
