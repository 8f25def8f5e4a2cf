"""How runs ended, as an earlier look found it: believed as long as their files are as they were.

Reading every result.json is most of what `status` takes. So a look that reads many of runs that are
over leaves what they say in a file beside the study, with the identity of all that it comes from: the
run's folder, which changes with every attempt that comes or goes, and each attempt's result.json. A
later look opens these, and reads no further where they are what they were.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from steelyard.analysis.base import file_changes
from steelyard.analysis.base.file_changes import Identity, read_identity
from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import RESULT_FILE, RESULT_STATES, RunFolder
from steelyard.jobscripts import userfiles
from steelyard.wrappers.schedulers import ledger

FILE = ".status"
FEWEST = 100  # that are new: fewer are read as fast as the file is written
STALE_S = 60.0  # whoever has written half a file for so long is gone
# Of the last attempt's result.json: what a status needs.
KEPT = ("state", "reason", "job_id", "start_unix_s", "end_unix_s", "elapsed_s")

# Of a run: its attempts' names, the last one's place among them, what that left of KEPT.
Ended = tuple[list[str], int, dict[str, Any]]
Known = tuple[Ended, list[Identity]]  # of the run's folder and the attempts' results


class StateCache:
    """The last attempts of runs, for one look at a study."""

    def __init__(self, study_dir: Path) -> None:
        self._study_dir = study_dir
        self._begun_ns = time.monotonic_ns()
        self._runs_fd = -1
        self._known: dict[str, Known] = {}
        self._new: dict[str, Ended] = {}

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):  # nothing was submitted yet
            self._runs_fd = os.open(self._study_dir / "runs", os.O_RDONLY | os.O_DIRECTORY)
            self._known = read_cache(self._study_dir)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None and len(self._new) >= FEWEST:
            with contextlib.suppress(OSError):  # read-only, full, being written: do without
                self._write()
        if self._runs_fd >= 0:
            os.close(self._runs_fd)

    def last_attempt(self, run_id: str) -> RunFolder | None:
        """As study_files.find_last_attempt() finds it; its `result` may have KEPT names only."""
        if run_id in self._known:
            (attempts, place, result), before = self._known[run_id]
            if self._identities(run_id, attempts) == before:
                where = f"{self._study_dir}/runs/{run_id}/{attempts[place]}"
                return RunFolder(run_id, attempts[place], where, result, None)
            del self._known[run_id]
        entries = study_files.list_run_entries(self._study_dir, run_id)
        folders = [study_files.read_run_folder(run_id, e.path) for e in entries if e.is_dir()]
        last = study_files.find_last_attempt(folders)
        # A link tells nothing of what it leads to.
        if last is not None and is_over(folders, last) and not any(e.is_symlink() for e in entries):
            attempts = [folder.attempt for folder in folders]
            result = {name: (last.result or {}).get(name) for name in KEPT}
            self._new[run_id] = attempts, attempts.index(last.attempt), result
        return last

    def _identities(self, run_id: str, attempts: Sequence[str]) -> list[Identity] | None:
        """Of the run's folder and of its attempts' results; None where one cannot be opened."""
        results = (f"{run_id}/{attempt}/{RESULT_FILE}" for attempt in attempts)
        try:
            return [read_identity(path, self._runs_fd) for path in (run_id, *results)]
        except OSError:
            return None

    def _write(self) -> None:
        """All that holds, in place of the file that is there, whole or not at all."""
        part = self._study_dir / f"{FILE}.part"
        fd = create_file(part)
        try:
            # By the clock of the disk, which gave the files their times.
            begun_ns = os.fstat(fd).st_mtime_ns - (time.monotonic_ns() - self._begun_ns)
            if self._restore_unchanged(begun_ns - file_changes.RACE_NS) >= FEWEST:
                ledger.write_all(fd, encode_states(self._known))
                part.rename(self._study_dir / FILE)
            else:
                part.unlink()
        except BaseException:
            part.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def _restore_unchanged(self, since_ns: int) -> int:
        """Restore the runs that have not changed since then; returns their number."""
        count = 0
        for run_id, ended in self._new.items():
            found = self._identities(run_id, ended[0])
            if found is not None and max(map(file_changes.latest_change_ns, found)) < since_ns:
                self._known[run_id] = ended, found
                count += 1
        return count


def is_over(folders: Sequence[RunFolder], last: RunFolder) -> bool:
    """Whether the last attempt came to its end, and every one left a result that can be used."""
    return last.text("state") in RESULT_STATES and all(one.result is not None for one in folders)


def create_file(part: Path) -> int:
    """The file to write into; OSError: it is not ours to write, or another look writes it now."""
    if part.parent.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(part))
    with contextlib.suppress(FileNotFoundError):
        if time.time() - part.lstat().st_mtime > STALE_S:
            part.unlink()
    return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def encode_states(known: Mapping[str, Known]) -> bytes:
    """The file: a digest of what follows, and that as JSON."""
    body = json.dumps(
        {"reader": file_changes.digest_program(), "runs": known}, separators=(",", ":")
    ).encode()
    return f"{file_changes.digest(body)}\n".encode() + body


def read_cache(study_dir: Path) -> dict[str, Known]:
    """What the file holds; nothing where it is damaged, or not of the study's owner or of just this
    Steelyard."""
    path = study_dir / FILE
    try:
        if path.lstat().st_uid != study_dir.stat().st_uid:
            return {}
        said, _, body = userfiles.read_regular(path, userfiles.PLAN_BYTES).partition(b"\n")
        document = json.loads(body) if file_changes.digest(body).encode() == said else {}
        runs: dict[str, Known] = (
            document["runs"] if document.get("reader") == file_changes.digest_program() else {}
        )
    except (OSError, ValueError):
        return {}
    return runs
