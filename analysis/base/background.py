"""DuckDB at work in a thread of its own, while Python goes on with other files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from duckdb import DuckDBPyConnection

INTERRUPT_S = 0.05
AHEAD = 1  # pieces of work that may wait: what lies ready for them needs room


class Background:
    """Pieces of work on one connection, in order; nobody else may use it before wait()."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        self._connection = connection
        self._pool = ThreadPoolExecutor(1, "duckdb")
        self._waiting: deque[Future[None]] = deque()

    def close(self, *, interrupt: bool) -> None:
        """End, after what waits; `interrupt`: at once."""
        if interrupt:
            for future in self._waiting:
                future.cancel()
        # Again and again: an interrupt before a statement begins is forgotten.
        while interrupt and wait(self._waiting, timeout=INTERRUPT_S).not_done:
            self._connection.interrupt()
        self._pool.shutdown(wait=True)

    def submit(self, work: Callable[[], None]) -> None:
        """Do it after all before it; waits while enough is waiting. Raises what those raised."""
        while len(self._waiting) > AHEAD:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(work))

    def wait(self) -> None:
        """Until all is done; raises what the first that failed raised."""
        while self._waiting:
            self._waiting.popleft().result()
