"""What the MPI profiler costs: CG class A with and without it, interleaved, and the cost of one
call.

`make bench BENCH=mpiprof`. Environment: MPIPROF_ROUNDS (default 15), MPIPROF_RANKS (default "1 2"),
MPIPROF_CLASS (A). The peer is the same program without the profiler. Three estimates of the cost as
a share of the run: the median ratio of the program's own times, with its interval; the ratio of the
fastest runs, since other load only adds time; and calls × cost of a call / time of a rank, which
noise does not affect. The last line is JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from bootstrap_interval import interval_of_the_median

from steelyard.jobscripts.npb import parse
from steelyard.wrappers.base.signals import ending_on_sigterm

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build/bin/npb-cg"
PROFILER = ROOT / "build/bin/steelyard-mpiprof"
LIMIT_S = 600
OPEN_MPI = ["--oversubscribe", "--bind-to", "none", "--mca", "mpi_yield_when_idle", "1"]
# The cheapest call: MPI_Test of no request.
EMPTY_CALLS = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	MPI_Request none = MPI_REQUEST_NULL;
	int flag;
	MPI_Init(&argc, &argv);
	const double start = MPI_Wtime();
	for (int i = 0; i < 5000000; i++)
		MPI_Test(&none, &flag, MPI_STATUS_IGNORE);
	printf("%.3f\\n", (MPI_Wtime() - start) / 5000000 * 1e9);
	MPI_Finalize();
	return 0;
}
"""


@dataclass(frozen=True)
class Cost:
    """Results of a number of ranks: fastest times, the median ratio's interval, calls per rank."""

    ranks: int
    without_s: float
    with_s: float
    ratio: float
    low: float
    high: float
    calls_per_rank: float


def main() -> int:
    """Print the table; return 3 if the programs are missing."""
    if not PROGRAM.is_file() or not PROFILER.is_file():
        print("build npb-cg and steelyard-mpiprof first: make all (needs mpicc)", file=sys.stderr)
        return 3
    price_ns = price_of_a_call()
    print(f"one profiled call costs {price_ns:.0f} ns more than a plain one")
    print(
        f"{'ranks':>5} {'without s':>10} {'with s':>10} {'more %':>7} {'median %':>9} {'95 % of it':>16}",
        end="",
    )
    print(f" {'calls/rank':>11} {'calls × price %':>16}")
    costs = [compare(int(word)) for word in os.environ.get("MPIPROF_RANKS", "1 2").split()]
    rows = []
    for cost in costs:
        share = cost.calls_per_rank * price_ns * 1e-9 / cost.without_s
        print(
            f"{cost.ranks:5} {cost.without_s:10.4f} {cost.with_s:10.4f} "
            f"{100 * (cost.with_s / cost.without_s - 1):7.2f} {100 * (cost.ratio - 1):9.2f} {100 * (cost.low - 1):7.2f} to "
            f"{100 * (cost.high - 1):5.2f} {cost.calls_per_rank:11.0f} {100 * share:16.4f}"
        )
        rows.append(
            {
                "ranks": cost.ranks,
                "fastest_ratio": round(cost.with_s / cost.without_s, 4),
                "median_ratio": round(cost.ratio, 4),
                "interval": [round(cost.low, 4), round(cost.high, 4)],
                "calls_share": round(share, 7),
            }
        )
    print(json.dumps({"call_ns": round(price_ns, 1), "rounds": rounds(), "cg": rows}))
    return 0


def rounds() -> int:
    """Return the number of runs of each kind."""
    return int(os.environ.get("MPIPROF_ROUNDS", "15"))


def compare(ranks: int) -> Cost:
    """Compare pairs of runs; the first of a pair alternates, so that drift affects both equally."""
    class_name = os.environ.get("MPIPROF_CLASS", "A")
    plain, profiled, calls = [], [], 0
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "profile.json"
        command = [str(PROGRAM), "--class", class_name]
        for number in range(rounds()):
            for with_profiler in (False, True) if number % 2 == 0 else (True, False):
                prefix = [str(PROFILER), str(profile)] if with_profiler else []
                times = profiled if with_profiler else plain
                times.append(time_of(mpirun(ranks, [*prefix, *command])))
        total = json.loads(profile.read_text())["total"]["calls"]
        calls = sum(item["calls"] for item in total.values())
    ratios = np.array(profiled) / np.array(plain)
    low, high = interval_of_the_median(ratios)
    return Cost(
        ranks,
        min(plain),
        min(profiled),
        float(np.median(ratios)),
        low,
        high,
        calls / ranks,
    )


def price_of_a_call() -> float:
    """Return the ns that the profiler adds to a call: best of five, 5 million calls each."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "calls.c", Path(folder) / "calls"
        source.write_text(EMPTY_CALLS, encoding="utf-8")
        subprocess.run(["mpicc", "-O2", source, "-o", program], check=True, timeout=LIMIT_S)
        profiler = [str(PROFILER), str(Path(folder) / "profile.json")]
        plain = min(float(mpirun(1, [str(program)])) for _ in range(5))
        return min(float(mpirun(1, [*profiler, str(program)])) for _ in range(5)) - plain


def mpirun(ranks: int, command: list[str]) -> str:
    """Run a program and return its stdout."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    words = ["mpirun", *root, *OPEN_MPI, "-np", str(ranks), *command]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=LIMIT_S)
    return done.stdout


def time_of(text: str) -> float:
    """Return the seconds of a verified run of NPB."""
    block = parse.read_block("cg", text)
    if block.verification != "SUCCESSFUL" or block.seconds is None:
        raise SystemExit(f"cg: verification {block.verification}")
    return block.seconds


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
