"""The program that all ranks of the benchmark mpi run: rank 0 prints one JSON document.

`tests` has, for each test and message size, the seconds of one operation on the slowest rank, one
value per repetition. For latency this is half a round trip, for bandwidth one message. A message
that arrives damaged ends all ranks.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mpi4py import MPI

from steelyard.jobscripts.mpi.operations import TESTS, Task, World, prepare

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
