"""OS noise: how much a sampler slows down two ranks of MPI.

One mpirun of two ranks, each on its own processor, repeats the same work: a loop of MPI_Barrier,
where a delay of either rank stops both, and a constant amount of work without communication.
Meanwhile there is in turn no sampler (the peer), one at 1 Hz, one at 10 Hz, started as the plugin
starts it: with counts of the kernel (BPF) if this machine has them (or see --way). In each round
each of the three has --blocks blocks of both kinds, of --ms each, and the order changes between
rounds. A ratio is of one round: time with the sampler to time without. The table has its median
with a 95 % bootstrap interval. Budget (DESIGN): less than 0.1 % slower at 10 Hz.

It runs for --minutes (4). Other load of the machine is noise itself, so the load is printed. Needs
root and mpicc.

Last line: JSON with KIND_RATE_slower_percent, its interval (KIND_RATE_low_percent, …_high_percent),
rounds, way, load; KIND: barrier, work; RATE: 1hz, 10hz.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import sampler_job as ours
from bootstrap_interval import interval_of_the_median
from mpiprof import OPEN_MPI

from steelyard.wrappers.base.signals import ending_on_sigterm

KINDS = {"barrier": "b", "work": "w"}  # and the request for it in noise_mpi_ranks.c
RATES_HZ = (0, 1, 10)  # 0: no sampler
BUDGET_PERCENT, FEWEST_ROUNDS = 0.1, 6
SETTLE_S = 0.1  # after a sampler's start and end

Seconds = dict[tuple[str, int], list[float]]  # by kind and rate, one per round


class Ranks:
    """Two ranks that work on request."""

    def __init__(self, base: Path, ms: int) -> None:
        program = ours.compiled(base, "noise_mpi_ranks", compiler="mpicc")
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        argv = ["mpirun", *root, *OPEN_MPI[:3], "-np", "2", str(program), str(ms)]
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.read()

    def read(self) -> str:
        assert self.process.stdout is not None
        if line := self.process.stdout.readline():
            return line
        raise SystemExit("bench noise: the ranks have ended early")

    def seconds(self, order: str) -> float:
        """Return how long one block took."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{order}\n")
        self.process.stdin.flush()
        return int(self.read()) / 1e9

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(20)


@contextmanager
def sampled(base: Path, way: ours.Way, rate_hz: int, ranks: Ranks) -> Iterator[None]:
    """Run a sampler of the ranks in the `with` statement; rate 0: none."""
    started = ours.start(base, way, rate_hz, ranks.process.pid, None) if rate_hz else None
    time.sleep(SETTLE_S)
    try:
        yield
    finally:
        if started:
            started.end()
        time.sleep(SETTLE_S)


def add_round(
    base: Path, way: ours.Way, ranks: Ranks, number: int, blocks: int, times: Seconds
) -> None:
    """Measure each rate once; each round begins with another one."""
    first = number % len(RATES_HZ)
    for rate_hz in (*RATES_HZ[first:], *RATES_HZ[:first]):
        with sampled(base, way, rate_hz, ranks):
            for kind, order in KINDS.items():
                took = sum(ranks.seconds(order) for _ in range(blocks))
                times.setdefault((kind, rate_hz), []).append(took)


def measure(way: ours.Way, ms: int, blocks: int, minutes: float) -> Seconds:
    """Measure as many rounds as the time allows."""
    end_s = time.monotonic() + 60 * minutes
    times: Seconds = {}
    with tempfile.TemporaryDirectory(prefix="sy-noise-") as folder:
        base = Path(folder)
        ours.make_tree(base / "tree")
        ranks = Ranks(base, ms)
        try:
            add_round(base, way, ranks, 0, 1, {})  # a warm-up
            number = 0
            while number < FEWEST_ROUNDS or time.monotonic() < end_s:
                add_round(base, way, ranks, number, blocks, times)
                number += 1
        finally:
            ranks.end()
            ours.end_started()
    return times


def figures_of(times: Mapping[tuple[str, int], Sequence[float]]) -> dict[str, float]:
    """Return by how many percent a sampler slows down the ranks, as the median of the rounds."""
    found: dict[str, float] = {}
    for (kind, rate_hz), seconds in times.items():
        if rate_hz == 0:
            continue
        pairs = zip(seconds, times[kind, 0], strict=True)
        slower = [100 * (with_s / without_s - 1) for with_s, without_s in pairs]
        low, high = interval_of_the_median(slower)
        name = f"{kind}_{rate_hz}hz"
        found[f"{name}_slower_percent"] = round(statistics.median(slower), 4)
        found[f"{name}_low_percent"], found[f"{name}_high_percent"] = round(low, 4), round(high, 4)
    return found


def verdict(low: float, high: float) -> str:
    """Compare an interval with the budget."""
    if high < BUDGET_PERCENT:
        return "within the budget"
    return "above the budget" if low > BUDGET_PERCENT else "not known: the interval is too wide"


def show(figures: Mapping[str, float]) -> None:
    """Print the table."""
    print(
        f"{'loop':<8} {'sampler':>8} {'slower %':>9} {'95 % interval':>20}  budget {BUDGET_PERCENT:g} %"
    )
    for kind in KINDS:
        for rate_hz in RATES_HZ[1:]:
            name = f"{kind}_{rate_hz}hz"
            low, high = figures[f"{name}_low_percent"], figures[f"{name}_high_percent"]
            print(f"{kind:<8} {rate_hz:>5} Hz {figures[f'{name}_slower_percent']:>9.3f} "
                  f"{low:>9.3f} … {high:>8.3f}  {verdict(low, high)}")  # fmt: skip


def main() -> int:
    """Measure and print; return 3 if something is missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=4.0)
    parser.add_argument("--ms", type=int, default=500, help="of one piece (500)")
    parser.add_argument("--blocks", type=int, default=2, help="pieces of each kind in turn (2)")
    ways = {way.name: way for way in ours.ways(False)}
    parser.add_argument("--way", choices=ways, default=list(ways)[-1])
    args = parser.parse_args()
    if os.geteuid() != 0 or (os.cpu_count() or 1) < 2:
        print("bench noise: needs root and two processors", file=sys.stderr)
        return 3
    times = measure(ways[args.way], args.ms, args.blocks, args.minutes)
    figures, rounds = figures_of(times), len(times["work", 0])
    show(figures)
    load = round(os.getloadavg()[0], 1)
    print(f"{rounds} rounds, each {args.blocks} pieces of {args.ms} ms; sampled by: {args.way}; the "
          f"two ranks are 2 of the load of {load}")  # fmt: skip
    print(json.dumps({**figures, "rounds": rounds, "way": args.way, "load": load}))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
