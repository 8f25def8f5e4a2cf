"""Background threads for DuckDB and for the sample reader in C.

Python reads other files meanwhile.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

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
