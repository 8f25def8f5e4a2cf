"""What one sample costs, against Slurm's own jobacct_gather/linux on the same job at the same time.

A throwaway Slurm runs jobs of 1, 10, 200 and 2,000 processes that wake, write and sleep. While
slurmstepd polls such a job every second, our samplers measure it, one after another: 1, 10 and 100
times per second, from each source that this machine has: its processes, its cgroup, and counts of
the kernel (BPF). Above 2 Hz a timer in the kernel takes the latter samples; its CPU time, which it
measures itself, is included in the cost of a sample. Then the job runs again without polling, and
what slurmstepd uses there is subtracted. The samplers read four simulated RAPL zones on a tmpfs,
and everything else of this machine, through bind mounts in their own mount namespace, which needs
root.

A sample taken ten times per second runs with cold caches. Their effect on this machine is measured
by a small C program (sampler_floor.c) on the same job: the cost of waking ten times per second and
doing nothing, and of only reading the files that a sample reads. No sampler that reads those files
can cost less. Processes that others start on the machine cost a sample some 1 to 20 µs each:
measure on an idle machine; the load is printed.

The kernel's counts are read once per second, however many samples its timer takes. The floor of
that source is to wake once per second and to read the node's counters, divided by ten samples.

At the end 4,000 processes end at the same time, with a sampler at 10 Hz: how much more CPU time it
takes than in a usual second, and how late its samples are.

It prints how long it will take, and ends within --minutes (4). Rounds are repeated until all ratios
at 10 Hz are known to 10 % (95 %, Student's t on the logarithms of the rounds' ratios), at least
three and at most --rounds of them, if time allows. A job that would take too long is omitted, so
that the last round may have only the smaller ones. The heading has the number of rounds. Other
rates than 10 Hz are measured on request, in the first round: `--rates 10,1,100`. `--processes 1`
measures one job only. --quick: one round.

Last line: JSON with sample_us, poll_us, ratio and its interval by way, processes and rate.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import sampler_job as ours

from steelyard.analysis.stats.basics import student_quantile
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig

PROCESSES, RATES_HZ = (1, 10, 200, 2000), (10, 1, 100)  # in this order
PERIOD_MS = {1: 200, 10: 200, 200: 200, 2000: 2000}  # of a process of the job
SECONDS = {1: 3, 10: 2, 100: 1}  # of a measurement of a sampler, by rate
WAYS = 3  # at most, and as many floors
START_S, JOBS_S, ENDS_S, CLUSTER_S = (
    0.9,
    2.0,
    35.0,
    6.0,
)  # a sampler; two jobs; the last section; Slurm
ROUNDS, LEAST_ROUNDS, WIDTH, MINUTES = 8, 3, 0.10, 4.0
MAIN_HZ, OTHER_ROUNDS = 10, 1  # other rates only in so many rounds
BUDGET_KB = 2048


@dataclass(frozen=True)
class Cell:
    """One way to sample one job."""

    way: str
    processes: int
    rate_hz: int


@dataclass
class Found:
    """Figures of all rounds: costs in µs, memory in kB, ratios to Slurm's poll of that round."""

    sample_us: dict[Cell, list[float]] = field(default_factory=lambda: defaultdict(list))
    timer_us: dict[Cell, list[float]] = field(default_factory=lambda: defaultdict(list))
    ratio: dict[Cell, list[float]] = field(default_factory=lambda: defaultdict(list))
    memory_kb: dict[Cell, int] = field(default_factory=dict)
    source: dict[Cell, str] = field(default_factory=dict)
    poll_us: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    floor_us: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))
    load: list[float] = field(default_factory=list)
    ends: list[dict[str, object]] = field(default_factory=list)


@dataclass(frozen=True)
class Bench:
    slurm: cluster.Cluster
    base: Path
    end_s: float  # by time.monotonic()
    processes: tuple[int, ...] = PROCESSES
    rates_hz: tuple[int, ...] = (MAIN_HZ,)

    def rates_of(self, number: int) -> tuple[int, ...]:
        """Return the rates of a round, of which the first is 0."""
        main = tuple(rate for rate in self.rates_hz if rate == MAIN_HZ)
        return self.rates_hz if number < OTHER_ROUNDS or not main else main

    def job_s(self, number: int) -> float:
        """Return the seconds of one job of a round on an idle machine."""
        looks = sum(SECONDS[rate] + START_S + 1 / rate for rate in self.rates_of(number))
        return JOBS_S + WAYS * (looks + floor_s())

    def planned_s(self, most: int) -> tuple[float, float]:
        """Return the least and the most seconds of all rounds and the last section."""
        jobs = len(self.processes)
        rounds = [jobs * self.job_s(number) for number in range(most)]
        rest = CLUSTER_S + ENDS_S
        least = min(len(rounds), LEAST_ROUNDS)
        return rest + sum(rounds[:least]), rest + sum(rounds)


@contextmanager
def slurm_job(
    bench: Bench, processes: int, interval_s: int, made: ours.Group | None
) -> Iterator[int]:
    """Run a job for the `with` statement; yield its slurmstepd's pid."""
    load = str(ours.compiled(bench.base, "sampler_load"))
    job = subprocess.Popen(
        ["srun", "-n1", f"--acctg-freq=task={interval_s}", load, str(processes),
         str(PERIOD_MS[processes]), "600", *(made.procs if made else ())],
        env=bench.slurm.environment(), cwd="/", stderr=subprocess.DEVNULL,
    )  # fmt: skip
    first = 0
    try:
        ours.wait_until(lambda: len(ours.job_processes()) == processes, 60)
        (first,) = (
            path
            for path in ours.job_processes()
            if ours.read_name(ours.parent_of(path)) == "slurmstepd"
        )
        yield ours.parent_of(first)
    finally:
        if first:
            os.kill(int(first.name), 9)  # it ends the others
        job.wait(60)
        ours.wait_until(lambda: not ours.job_processes(), 60)


def measure_ways(
    bench: Bench, found: Found, processes: int, rates: Sequence[int], made: ours.Group | None
) -> None:
    """Measure all ways at these rates on one job, while Slurm polls it."""
    costs: dict[Cell, ours.Cost] = {}
    with slurm_job(bench, processes, 1, made) as stepd:
        begin, polled = time.monotonic(), ours.cpu_ns(stepd)
        for rate in rates:
            for way in ours.ways(made is not None):
                sampler = ours.start(bench.base, way, rate, stepd, made)
                time.sleep(0.5 + 1 / rate)  # after the start and the first sample
                costs[Cell(way.name, processes, rate)] = ours.cost(sampler, SECONDS[rate])
        polled = ours.cpu_ns(stepd) - polled
        took = time.monotonic() - begin
    with slurm_job(bench, processes, 0, made) as stepd:
        idle = ours.cpu_ns(stepd)
        begin = time.monotonic()
        for name, files in needed_readings(bench.base, ours.job_processes(), made).items():
            wakes_hz = 1 if name == "kernel" else MAIN_HZ
            found.floor_us[name, processes].append(floor_us(bench.base, files, wakes_hz))
        idle_share = (ours.cpu_ns(stepd) - idle) / (time.monotonic() - begin)
    poll = (polled / took - idle_share) / 1e3
    found.poll_us[processes].append(poll)
    for cell, cost in costs.items():
        found.sample_us[cell].append(cost.sample_us)
        found.timer_us[cell].append(cost.timer_us)
        found.ratio[cell].append(poll / cost.sample_us)
        found.source[cell] = cost.source
        found.memory_kb[cell] = max(found.memory_kb.get(cell, 0), cost.memory_kb)


def uplink() -> str:
    """Return the device of the default route, else any but `lo`."""
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    devices = [route[0] for route in routes if route[1] == "00000000"]
    return (devices or sorted({path.name for path in Path("/sys/class/net").iterdir()} - {"lo"}))[0]


def needed_readings(
    base: Path, job: Sequence[Path], made: ours.Group | None
) -> dict[str, list[str]]:
    """Return the files that a sample of this job reads, by way.

    Of processes: the clock of each, I/O of 32 of them, memory of 16. Of a cgroup: its two counters.
    The kernel's counts are in memory.
    """
    statistics_of = Path("/sys/class/net") / uplink() / "statistics"
    always = [
        *map(str, sorted((base / "tree/sys/class/powercap").glob("*/energy_uj"))),
        *(str(statistics_of / name) for name in ("rx_bytes", "tx_bytes")),
    ]
    of_processes = [
        "/proc/loadavg",
        *(f"clock:{path.name}" for path in job),
        *(str(path / "stat") for path in job[:16]),
        *(str(path / "io") for path in job[:32]),
    ]
    found = {"wake": [], "processes": always + of_processes, "kernel": always}
    if made:
        names = ("cpuacct.usage", "cpu.stat", "memory.stat")
        files = [folder / name for folder in made.folders for name in names]
        found["cgroup"] = always + [str(path) for path in files if path.exists()]
    return found


def floor_s() -> float:
    """Return the seconds of one measurement of a floor, with its start."""
    return 0.5 + SECONDS[MAIN_HZ] / 2


def floor_us(base: Path, readings: list[str], wakes_hz: int) -> float:
    """Return µs of CPU per sample at 10 Hz for waking at a rate and taking readings, if any."""
    program = ours.compiled(base, "sampler_floor")
    process = subprocess.Popen([program, str(wakes_hz), *readings])
    seconds = SECONDS[MAIN_HZ] / 2
    try:
        time.sleep(0.5)
        before = ours.cpu_ns(process.pid)
        time.sleep(seconds)
        return (ours.cpu_ns(process.pid) - before) / 1e3 / (MAIN_HZ * seconds)
    finally:
        process.kill()
        process.wait()


def interval(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the mean ratio, and the factor to both ends of its 95 % interval; inf: unknown."""
    logs = [math.log(max(ratio, 1e-9)) for ratio in ratios]
    mean = math.exp(statistics.fmean(logs))
    if len(logs) < 2:
        return mean, math.inf
    half = student_quantile(0.975, len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
    return mean, math.exp(half)


def is_known(found: Found) -> bool:
    """Whether all ratios at 10 Hz, or all others without that rate, are known to WIDTH."""
    main = [ratios for cell, ratios in found.ratio.items() if cell.rate_hz == MAIN_HZ]
    return all(interval(ratios)[1] <= 1 + WIDTH for ratios in main or found.ratio.values())


def rounds(bench: Bench, most: int) -> Found:
    """Measure rounds until all ratios are known, or the time is over."""
    found, slowness = Found(), 1.0
    for number in range(most):
        found.load.append(ours.load_average())
        for processes in bench.processes:
            begin_s, planned_s = time.monotonic(), bench.job_s(number)
            if found.sample_us and begin_s + slowness * (planned_s + ENDS_S) > bench.end_s:
                print(f"round {number + 1}: no time for {processes} processes and what follows")
                if processes == bench.processes[0]:
                    found.load.pop()  # not a round
                break
            with ours.group(f"steelyard-bench-{os.getpid()}") as made:
                measure_ways(bench, found, processes, bench.rates_of(number), made)
            slowness = max(slowness, (time.monotonic() - begin_s) / planned_s)
        else:
            print(f"round {number + 1}: load average {ours.load_average():.1f}", flush=True)
            if number + 1 < LEAST_ROUNDS or not is_known(found):
                continue
        break
    found.load.append(ours.load_average())
    if time.monotonic() + slowness * ENDS_S <= bench.end_s:
        found.ends = ours.in_each_way(bench.base, MAIN_HZ)
    else:
        print(f"no time for {ours.PROCESSES} processes that end at once: say --minutes")
    return found


def row(found: Found, cell: Cell) -> dict[str, object]:
    ratio, factor = interval(found.ratio[cell])
    floor = found.floor_us.get((cell.way, cell.processes)) if cell.rate_hz == 10 else None
    known = math.isfinite(factor)
    return {
        "way": cell.way,
        "source": found.source[cell],
        "processes": cell.processes,
        "rate_hz": cell.rate_hz,
        "sample_us": round(statistics.median(found.sample_us[cell]), 1),
        "timer_us": round(statistics.median(found.timer_us[cell]), 1),
        "floor_us": round(statistics.median(floor), 1) if floor else None,
        "poll_us": round(statistics.median(found.poll_us[cell.processes])),
        "ratio": round(ratio, 1),
        "ratio_low": round(ratio / factor, 1) if known else None,
        "ratio_high": round(ratio * factor, 1) if known else None,
        "memory_kb": found.memory_kb[cell],
    }


def report(found: Found) -> dict[str, object]:
    """Print the table, as in docs/sampler.md; return the figures."""
    rows = [row(found, cell) for cell in sorted(
        found.sample_us, key=lambda cell: (cell.processes, cell.rate_hz, cell.way))]  # fmt: skip
    print(f"{len(found.load) - 1} rounds (at least {LEAST_ROUNDS} unless time was up):")
    print("| processes | rate | from | a sample | of it the timer | only to read the same | Slurm, a poll | ratio "
          "| its 95 % interval | memory |")  # fmt: skip
    print("|" + " --- |" * 10)
    for one in rows:
        floor = f"{one['floor_us']} µs" if one["floor_us"] is not None else ""
        known = one["ratio_low"] is not None
        between = f"{one['ratio_low']}–{one['ratio_high']}" if known else "one round"
        print(f"| {one['processes']} | {one['rate_hz']} Hz | {one['way']} ({one['source']}) | {one['sample_us']} µs "
              f"| {one['timer_us']} µs | {floor} | {one['poll_us']} µs | {one['ratio']} | {between} "
              f"| {one['memory_kb']} kB |")  # fmt: skip
    wake = statistics.median(us for (name, _), many in found.floor_us.items() if name == "wake"
                             for us in many)  # fmt: skip
    count = len(found.load) - 1
    print(f"{count} rounds; only to wake: {wake:.1f} µs at 10 Hz; load average "
          f"{min(found.load):.1f} to {max(found.load):.1f}, its own part among it; memory's budget "
          f"{BUDGET_KB} kB")  # fmt: skip
    ours.report(found.ends)
    return {"rows": rows, "ends_at_once": found.ends, "wake_us": round(wake, 1), "rounds": count,
            "load": [round(load, 1) for load in found.load]}  # fmt: skip


def run(base: Path, args: argparse.Namespace) -> dict[str, object]:
    most = 1 if args.quick else args.rounds
    end_s = time.monotonic() + 60 * args.minutes
    ours.make_tree(base / "tree")
    config = ClusterConfig(
        dir=base / "slurm", physical_nodes=1, virtual_nodes=0, gather_interval_s=1, contain=False
    )
    with cluster.start_cluster(config) as slurm:
        bench = Bench(slurm, base, end_s, args.processes, args.rates)
        least_s, most_s = bench.planned_s(most)
        print(
            f"this takes {min(least_s / 60, args.minutes):.1f} to "
            f"{min(most_s / 60, args.minutes):.1f} minutes",
            flush=True,
        )
        return report(rounds(bench, most))


def some_of(known: Sequence[int]) -> Callable[[str], tuple[int, ...]]:
    """Return a parser of comma-separated numbers, which sorts them as in `known`."""

    def read_some(text: str) -> tuple[int, ...]:
        asked = {int(word) for word in text.split(",")}
        if not asked <= set(known):
            raise argparse.ArgumentTypeError(
                f"expected some of {', '.join(map(str, known))}, found {text}"
            )
        return tuple(one for one in known if one in asked)

    return read_some


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="one round")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"at most ({ROUNDS})")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"at most ({MINUTES:g})")
    parser.add_argument("--processes", type=some_of(PROCESSES), default=PROCESSES, metavar="N,…",
                        help="jobs of so many only")  # fmt: skip
    parser.add_argument("--rates", type=some_of(RATES_HZ), default=(MAIN_HZ,), metavar="HZ,…",
                        help=f"these rates ({MAIN_HZ}; known: {', '.join(map(str, RATES_HZ))})")  # fmt: skip
    args = parser.parse_args()
    if os.geteuid() != 0:
        print("bench/sampler: needs root, for mounts of its own", file=sys.stderr)
        return 3
    base = Path(tempfile.mkdtemp(prefix="sybench.", dir="/dev/shm"))
    base.chmod(0o755)
    try:
        figures = run(base, args)
    finally:
        ours.end_started()
        shutil.rmtree(base, ignore_errors=True)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
