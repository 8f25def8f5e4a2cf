"""Work in background threads (DuckDB, the sample reader in C), and in a second, forked process.

Python reads other files while a thread works. Figures take half of a report's time: each of two
processes takes the next task when it has finished one, so that a busy second core costs little. The
results do not depend on which process did a task.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import signal
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Generic, NoReturn, Self, TypeVar

from duckdb import DuckDBPyConnection

INTERRUPT_S = 0.05
AHEAD = 1  # tasks that may wait: their prepared data need space


class OrderedWorker:
    """Runs tasks in its own thread, one after another; `ahead` tasks may wait."""

    def __init__(self, name: str, ahead: int) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._waiting: deque[Future[None]] = deque()
        self._ahead = ahead

    def submit(self, work: Callable[[], None]) -> None:
        """Add a task; wait while enough tasks are waiting. Raises the error of an earlier task."""
        while len(self._waiting) > self._ahead:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(work))

    def wait(self) -> None:
        """Wait until all tasks are done; raise the error of the first that failed."""
        while self._waiting:
            self._waiting.popleft().result()

    def cancel(self) -> None:
        """Cancel the tasks that have not started."""
        for future in tuple(self._waiting):
            future.cancel()

    def end(self) -> None:
        """End the thread after the waiting tasks."""
        self._pool.shutdown(wait=True)


class Background(OrderedWorker):
    """Runs tasks on one connection, which no other thread may use before `wait` returns."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        super().__init__("duckdb", AHEAD)
        self._connection = connection

    def close(self, *, interrupt: bool) -> None:
        """End after the waiting tasks, or with `interrupt` at once."""
        if interrupt:
            self.cancel()
        # Repeat it: an interrupt before a statement starts has no effect.
        while interrupt and wait(tuple(self._waiting), timeout=INTERRUPT_S).not_done:
            self._connection.interrupt()
        self.end()


T = TypeVar("T")  # something that can be pickled

NUMBER = 4  # bytes of a task's index in the queue
LOG = logging.getLogger(__name__)


class SharedWork(Generic[T]):
    """Tasks that a second process starts at once; `results` does some of them and waits.

    There is no second process where it is useless or unsafe (one core; other threads).
    """

    def __init__(self, pieces: Sequence[Callable[[], T]]) -> None:
        self._pieces = pieces
        self._child = 0
        if len(pieces) > 1 and can_fork():
            self._start_helper()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Kill the second process if its results were not read."""
        if self._child:
            os.kill(self._child, signal.SIGKILL)
            self._wait_for_helper()

    def results(self) -> list[T]:
        """Return the results in the order of the tasks. Raises the error of a task."""
        found: dict[int, T] = {}
        if self._child:
            found = {index: self._pieces[index]() for index in self._claim_indices()}
            found |= self._read_helper_results()
        # Tasks that failed in the second process are repeated here, which raises their error.
        return [found[i] if i in found else piece() for i, piece in enumerate(self._pieces)]

    def _start_helper(self) -> None:
        # A file of indices: both processes share its position (open(2), fork(2)).
        self._queue = os.memfd_create("pieces")
        os.write(self._queue, b"".join(i.to_bytes(NUMBER, "big") for i in range(len(self._pieces))))
        os.lseek(self._queue, 0, os.SEEK_SET)
        self._answer, writer = os.pipe()
        first = os.getpid()
        sys.stdout.flush()  # else both processes would print the buffered text
        sys.stderr.flush()
        self._child = os.fork()
        if not self._child:
            os.close(self._answer)
            self._run_helper(writer, first)
        os.close(writer)

    def _claim_indices(self) -> Iterator[int]:
        """Yield the indices of tasks that the other process has not taken."""
        while index := os.read(self._queue, NUMBER):
            yield int.from_bytes(index, "big")

    def _run_helper(self, writer: int, first: int) -> NoReturn:
        """Do tasks in the second process, then exit. It stops if the first process is dead."""
        try:
            found: dict[int, T] = {}
            try:
                for index in itertools.takewhile(
                    lambda _: os.getppid() == first, self._claim_indices()
                ):
                    found[index] = self._pieces[index]()
                answer = pickle.dumps((found, ""))
            except Exception as error:  # noqa: BLE001 - reported, and retried
                answer = pickle.dumps(({}, repr(error)))
            with contextlib.suppress(OSError), os.fdopen(writer, "wb") as file:
                file.write(answer)
        finally:
            os._exit(0)

    def _read_helper_results(self) -> dict[int, T]:
        """Return the results of the second process; {} and a warning if it failed."""
        with open(self._answer, "rb", closefd=False) as file:
            answer = file.read()
        status = self._wait_for_helper()
        try:
            found, fault = pickle.loads(answer)
        except (EOFError, pickle.UnpicklingError):
            found, fault = {}, f"it ended early with status {status}"
        if fault:
            LOG.warning("the second process failed and its work is done again: %s", fault)
        return dict(found)

    def _wait_for_helper(self) -> int:
        """Wait for the second process; return its exit status, or the negative signal number."""
        child, self._child = self._child, 0
        os.close(self._queue)
        os.close(self._answer)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def can_fork() -> bool:
    """Whether a second core exists, and no other thread: its locks would stay locked in a fork."""
    if len(os.sched_getaffinity(0)) < 2:
        return False
    return sum(1 for _ in Path("/proc/self/task").iterdir()) == 1
