"""A cache of how runs ended, valid while their files are unchanged.

Reading every result.json is most of the time of `status`. So a call that reads many ended runs
writes their results to a file in the study's folder, with the identity of their sources: the run's
folder, which changes with every attempt added or removed, and each attempt's result.json. A later
call compares these identities, and reads no result that is unchanged."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from steelyard.analysis.base import file_changes
from steelyard.analysis.base.file_changes import Identity, read_identity
from steelyard.analysis.sources import study_files
from steelyard.analysis.sources.study_files import RESULT_FILE, RESULT_STATES, RunFolder
from steelyard.jobscripts import regular_files
from steelyard.wrappers.schedulers import ledger

FILE = ".status"
FEWEST = 100  # of new runs: reading fewer is as fast as writing the file
STALE_S = 60.0  # an unfinished file that is older has no writer
# Fields of the last attempt's result.json that a status needs.
KEPT = ("state", "reason", "job_id", "start_unix_s", "end_unix_s", "elapsed_s")

# A run's attempts, the index of the last one among them, and its fields KEPT.
Ended = tuple[list[str], int, dict[str, Any]]
Known = tuple[Ended, list[Identity]]  # identities of the run's folder and the attempts' results


class StateCache:
    """The last attempts of runs, for one status of a study."""

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

    def __exit__(self, _kind: object, error: object, _trace: object) -> None:
        if error is None and len(self._new) >= FEWEST:
            with contextlib.suppress(OSError):  # not writable, full or busy: no cache
                self._write()
        if self._runs_fd >= 0:
            os.close(self._runs_fd)

    def last_attempt(self, run_id: str) -> RunFolder | None:
        """Return what study_files.find_last_attempt() returns; its `result` may have only the names
        in KEPT."""
        if run_id in self._known:
            (attempts, index, result), before = self._known[run_id]
            if self._identities(run_id, attempts) == before:
                where = f"{self._study_dir}/runs/{run_id}/{attempts[index]}"
                return RunFolder(run_id, attempts[index], where, result, None)
            del self._known[run_id]
        entries = study_files.list_run_entries(self._study_dir, run_id)
        folders = [study_files.read_run_folder(run_id, e.path) for e in entries if e.is_dir()]
        last = study_files.find_last_attempt(folders)
        # The identity of a link does not show changes of its target.
        if last is not None and is_over(folders, last) and not any(e.is_symlink() for e in entries):
            attempts = [folder.attempt for folder in folders]
            result = {name: (last.result or {}).get(name) for name in KEPT}
            self._new[run_id] = attempts, attempts.index(last.attempt), result
        return last

    def _identities(self, run_id: str, attempts: Sequence[str]) -> list[Identity] | None:
        """Return the identities of a run's folder and its attempts' results; None if one cannot be
        opened."""
        results = (f"{run_id}/{attempt}/{RESULT_FILE}" for attempt in attempts)
        try:
            return [read_identity(path, self._runs_fd) for path in (run_id, *results)]
        except OSError:
            return None

    def _write(self) -> None:
        """Replace the cache's file atomically by one with all valid runs."""
        temporary = self._study_dir / f"{FILE}.part"
        fd = create_file(temporary)
        try:
            # The file system's clock set the times of the files.
            begun_ns = os.fstat(fd).st_mtime_ns - (time.monotonic_ns() - self._begun_ns)
            if self._restore_unchanged(begun_ns - file_changes.RACE_NS) >= FEWEST:
                ledger.write_all(fd, encode_states(self._known))
                temporary.rename(self._study_dir / FILE)
            else:
                temporary.unlink()
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        finally:
            os.close(fd)

    def _restore_unchanged(self, since_ns: int) -> int:
        """Add the new runs that have not changed since then; return their number."""
        count = 0
        for run_id, ended in self._new.items():
            found = self._identities(run_id, ended[0])
            if found is not None and max(map(file_changes.latest_change_ns, found)) < since_ns:
                self._known[run_id] = ended, found
                count += 1
        return count


def is_over(folders: Sequence[RunFolder], last: RunFolder) -> bool:
    """Return whether the last attempt has ended, and every attempt has a usable result."""
    return last.text("state") in RESULT_STATES and all(one.result is not None for one in folders)


def create_file(temporary: Path) -> int:
    """Create the file to write to. Raises OSError if the folder is not ours, or another call
    writes."""
    if temporary.parent.stat().st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), str(temporary))
    with contextlib.suppress(FileNotFoundError):
        if time.time() - temporary.lstat().st_mtime > STALE_S:
            temporary.unlink()
    return os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)


def encode_states(known: Mapping[str, Known]) -> bytes:
    """Return the file's content: a digest, and the JSON that it covers."""
    body = json.dumps(
        {"reader": file_changes.digest_program(), "runs": known}, separators=(",", ":")
    ).encode()
    return f"{file_changes.digest(body)}\n".encode() + body


def read_cache(study_dir: Path) -> dict[str, Known]:
    """Return the cached runs; {} if the file is damaged, or of another owner or Steelyard
    version."""
    path = study_dir / FILE
    try:
        if path.lstat().st_uid != study_dir.stat().st_uid:
            return {}
        checksum, _, body = regular_files.read_regular(path, regular_files.PLAN_BYTES).partition(
            b"\n"
        )
        document = json.loads(body) if file_changes.digest(body).encode() == checksum else {}
        runs: dict[str, Known] = (
            document["runs"] if document.get("reader") == file_changes.digest_program() else {}
        )
    except (OSError, ValueError):
        return {}
    return runs
