"""The program that all ranks of the benchmark mpi run: rank 0 prints one JSON document.

Each test is prepared for one message size, then runs `count` operations. `tests` has, for each test
and message size, the seconds of one operation on the slowest rank, one value per repetition. For
latency this is half a round trip, for bandwidth one message. A message that arrives damaged ends all
ranks."""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

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


FULL_COUNT_BYTES = 8192  # messages up to this size are sent `iterations` times
LEAST_COUNT = 10


@dataclass(frozen=True)
class Row:
    """A test with one message size; `seconds` of one operation, in each repetition."""

    test: str
    bytes: int
    operations: int
    seconds: list[float]


def main() -> None:
    """Run the requested tests."""
    options = read_options()
    world = make_world(MPI.COMM_WORLD)
    names = list(TESTS) if options.test == "all" else [options.test]
    rows = [
        measure(world, name, size, options)
        for name in names
        for size in sizes_of(name, options.smallest, options.largest)
    ]
    nodes = world.comm.gather(MPI.Get_processor_name())
    if world.rank == 0 and nodes is not None:
        sys.stdout.write(json.dumps(document(world, nodes, rows)) + "\n")
        if options.tags:
            write_tags(options.tags, rows)


def read_options() -> argparse.Namespace:
    """Parse the arguments that job.sh passes."""
    parser = argparse.ArgumentParser(prog="steelyard.jobscripts.mpi.client")
    parser.add_argument("--test", choices=["all", *TESTS], default="all")
    for name, default in (
        ("smallest", 8),
        ("largest", 1 << 20),
        ("iterations", 1000),
        ("warm-up", 10),
        ("repetitions", 5),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--tags", type=Path, help="a file of tags that the latency is added to")
    return parser.parse_args()


def make_world(comm: MPI.Intracomm) -> World:
    """Return the ranks; the pair is rank 0 and the first on another node, or the middle rank."""
    nodes = comm.allgather(MPI.Get_processor_name())
    others = [rank for rank, node in enumerate(nodes) if node != nodes[0]]
    ranks = comm.Get_size()
    return World(comm, comm.Get_rank(), ranks, 0, others[0] if others else ranks // 2)


def sizes_of(test: str, smallest: int, largest: int) -> Iterator[int]:
    """Yield sizes doubled from the smallest, and the largest; a barrier has one size, 0."""
    size = smallest
    if test == "barrier":
        yield 0
        return
    while size < largest:
        yield size
        size = max(1, 2 * size)
    yield largest


def count_of(size: int, iterations: int) -> int:
    """Return the number of operations, which is smaller for large messages."""
    if size <= FULL_COUNT_BYTES:
        return iterations
    return min(iterations, max(LEAST_COUNT, iterations * FULL_COUNT_BYTES // size))


def measure(world: World, test: str, size: int, options: argparse.Namespace) -> Row:
    """Run all repetitions of a test with one size."""
    count = count_of(size, options.iterations)
    task = prepare(test, world, size)
    if task is not None and options.warm_up:
        task.run(options.warm_up)
    seconds = [repetition(world, task, count) for _ in range(options.repetitions)]
    if task is not None and not task.right():
        stop(world, f"{test}: a message of {size} bytes did not arrive as it was sent")
    if test == "latency":
        seconds = [value / 2 for value in seconds]
    return Row(test, size, count, seconds)


def repetition(world: World, task: Task | None, count: int) -> float:
    """Return the seconds of one operation on the slowest rank."""
    world.comm.Barrier()
    start = MPI.Wtime()
    if task is not None:
        task.run(count)
    took = MPI.Wtime() - start
    slowest: float = world.comm.allreduce(took, MPI.MAX)
    return slowest / count


def stop(world: World, message: str) -> None:
    """End all ranks with a message."""
    sys.stderr.write(f"steelyard: rank {world.rank}: {message}\n")
    sys.stderr.flush()
    world.comm.Abort(1)


def document(world: World, nodes: list[str], rows: list[Row]) -> dict[str, object]:
    """Return the document that rank 0 prints."""
    return {
        "format": "steelyard-mpi",
        "version": 1,
        "mpi": MPI.Get_library_version().split("\n")[0].strip("\0 "),
        "nodes": nodes,
        "pair": [world.first, world.second],
        "tests": [dataclasses.asdict(row) for row in rows],
    }


def write_tags(path: Path, rows: list[Row]) -> None:
    """Append tags of the network: latency of the smallest message, bandwidth of the largest."""
    latencies = [row for row in rows if row.test == "latency"]
    bandwidths = [row for row in rows if row.test == "bandwidth"]
    with path.open("a", encoding="utf-8") as file:
        for row in latencies[:1]:
            file.write(f"mpi.latency_s={statistics.median(row.seconds):.9f}\n")
        for row in bandwidths[-1:]:
            rate = row.bytes / statistics.median(row.seconds)
            file.write(f"mpi.bandwidth_bytes_per_s={rate:.0f}\n")


if __name__ == "__main__":
    main()
