"""The timed operations: each test is prepared for one message size, then runs `count` operations.

Ranks that do not take part in a test get None. Buffers are allocated before the timing, and
contents are checked after it.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

from mpi4py import MPI

WINDOW = 16  # messages that are in flight at the same time, in the bandwidth tests
DOUBLE = 8  # bytes
TAG = 7


@dataclass(frozen=True)
class World:
    """All ranks, and the pair that measures latency and bandwidth."""

    comm: MPI.Intracomm
    rank: int
    ranks: int
    first: int
    second: int

    @property
    def partner(self) -> int:
        """Return the other rank of the pair."""
        return self.second if self.rank == self.first else self.first


@dataclass(frozen=True)
class Task:
    """`run(count)` is timed; `right()` returns whether the data arrived unchanged."""

    run: Callable[[int], None]
    right: Callable[[], bool]


Prepare = Callable[[World, int], Task]


def latency(world: World, size: int) -> Task:
    """Return a task of round trips between the pair."""
    comm, partner, leads = world.comm, world.partner, world.rank == world.first
    out, back = pattern(size), bytearray(size)

    def run(count: int) -> None:
        for _ in range(count):
            if leads:
                comm.Send([out, MPI.BYTE], partner, TAG)
                comm.Recv([back, MPI.BYTE], partner, TAG)
            else:
                comm.Recv([back, MPI.BYTE], partner, TAG)
                comm.Send([back, MPI.BYTE], partner, TAG)

    return Task(run, lambda: back == out)


def bandwidth(world: World, size: int) -> Task:
    """Return a task of messages from the first rank of the pair to the second, then an answer."""
    comm, partner, sends = world.comm, world.partner, world.rank == world.first
    buffers = [pattern(size) if sends else bytearray(size) for _ in range(WINDOW)]
    post = comm.Isend if sends else comm.Irecv

    def run(count: int) -> None:
        for start in range(0, count, WINDOW):
            window = buffers[: count - start]
            MPI.Request.Waitall([post([buffer, MPI.BYTE], partner, TAG) for buffer in window])
        answer(world, sends)

    return Task(run, lambda: buffers[0] == pattern(size))


def bi_bandwidth(world: World, size: int) -> Task:
    """Return a task of messages in both directions at the same time."""
    comm, partner = world.comm, world.partner
    out, buffers = pattern(size), [bytearray(size) for _ in range(WINDOW)]

    def run(count: int) -> None:
        for start in range(0, count, WINDOW):
            window = buffers[: count - start]
            requests = [comm.Irecv([buffer, MPI.BYTE], partner, TAG) for buffer in window]
            requests += [comm.Isend([out, MPI.BYTE], partner, TAG) for _ in window]
            MPI.Request.Waitall(requests)
        answer(world, world.rank == world.first)

    return Task(run, lambda: buffers[0] == out)


def alltoall(world: World, size: int) -> Task:
    """Return a task of messages from each rank to each rank."""
    out, back = bytearray([world.rank % 251]) * (size * world.ranks), bytearray(size * world.ranks)

    def run(count: int) -> None:
        for _ in range(count):
            world.comm.Alltoall([out, size, MPI.BYTE], [back, size, MPI.BYTE])

    return Task(
        run, lambda: all(back[i * size] == i % 251 for i in range(world.ranks if size else 0))
    )


def reduce(world: World, size: int) -> Task:
    """Return a task of sums of `size` bytes of doubles, to rank 0."""
    out, total = doubles(world.rank + 1.0, size), doubles(0.0, size)

    def run(count: int) -> None:
        for _ in range(count):
            world.comm.Reduce([out, MPI.DOUBLE], [total, MPI.DOUBLE], MPI.SUM, 0)

    return Task(run, lambda: world.rank != 0 or is_sum(world, total))


def allreduce(world: World, size: int) -> Task:
    """Return a task of the same sums to all ranks."""
    out, total = doubles(world.rank + 1.0, size), doubles(0.0, size)

    def run(count: int) -> None:
        for _ in range(count):
            world.comm.Allreduce([out, MPI.DOUBLE], [total, MPI.DOUBLE], MPI.SUM)

    return Task(run, lambda: is_sum(world, total))


def barrier(world: World, size: int) -> Task:
    """Return a task of barriers, which have no size."""
    del size

    def run(count: int) -> None:
        for _ in range(count):
            world.comm.Barrier()

    return Task(run, lambda: True)


# Tests between two ranks; tests among all ranks.
PAIRED: dict[str, Prepare] = {
    "latency": latency,
    "bandwidth": bandwidth,
    "bi_bandwidth": bi_bandwidth,
}
COLLECTIVE: dict[str, Prepare] = {
    "alltoall": alltoall,
    "reduce": reduce,
    "allreduce": allreduce,
    "barrier": barrier,
}
TESTS = PAIRED | COLLECTIVE


def prepare(test: str, world: World, size: int) -> Task | None:
    """Return this rank's task of a test; None if it does not take part."""
    if test in PAIRED and world.rank not in (world.first, world.second):
        return None
    return TESTS[test](world, size)


def pattern(size: int) -> bytearray:
    """Return bytes that differ when they are moved."""
    return bytearray(range(251)) * (size // 251) + bytearray(range(size % 251))


def doubles(value: float, size: int) -> array[float]:
    """Return as many doubles as fit into `size` bytes, at least one."""
    return array("d", [value]) * max(1, size // DOUBLE)


def is_sum(world: World, total: array[float]) -> bool:
    """Whether rank + 1 was summed over all ranks."""
    return total[0] == total[-1] == world.ranks * (world.ranks + 1) / 2


def answer(world: World, sends: bool) -> None:
    """Send or receive an answer, from which the sender learns that all messages arrived."""
    if sends:
        world.comm.Recv([bytearray(1), MPI.BYTE], world.partner, TAG)
    else:
        world.comm.Send([b"a", MPI.BYTE], world.partner, TAG)
