"""Work that a second, forked process shares: figures take half of a report's time.

Each process takes the next piece when it is done with one, so that a busy second core costs
little. What comes out does not depend on who did what.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Generic, NoReturn, Self, TypeVar

T = TypeVar("T")  # something that can be pickled

NUMBER = 4  # bytes of a piece's place in the queue
LOG = logging.getLogger(__name__)


class SharedWork(Generic[T]):
    """Pieces of work that a second process begins at once; results() helps and waits.

    Without a second process where that is of no use or not safe (one core; other threads).
    """

    def __init__(self, pieces: Sequence[Callable[[], T]]) -> None:
        self._pieces = pieces
        self._child = 0
        if len(pieces) > 1 and can_fork():
            self._start_helper()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Ends the second process if its results are no longer wanted."""
        if self._child:
            os.kill(self._child, signal.SIGKILL)
            self._wait_for_helper()

    def results(self) -> list[T]:
        """In the order of the pieces. Raises what a piece raises."""
        found: dict[int, T] = {}
        if self._child:
            found = {place: self._pieces[place]() for place in self._claim_indices()}
            found |= self._read_helper_results()
        # What failed there is tried here: it heals, or is told by what it raises.
        return [found[i] if i in found else piece() for i, piece in enumerate(self._pieces)]

    def _start_helper(self) -> None:
        # A file of places: both processes read on from where either stopped (open(2), fork(2)).
        self._queue = os.memfd_create("pieces")
        os.write(self._queue, b"".join(i.to_bytes(NUMBER, "big") for i in range(len(self._pieces))))
        os.lseek(self._queue, 0, os.SEEK_SET)
        self._answer, writer = os.pipe()
        first = os.getpid()
        sys.stdout.flush()  # else both would print what waits there
        sys.stderr.flush()
        self._child = os.fork()
        if not self._child:
            os.close(self._answer)
            self._run_helper(writer, first)
        os.close(writer)

    def _claim_indices(self) -> Iterator[int]:
        """Places of the pieces that nobody else will do."""
        while place := os.read(self._queue, NUMBER):
            yield int.from_bytes(place, "big")

    def _run_helper(self, writer: int, first: int) -> NoReturn:
        """The second process, to its end; without the first one nobody wants its work."""
        try:
            found: dict[int, T] = {}
            try:
                for place in itertools.takewhile(
                    lambda _: os.getppid() == first, self._claim_indices()
                ):
                    found[place] = self._pieces[place]()
                answer = pickle.dumps((found, ""))
            except Exception as error:  # noqa: BLE001 - told, and tried again
                answer = pickle.dumps(({}, repr(error)))
            with contextlib.suppress(OSError), os.fdopen(writer, "wb") as file:
                file.write(answer)
        finally:
            os._exit(0)

    def _read_helper_results(self) -> dict[int, T]:
        """What the second process did; nothing, and a warning, where it failed."""
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
        """Wait for the second process; its exit status, or the signal as a negative number."""
        child, self._child = self._child, 0
        os.close(self._queue)
        os.close(self._answer)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def can_fork() -> bool:
    """Whether there is a second core, and no other thread: its locks would stay shut in a copy."""
    if len(os.sched_getaffinity(0)) < 2:
        return False
    return sum(1 for _ in Path("/proc/self/task").iterdir()) == 1
