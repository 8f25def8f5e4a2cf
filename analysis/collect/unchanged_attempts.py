"""Attempts whose files are as an earlier collect found them: their rows stay, and nothing of them is
read again.

Only what lacks nothing is left alone: a completed attempt without a gap, the only one of its job and
the one that counts. What it was made of is summed up in one word, `attempts.stamp`: the plan, the
accounting and result.json by their content; the other files by size and times, as they were before
they were read; and the program, so that another Steelyard reads all of it anew.
"""

from __future__ import annotations

import itertools
import operator
import time
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from duckdb import DuckDBPyConnection

from steelyard.analysis.base import file_changes
from steelyard.analysis.base.file_changes import UnknownChangeError, digest
from steelyard.analysis.collect.attempts import Attempt
from steelyard.analysis.collect.record_import import can_be_linked, compute_window
from steelyard.analysis.sources import record_packs
from steelyard.analysis.sources.record_folders import find_job_sources
from steelyard.analysis.sources.study_files import PlannedRun

AT_ONCE = 8  # the time goes into waiting for network file systems
LOOKS_AT_ONCE = 16  # by one thread
PARTS_AT_ONCE = 64  # by all of them, before one alone shows whether they are needed still
WAITING = 10.0  # a look that takes so many times its CPU time waits for its files

FACTS = operator.attrgetter(
    *(name for name in Attempt.__slots__ if name not in ("records", "folder", "row", "stamp"))
)

SETTLED = "settled"  # the table of their keys, as long as a collect works

Key = tuple[str, str]  # run, attempt


def list_source(source: Path) -> list[tuple[str | int, ...]]:
    """A folder of records, or a pack of them, which never changes once it is there."""
    if source.suffix == record_packs.SUFFIX:
        status = source.stat()
        return [(str(source), status.st_size, status.st_mtime_ns)]
    return list_records(str(source))


def list_records(folder: str) -> list[tuple[str | int, ...]]:
    """One more link changes an inode's time, too; but nobody writes what cannot be written."""
    return file_changes.list_files(folder, lambda name, mode: not can_be_linked(name, mode))


class Stamps:
    """What attempts are made of, now and when they were read last."""

    def __init__(
        self,
        connection: DuckDBPyConnection,
        study_dir: Path,
        record_dirs: Sequence[Path],
        runs: Mapping[str, PlannedRun],
    ) -> None:
        self._study_dir = study_dir
        self._record_dirs = list(record_dirs)
        self._runs = runs
        self._left: dict[Key, str] = {}  # what is not changed by reading it
        self._stored: dict[Key, str] = {
            (run_id, attempt): stamp
            for run_id, attempt, stamp in connection.execute(
                "SELECT run_id, attempt, a.stamp FROM attempts AS a JOIN runs AS r "
                "USING (run_id, attempt) WHERE a.stamp IS NOT NULL AND r.state = 'completed'"
            ).fetchall()
        }

    def find_settled(self, attempts: Sequence[Attempt]) -> set[Key]:
        """Those whose rows may stay. Looks at all their files."""
        of_job = Counter(attempt.job_id for attempt in attempts if attempt.job_id)
        able = [a for a in attempts if a.state == "completed" and of_job[a.job_id or ""] <= 1]
        stay = set()
        for attempt, stamp in zip(able, self._compute_all_stamps(able), strict=True):
            if stamp is not None and stamp == self._stored.get(attempt_key(attempt)):
                attempt.stamp = stamp
                stay.add(attempt_key(attempt))
        return stay

    def _compute_all_stamps(self, attempts: Sequence[Attempt]) -> Iterator[str | None]:
        """The stamps: by several threads as long as it is files that are waited for, those of a network
        file system; else by this one alone, for threads that never wait cost each other twice the
        time."""
        parts = [attempts[n : n + LOOKS_AT_ONCE] for n in range(0, len(attempts), LOOKS_AT_ONCE)]
        left, is_waiting = deque(parts), False
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while left:
                if is_waiting:
                    now = [left.popleft() for _ in range(min(PARTS_AT_ONCE, len(left)))]
                    yield from itertools.chain.from_iterable(pool.map(self._compute_stamps, now))
                begin_s, begin_cpu_s = time.monotonic(), time.thread_time()
                found = self._compute_stamps(left.popleft() if left else ())
                cpu_s = time.thread_time() - begin_cpu_s
                is_waiting = time.monotonic() - begin_s > WAITING * cpu_s
                yield from found

    def _compute_stamps(self, attempts: Sequence[Attempt]) -> list[str | None]:
        """The stamps of several: handing each to a thread alone takes longer than the look."""
        return [self._compute_stamp(attempt) for attempt in attempts]

    def _compute_stamp(self, attempt: Attempt) -> str | None:
        """The stamp before anything is read."""
        try:
            self._left[attempt_key(attempt)] = digest(
                file_changes.digest_program(),
                self._runs[attempt.run_id],
                list_facts(attempt),
                attempt.folder and list_records(attempt.folder.where),
                [list_source(source) for source in self._list_sources(attempt)],
            )
            return self.compute_full_stamp(attempt)
        except (OSError, UnknownChangeError):
            self._left.pop(attempt_key(attempt), None)
            return None

    def _list_sources(self, attempt: Attempt) -> list[Path]:
        """Where the nodes left its records, or the packs that have them by now."""
        window, job_id = compute_window([attempt]), attempt.job_id or "-"
        return [f for path in self._record_dirs for f in find_job_sources(path, job_id, window)]

    def compute_full_stamp(self, attempt: Attempt) -> str | None:
        """With the study's own copies of its records as they are now; None: always to be read."""
        left = self._left.get(attempt_key(attempt))
        if left is None:
            return None
        try:
            copies = f"{self._study_dir}/records/{attempt.job_id or '-'}"
            return digest(left, file_changes.list_files(copies, lambda *_: False))
        except (OSError, UnknownChangeError):
            return None


def attempt_key(attempt: Attempt) -> Key:
    """Its key in every table."""
    return attempt.run_id, attempt.attempt


def list_facts(attempt: Attempt) -> tuple[object, ...]:
    """What the accounting, the submission and result.json said of it."""
    return (*FACTS(attempt), attempt.folder.result if attempt.folder else None)


def store_settled(connection: DuckDBPyConnection, settled: Iterable[Key]) -> None:
    """The table SETTLED: whose rows replace_rows() leaves where they are."""
    keys = sorted(settled)
    runs, attempts = [run for run, _ in keys], [attempt for _, attempt in keys]
    connection.execute(
        f"CREATE OR REPLACE TEMP TABLE {SETTLED} AS "
        "SELECT unnest(?::VARCHAR[]) AS run_id, unnest(?::VARCHAR[]) AS attempt",
        [runs, attempts],
    )


def store_stamps(
    attempts: Iterable[Attempt], read_as: Mapping[Key, str | None], with_gaps: Collection[Key]
) -> None:
    """Note the stamps under which attempts were read; not of those that lack anything."""
    for attempt in attempts:
        key = attempt_key(attempt)
        if key in read_as:
            whole = attempt.state == "completed" and key not in with_gaps
            attempt.stamp = read_as[key] if whole else None
