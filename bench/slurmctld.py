"""What the plugin costs slurmctld: CPU time, lines and bytes of its log, and RPCs per job.

Throwaway clusters, which differ only in the plugin, get the same jobs in turn: batch jobs, batch
jobs with a tag, srun alone. CPU time is that of the process, including threads that ended. The log
shows when jobs end, so that no query adds to the cost. The peer is Slurm itself; --before adds the
plugin of another checkout. CPU time: the median of the rounds, and the minimum.

Last line: JSON; ratio: of slurmctld's CPU per batch job, with the plugin to without.
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import slurm_arms as arms

from steelyard.analysis.base.errors import SteelyardError
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster.cluster import Cluster

REPEAT, JOBS, WARM_UP, LIMIT_S, SETTLE_S = 5, 20, 3, 300.0, 0.5
KINDS = {
    "batch": ("sbatch", "-o", "/dev/null", "--wrap", "true"),
    "tagged": ("sbatch", "-o", "/dev/null", "--wrap", "true", "--tag=input=small"),
    "srun": ("srun", "-Q", "true"),
}
UPDATE = "_slurm_rpc_update_job: complete"


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of slurmctld per job."""

    cpu_ms: float
    log_bytes: float
    log_lines: float
    updates: float
    errors: float


def cpu_s(slurm: Cluster) -> float:
    """Return slurmctld's CPU time in s, with threads that ended (clock_getcpuclockid(3))."""
    (pid,) = (daemon.pid for daemon in slurm.state.daemons if daemon.name == "slurmctld")
    return time.clock_gettime((~pid << 3) | 2)


def log_of(slurm: Cluster) -> Path:
    return slurm.dir / "log" / "slurmctld.log"


def run(slurm: Cluster, argv: Sequence[str], jobs: int) -> Cost:
    """Submit jobs one after another, and wait until slurmctld is idle."""
    before, begin = cpu_s(slurm), log_of(slurm).stat().st_size
    for _ in range(jobs):
        subprocess.run(argv, env=slurm.environment(), cwd="/", check=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
    text = wait_done(slurm, begin, jobs)
    used = cpu_s(slurm) - before
    return Cost(
        used * 1e3 / jobs, len(text) / jobs, text.count("\n") / jobs, text.count(UPDATE) / jobs,
        len(re.findall(r"\] error: |Job has already finished", text)) / jobs,
    )  # fmt: skip


def wait_done(slurm: Cluster, begin: int, jobs: int) -> str:
    """Return the new lines of the log when `jobs` jobs have ended."""
    end = time.monotonic() + LIMIT_S
    while True:
        text = log_of(slurm).read_bytes()[begin:].decode()
        if len(re.findall(r"_job_complete: JobId=\d+ done", text)) >= jobs:
            time.sleep(SETTLE_S)
            return log_of(slurm).read_bytes()[begin:].decode()
        if time.monotonic() > end:
            raise SystemExit(f"bench slurmctld: not over within {LIMIT_S:.0f} s")
        time.sleep(0.1)


def argv_of(name: str, kind: str) -> list[str]:
    """Return a command line; plain Slurm has no tags, so that its jobs have none."""
    return [word for word in KINDS[kind] if name != arms.PLAIN or not word.startswith("--tag")]


def measure(
    folder: Path, before: Path | None, repeat: int, jobs: int
) -> dict[str, dict[str, list[Cost]]]:
    """Return one cost per round, by kind and arm, in turns."""
    found: dict[str, dict[str, list[Cost]]] = {}
    with arms.up(folder, before) as clusters:
        for number in range(1 + repeat):  # the first one is a warm-up
            for kind in KINDS:
                for name, slurm in clusters.items():
                    cost = run(slurm, argv_of(name, kind), jobs if number else WARM_UP)
                    if number:
                        found.setdefault(kind, {}).setdefault(name, []).append(cost)
    return found


def figures_of(found: Mapping[str, Mapping[str, Sequence[Cost]]]) -> dict[str, float]:
    """Return KIND_ARM_FIGURE: medians of the rounds."""
    figures: dict[str, float] = {}
    for kind, by_arm in found.items():
        for name, costs in by_arm.items():
            for what in Cost.__slots__:
                value = statistics.median(getattr(cost, what) for cost in costs)
                figures[f"{kind}_{name}_{what}"] = round(value, 2)
            figures[f"{kind}_{name}_cpu_least_ms"] = round(min(c.cpu_ms for c in costs), 2)
    return figures


def show(found: Mapping[str, Mapping[str, Sequence[Cost]]], figures: Mapping[str, float]) -> None:
    """Print the table."""
    print(f"{'a job':<8} {'':<8} {'CPU ms':>7} {'least':>6} {'bytes of log':>13} {'lines':>6} "
          f"{'updates':>8} {'errors':>7}")  # fmt: skip
    for kind, by_arm in found.items():
        for name in by_arm:
            values = (figures[f"{kind}_{name}_{what}"] for what in (
                "cpu_ms", "cpu_least_ms", "log_bytes", "log_lines", "updates", "errors"))  # fmt: skip
            print("{:<8} {:<8} {:>7.2f} {:>6.2f} {:>13.1f} {:>6.2f} {:>8.2f} {:>7.2f}".format(
                kind, name, *values))  # fmt: skip


def main() -> int:
    """Measure and print; without Slurm, print one line and return 3."""
    parser = arms.parser(__doc__ or "", REPEAT)
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"of each kind in a round ({JOBS})")
    args = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            found = measure(Path(folder), args.before, args.repeat, args.jobs)
    except SteelyardError as error:
        print(f"bench slurmctld: {error}", file=sys.stderr)
        return 3
    figures = figures_of(found)
    show(found, figures)
    print(f"{args.repeat} rounds of {args.jobs} jobs of each kind; load {os.getloadavg()[0]:.1f}")
    ratio = figures["batch_plugin_cpu_ms"] / figures["batch_plain_cpu_ms"]
    print(
        json.dumps({**figures, "ratio": round(ratio, 3), "rounds": args.repeat, "jobs": args.jobs})
    )
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
