"""Finds attempts whose files are unchanged since an earlier collect, so that their rows can stay.

Only a complete attempt is skipped: it is completed, has no gap, is the only one of its job and is
the one that counts. `attempts.stamp` is a digest of its sources. Plan, accounting and result.json
are digested by content. Other files are digested by size and times before they are read. The
program is part of the digest, so that another version of Steelyard reads everything again.
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
from steelyard.analysis.collect.attempt_building import Attempt
from steelyard.analysis.collect.record_import import can_be_linked, compute_window
from steelyard.analysis.sources import record_packs
from steelyard.analysis.sources.record_folders import find_job_sources
from steelyard.analysis.sources.study_files import PlannedRun

AT_ONCE = 8  # threads; most of their time is spent waiting for network file systems
LOOKS_AT_ONCE = 16  # attempts per task of a thread
PARTS_AT_ONCE = 64  # tasks of all threads, until one thread alone measures their use again
WAITING = 10.0  # ratio of elapsed to CPU time above which a thread is waiting for files

FACTS = operator.attrgetter(
    *(name for name in Attempt.__slots__ if name not in ("records", "folder", "row", "stamp"))
)

SETTLED = "settled"  # the table of their keys during a collect

Key = tuple[str, str]  # run, attempt


def list_source(source: Path) -> list[tuple[str | int, ...]]:
    """Return the files of a folder of records, or the pack, which never changes once it exists."""
    if source.suffix == record_packs.SUFFIX:
        status = source.stat()
        return [(str(source), status.st_size, status.st_mtime_ns)]
    return list_records(str(source))


def list_records(folder: str) -> list[tuple[str | int, ...]]:
    """Return the files of a folder of records; see `file_changes.list_files`.

    The inode time of a file that collect may link is ignored, since each new link changes it. Such
    a file has no writer.
    """
    return file_changes.list_files(folder, lambda name, mode: not can_be_linked(name, mode))


class Stamps:
    """Digests of attempts' sources: the current ones and those that the database stores."""

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
        self._left: dict[Key, str] = {}  # digests of the sources that reading does not change
        self._stored: dict[Key, str] = {
            (run_id, attempt): stamp
            for run_id, attempt, stamp in connection.execute(
                "SELECT run_id, attempt, a.stamp FROM attempts AS a JOIN runs AS r "
                "USING (run_id, attempt) WHERE a.stamp IS NOT NULL AND r.state = 'completed'"
            ).fetchall()
        }

    def find_settled(self, attempts: Sequence[Attempt]) -> set[Key]:
        """Return the keys of attempts whose rows may stay. This stats all of their files."""
        of_job = Counter(attempt.job_id for attempt in attempts if attempt.job_id)
        able = [a for a in attempts if a.state == "completed" and of_job[a.job_id or ""] <= 1]
        stay = set()
        for attempt, stamp in zip(able, self._compute_all_stamps(able), strict=True):
            if stamp is not None and stamp == self._stored.get(attempt_key(attempt)):
                attempt.stamp = stamp
                stay.add(attempt_key(attempt))
        return stay

    def _compute_all_stamps(self, attempts: Sequence[Attempt]) -> Iterator[str | None]:
        """Yield the stamps of all attempts, in order.

        Several threads work while they wait for files, as on a network file system. Otherwise this
        thread works alone, since threads that never wait double each other's time.
        """
        parts = [attempts[n : n + LOOKS_AT_ONCE] for n in range(0, len(attempts), LOOKS_AT_ONCE)]
        pending, is_waiting = deque(parts), False
        with ThreadPoolExecutor(AT_ONCE) as pool:
            while pending:
                if is_waiting:
                    now = [pending.popleft() for _ in range(min(PARTS_AT_ONCE, len(pending)))]
                    yield from itertools.chain.from_iterable(pool.map(self._compute_stamps, now))
                begin_s, begin_cpu_s = time.monotonic(), time.thread_time()
                found = self._compute_stamps(pending.popleft() if pending else ())
                cpu_s = time.thread_time() - begin_cpu_s
                is_waiting = time.monotonic() - begin_s > WAITING * cpu_s
                yield from found

    def _compute_stamps(self, attempts: Sequence[Attempt]) -> list[str | None]:
        """Return the stamps of several attempts.

        A task for each would cost more than the work itself.
        """
        return [self._compute_stamp(attempt) for attempt in attempts]

    def _compute_stamp(self, attempt: Attempt) -> str | None:
        """Return the stamp of an attempt before its files are read; None: it cannot be computed."""
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
        """Return folders and packs with the attempt's records in the nodes' record directories."""
        window, job_id = compute_window([attempt]), attempt.job_id or "-"
        return [f for path in self._record_dirs for f in find_job_sources(path, job_id, window)]

    def compute_full_stamp(self, attempt: Attempt) -> str | None:
        """Return the stamp, which includes the current copies of records in the study.

        None means that the attempt must always be read.
        """
        left = self._left.get(attempt_key(attempt))
        if left is None:
            return None
        try:
            copies = f"{self._study_dir}/records/{attempt.job_id or '-'}"
            return digest(left, file_changes.list_files(copies, lambda *_: False))
        except (OSError, UnknownChangeError):
            return None


def attempt_key(attempt: Attempt) -> Key:
    """Return the attempt's key, which is the same in every table."""
    return attempt.run_id, attempt.attempt


def list_facts(attempt: Attempt) -> tuple[object, ...]:
    """Return the values that came from accounting, submission and result.json."""
    return (*FACTS(attempt), attempt.folder.result if attempt.folder else None)


def store_settled(connection: DuckDBPyConnection, settled: Iterable[Key]) -> None:
    """Write the table SETTLED: the keys whose rows `replace_rows` does not change."""
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
    """Set the stamps under which attempts were read. Incomplete attempts get none."""
    for attempt in attempts:
        key = attempt_key(attempt)
        if key in read_as:
            is_complete = attempt.state == "completed" and key not in with_gaps
            attempt.stamp = read_as[key] if is_complete else None
