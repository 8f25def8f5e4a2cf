"""What the plugin adds to the end of a job on a hundred nodes, and of a hundred jobs at once.

Two throwaway Slurms, which differ only in the plugin, have a hundred nodes each. All nodes are this
machine (`slurmd -N`), so that every node's work is on the same few processors; a cluster has a
machine for each. They take turns, in an order that alternates between rounds, with `srun -N100
sleep 1`, and with an array of a hundred jobs of `sleep 1`, one per node. A time is from the
submission until squeue shows no job; for srun also until it has ended. slurmctld's CPU time is of
the same period (and includes squeue, twice per second). The peer is Slurm itself; --before adds the
plugin of another checkout. At the end each job must have a complete record of each node.

Last line: JSON with srun_ARM_s, gone_ARM_s, jobs_ARM_s (medians), srun_ARM_cpu_ms (of slurmctld,
per job), jobs_ARM_cpu_ms (per job of the hundred), srun_added_s, gone_added_s, jobs_added_s
(medians of pairs), records, complete, expected, rounds, load. ARM: plain, plugin.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import slurm_arms as arms
from slurmctld import cpu_s
from soak_load import ask, wait_empty

from steelyard.analysis.base.errors import SteelyardError
from steelyard.analysis.sources.records import RecordError, read_record
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster.cluster import Cluster

NODES, ROUNDS, SETTLED_S = 100, 3, 60.0
FIGURES = ("srun_s", "gone_s", "srun_cpu_ms", "jobs_s", "jobs_cpu_ms")

Found = dict[str, list[dict[str, float]]]  # by arm, one per round


def run_srun(slurm: Cluster, nodes: int) -> dict[str, float]:
    """Run one job on all nodes."""
    begin_s, cpu_before_s = time.monotonic(), cpu_s(slurm)
    argv = ["srun", "-Q", f"-N{nodes}", "sleep", "1"]
    subprocess.run(argv, env=slurm.environment(), cwd="/", check=True)
    ended_s = time.monotonic()
    wait_empty(slurm)
    gone_s, used_s = time.monotonic() - begin_s, cpu_s(slurm) - cpu_before_s
    return {"srun_s": ended_s - begin_s, "gone_s": gone_s, "srun_cpu_ms": used_s * 1e3}


def run_jobs(slurm: Cluster, nodes: int) -> dict[str, float]:
    """Run a job on each node, all at the same time."""
    begin_s, cpu_before_s = time.monotonic(), cpu_s(slurm)
    ask(slurm, "sbatch", "-o", "/dev/null", f"--array=1-{nodes}", "--wrap", "sleep 1")
    wait_empty(slurm)
    used_s = cpu_s(slurm) - cpu_before_s
    return {"jobs_s": time.monotonic() - begin_s, "jobs_cpu_ms": used_s * 1e3 / nodes}


def measure(
    folder: Path, before: Path | None, nodes: int, rounds: int
) -> tuple[Found, tuple[int, int]]:
    """Return the figures of each round, by arm, and the numbers of all and of complete records.

    The records are those of this checkout's plugin.
    """
    found: Found = {}
    with arms.up(folder, before, nodes=nodes) as clusters:
        for number in range(rounds + 1):  # the first one is a warm-up
            for name in list(clusters)[:: 1 if number % 2 else -1]:
                figures = run_srun(clusters[name], nodes) | run_jobs(clusters[name], nodes)
                if number:
                    found.setdefault(name, []).append(figures)
        records = count_records(clusters[arms.OURS].record_dir, 2 * nodes * (rounds + 1))
    return found, records


def count_records(folder: Path, expected: int) -> tuple[int, int]:
    """Count all records, and complete ones; samplers write the last ones when they end."""
    end_s = time.monotonic() + SETTLED_S
    while True:
        paths = list(folder.rglob("*.json"))
        whys = [why for path in paths if (why := why_incomplete(path))]
        if len(paths) - len(whys) >= expected or time.monotonic() > end_s:
            for why, count in Counter(re.sub(r"[\d.]+", "N", why) for why in whys).items():
                print(f"{count} records incomplete: {why}", file=sys.stderr)
            return len(paths), len(paths) - len(whys)
        time.sleep(1)


def why_incomplete(path: Path) -> str | None:
    """Return why a record is incomplete; None: it is complete."""
    try:
        record = read_record(path)
    except RecordError as error:
        return str(error)
    return None if record.complete else str(record.get("incomplete_reason"))


def figures_of(found: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    """Return medians of the rounds, and of the pairs' differences."""
    figures: dict[str, float] = {}
    for name, rounds in found.items():
        for what in FIGURES:
            kind, _, unit = what.partition("_")
            median = statistics.median(one[what] for one in rounds)
            figures[f"{kind}_{name}_{unit}"] = round(median, 3)
    for what in ("srun_s", "gone_s", "jobs_s"):
        pairs = zip(found[arms.OURS], found[arms.PLAIN], strict=True)
        added = statistics.median(ours[what] - plain[what] for ours, plain in pairs)
        figures[f"{what.removesuffix('_s')}_added_s"] = round(added, 3)
    return figures


def show(found: Mapping[str, Sequence[Mapping[str, float]]], nodes: int) -> None:
    """Print the table: medians, with minimum and maximum."""
    words = {"srun_s": f"srun -N{nodes} sleep 1, s", "gone_s": "  until no job is left, s",
             "srun_cpu_ms": "  slurmctld's CPU, ms", "jobs_s": f"{nodes} jobs of sleep 1, s",
             "jobs_cpu_ms": "  slurmctld's CPU a job, ms"}  # fmt: skip
    print(f"{'':<28}" + "".join(f"{name:>24}" for name in found))
    for what in FIGURES:
        cells = []
        for rounds in found.values():
            values = sorted(one[what] for one in rounds)
            cells.append(f"{statistics.median(values):.2f} ({values[0]:.2f} to {values[-1]:.2f})")
        print(f"{words[what]:<28}" + "".join(f"{cell:>24}" for cell in cells))


def main() -> int:
    """Measure and print; without Slurm, print one line and return 3; after a missing record, return
    1.
    """
    parser = arms.parser(__doc__ or "", ROUNDS)
    parser.add_argument("--nodes", type=int, default=NODES, help=f"and jobs at once ({NODES})")
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            found, (records, complete) = measure(Path(folder), args.before, args.nodes, args.repeat)
    except SteelyardError as error:
        print(f"bench nodes: {error}", file=sys.stderr)
        return 3
    show(found, args.nodes)
    expected = 2 * args.nodes * (args.repeat + 1)
    load = round(os.getloadavg()[0], 1)
    print(
        f"{complete} of {expected} records complete, {records} in all; {args.repeat} rounds; load {load}"
    )
    print(json.dumps({**figures_of(found), "records": records, "complete": complete,
                      "expected": expected, "rounds": args.repeat, "load": load}))  # fmt: skip
    return 0 if complete == expected else 1


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
