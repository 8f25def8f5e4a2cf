"""Thousands of jobs in a row: none harmed, no node drained, no record missing, no daemon that
grows.

A throwaway Slurm with accounting runs short jobs of every kind in rounds: tasks of an array, jobs
on two nodes, single ones with a tag, srun alone. Each writes a number of bytes that follows from
its id. After each round the memory and descriptors of slurmctld, slurmdbd and each slurmd (of more
than two nodes their sum) are recorded; at the end the accounting, each record, and leftovers are
checked. The peer is the same Slurm without the plugin, with one round. How many: --jobs, or
STEELYARD_JOBS (200; soak: 10,000).

A night of a cluster in fast motion: --nodes 100 --services 10 --jobs 50000. `--services S` runs the
commands that cron runs beside jobs (publish, collect --cluster, metrics, sweep) in turn, each S
seconds after the end of the previous one. At the end `top` must report every start of a job, and
again when all records are packed.

Last line: JSON. Exit code 1 if something is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import soak_checks as checks
import soak_cron
import soak_load as load

from steelyard.analysis.base.errors import SteelyardError
from steelyard.analysis.sources.sacct import Sacct
from steelyard.wrappers.base.programs import find_program
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig
from steelyard.wrappers.publish import publish

ROUND, FEWEST_ROUNDS = 500, 8
FEWEST_JOBS = 4 * FEWEST_ROUNDS
JUDGED_FROM = 10_000  # memory still grows until 3,500 jobs, also without the plugin
CPUS = 4  # jobs at a time on each of two nodes; on one of more nodes 1
DAY_S = 86400


@dataclass
class Looks:
    """Memory and descriptors of each daemon by number of jobs."""

    jobs: list[int] = field(default_factory=list)
    of: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def take(self, slurm: cluster.Cluster, jobs: int) -> None:
        self.jobs.append(jobs)
        for name, pair in checks.memory_and_files(slurm).items():
            self.of.setdefault(name, []).append(pair)


@dataclass
class Ran:
    """The time of a number of jobs, and the growth of the logs."""

    jobs: int
    seconds: float
    grown: Mapping[str, int]

    def a_job(self, log: str) -> float:
        return self.grown[log] / self.jobs


def rounds_of(jobs: int) -> list[int]:
    """Return 10,000 in rounds of 500; few jobs in eight rounds, so that a slope exists."""
    count = max(FEWEST_ROUNDS, -(-jobs // ROUND))
    return [jobs * (i + 1) // count - jobs * i // count for i in range(count)]


def run_rounds(
    slurm: cluster.Cluster, sizes: Sequence[int], *, tags: bool, looks: Looks, limit_s: float
) -> Ran:
    """Run all rounds; record memory and descriptors before and after each."""
    before, began, done = load.log_bytes(slurm), time.monotonic(), 0
    looks.take(slurm, 0)
    for number, size in enumerate(sizes):
        if time.monotonic() - began > limit_s:
            break
        seconds = load.run(slurm, size, str(number) if tags else "")
        done += size
        looks.take(slurm, done)
        memory = ", ".join(f"{n} {pairs[-1][0]}/{pairs[-1][1]}" for n, pairs in looks.of.items())
        print(f"{done:>7} jobs  {size / seconds:>5.1f} a second  {memory}", flush=True)
    elapsed = time.monotonic() - began
    after = load.log_bytes(slurm)
    return Ran(done, elapsed, {name: after[name] - before[name] for name in before})


def published(slurm: cluster.Cluster, jobs: int) -> int | None:
    """Run `steelyard publish` once; return how many comments it wrote. None: it is not built."""
    if find_program(publish.PROGRAM) is None:
        return None
    os.environ.update(slurm.variables())
    asked = publish.PublishRequest(DAY_S, [slurm.record_dir], most=max(jobs, 10_000))
    found = publish.find_comments(asked, Sacct(), time.time() + 2 * publish.SETTLED_S)
    publish.write_comments(found)
    return found.written


def verify(slurm: cluster.Cluster, jobs: int, at_first: set[Path]) -> dict[str, object]:
    """Check everything that must hold after the last job."""
    left = checks.wait_left(slurm, at_first)
    for path in checks.small_files(slurm) - at_first:
        print(f"left: {path}", file=sys.stderr)
    found = checks.accounted(slurm, jobs)
    faulty = checks.faulty_records(slurm.record_dir, found)
    for name, why in list(faulty.items())[:10]:
        print(f"record {name}: {why}", file=sys.stderr)
    filled = published(slurm, jobs)
    return {
        "missing": jobs - len({job.job_id for job in found}),
        "harmed": sum(job.harmed for job in found),
        "started_again": len(found) - len({job.job_id for job in found}),
        "drained": checks.drained(slurm),
        "records": sum(len(job.nodes) for job in found),
        "records_faulty": len(faulty),
        "comments_missed": checks.without_comment(found),
        "comments_filled": filled,
        "comments_missing": None
        if filled is None
        else checks.without_comment(checks.starts(slurm)),
        **{f"left_{name}": count for name, count in left.items()},
    }


def is_judged(name: str, what: str, jobs: int) -> bool:
    """Whether growth is a fault: not slurmctld's memory, which contains jobs of the last minutes.

    slurmctld runs no code of ours.
    """
    return jobs >= JUDGED_FROM and (name != "slurmctld" or what == "files")


def slopes(looks: Looks, jobs: int) -> tuple[dict[str, object], list[str]]:
    """Return each daemon's growth over all jobs with its interval, and the ones that grow."""
    figures: dict[str, object] = {}
    grown = []
    for name, pairs in looks.of.items():
        for index, what in enumerate(("kb", "files")):
            values = [pair[index] for pair in pairs]
            slope = checks.growth(looks.jobs, values)
            if slope is None:
                continue
            ends = [round(end * jobs, 1) for end in (slope.value, *checks.ends_of(slope))]
            figures[f"{name}_{what}"] = {"first": values[0], "last": values[-1],
                                         "growth": ends, "p": round(slope.p, 4)}  # fmt: skip
            flat = checks.is_flat(slope, values, jobs)
            print(f"{name:<10} {what:<5} {values[0]:>7} → {values[-1]:>7}, behind the warm-up "
                  f"{ends[0]:+} ({ends[1]:+} to {ends[2]:+}) over {jobs} jobs, p {slope.p:.3f}: "
                  f"{'flat' if flat else 'not flat'}")  # fmt: skip
            if is_judged(name, what, jobs) and not flat and slope.value > 0:
                grown.append(f"{name}_{what}")
    return figures, grown


def measure(folder: Path, args: argparse.Namespace) -> dict[str, object]:
    """Run the peer, then all jobs."""
    plugin, node_program = cluster.find_plugin()
    alike = {
        "physical_nodes": args.nodes,
        "virtual_nodes": 0,
        "cpus": CPUS if args.nodes <= 2 else 1,
    }
    sizes, limit_s = rounds_of(args.jobs), args.minutes * 60
    with cluster.start_cluster(ClusterConfig(dir=folder / "a", **alike)) as plain:
        load.set_up(plain)
        print("without the plugin; memory in kB / open descriptors")
        peer = run_rounds(plain, sizes[:1], tags=False, looks=Looks(), limit_s=limit_s)
    config = ClusterConfig(dir=folder / "b", plugin=plugin, node_program=node_program, **alike)
    with cluster.start_cluster(config) as slurm:
        load.set_up(slurm)
        print("with the plugin")
        at_first, looks = checks.small_files(slurm), Looks()
        with soak_cron.beside(slurm, args.services) as services:
            ours = run_rounds(slurm, sizes, tags=True, looks=looks, limit_s=limit_s)
            jobs = ours.jobs
            found = verify(slurm, jobs, at_first)
        if services:
            found |= soak_cron.check(services, jobs)
    memory, grown = slopes(looks, jobs)
    rates = {"jobs": jobs, "jobs_per_s": round(jobs / ours.seconds, 2),
             "plain_jobs_per_s": round(peer.jobs / peer.seconds, 2)}  # fmt: skip
    logs = {f"{name}_log_bytes": round(ours.a_job(name), 1) for name in ours.grown}
    plain_logs = {f"plain_{name}_log_bytes": round(peer.a_job(name), 1) for name in peer.grown}
    return {**rates, **found, **logs, **plain_logs, "grown": grown, "daemons": memory}


def faults(figures: Mapping[str, object]) -> list[str]:
    """Describe the figures that must be 0 or empty, and are not."""
    zero = ("missing", "harmed", "started_again", "drained", "records_faulty", "comments_missing")
    left = tuple(name for name in figures if name.startswith("left_"))
    empty = ("grown", "services_wrong", "sweep_failed")
    return [f"{name}: {figures[name]}" for name in (*zero, *left, *empty) if figures.get(name)]


def main() -> int:
    """Measure and print; without Slurm, print one line and return 3."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("STEELYARD_JOBS", "200")))
    parser.add_argument("--minutes", type=float, default=24 * 60, help="begin no round after that")
    parser.add_argument("--nodes", type=int, default=2, help="slurmd on this machine (2)")
    parser.add_argument(
        "--services", type=float, metavar="S", help="run cron's commands, S seconds apart"
    )
    args = parser.parse_args()
    jobs: int = args.jobs
    if jobs < FEWEST_JOBS:
        parser.error(f"--jobs: {FEWEST_JOBS} at least, so that each round has every kind")
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            figures = measure(Path(folder), args)
    except SteelyardError as error:
        print(f"bench jobs: {error}", file=sys.stderr)
        return 3
    wrong = faults(figures)
    print(f"{figures['jobs']} of {jobs} jobs, {figures['records']} records; load average {os.getloadavg()[0]:.1f}; "
          + ("; ".join(wrong) or "nothing harmed, missing or left"))  # fmt: skip
    print(json.dumps(figures))
    return 1 if wrong else 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
