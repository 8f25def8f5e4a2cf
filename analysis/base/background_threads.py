"""Threads of their own for DuckDB and for our reader of samples, while Python goes on with other
files."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait

from duckdb import DuckDBPyConnection

INTERRUPT_S = 0.05
AHEAD = 1  # pieces of work that may wait: what lies ready for them needs room


class OrderedWorker:
    """Pieces of work in a thread of its own, one after the other; `ahead`: so many may wait."""

    def __init__(self, name: str, ahead: int) -> None:
        self._pool = ThreadPoolExecutor(1, name)
        self._waiting: deque[Future[None]] = deque()
        self._ahead = ahead

    def submit(self, work: Callable[[], None]) -> None:
        """Do it after all before it; waits while enough is waiting. Raises what those raised."""
        while len(self._waiting) > self._ahead:
            self._waiting.popleft().result()
        self._waiting.append(self._pool.submit(work))

    def wait(self) -> None:
        """Until all is done; raises what the first that failed raised."""
        while self._waiting:
            self._waiting.popleft().result()

    def cancel(self) -> None:
        """What has not begun is not done."""
        for future in tuple(self._waiting):
            future.cancel()

    def end(self) -> None:
        """After what waits."""
        self._pool.shutdown(wait=True)


class Background(OrderedWorker):
    """Pieces of work on one connection; nobody else may use it before wait()."""

    def __init__(self, connection: DuckDBPyConnection) -> None:
        super().__init__("duckdb", AHEAD)
        self._connection = connection

    def close(self, *, interrupt: bool) -> None:
        """End, after what waits; `interrupt`: at once."""
        if interrupt:
            self.cancel()
        # Again and again: an interrupt before a statement begins is forgotten.
        while interrupt and wait(tuple(self._waiting), timeout=INTERRUPT_S).not_done:
            self._connection.interrupt()
        self.end()
