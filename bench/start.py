"""What the plugin costs a job's start: `srun true` with it and without it.

Throwaway clusters, which differ only in the plugin, run jobs in turn, so that other load of the
machine affects all; the plugin's with and without the kernel's counts (as root, if the kernel
supports them). slurmd loads the program that counts, and keeps it loaded. The peer is Slurm itself;
--before adds the plugin of another checkout. On a busy machine the minimum is more reliable than
the median. Budget (DESIGN): 3 ms on the median.

Last line: JSON with plain_ms, plugin_ms, added_ms (medians; milliseconds), added_paired_ms with its
95 % interval (added_low_ms, added_high_ms), added_least_ms, n.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import slurm_arms as arms
from bootstrap_interval import interval_of_the_median

from steelyard.analysis.base.errors import SteelyardError
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster import cluster

REPEAT, WARM_UP, BUDGET_MS = 60, 5, 3.0


def srun_ms(slurm: cluster.Cluster) -> float:
    """Return the milliseconds of one `srun true`."""
    begin = time.monotonic()
    subprocess.run(["srun", "-n1", "true"], env=slurm.environment(), check=True)
    return (time.monotonic() - begin) * 1e3


def in_turn(names: Sequence[str], number: int) -> list[str]:
    """Return the order of a round, in which the first one alternates."""
    first = number % len(names)
    return [*names[first:], *names[:first]]


def measure(folder: Path, before: Path | None, repeat: int) -> dict[str, list[float]]:
    """Return milliseconds of each start, by arm."""
    with arms.up(folder, before, uncounted=True) as clusters:
        names = list(clusters)
        times: dict[str, list[float]] = {name: [] for name in names}
        for number in range(WARM_UP + repeat):
            for name in in_turn(names, number):
                times[name].append(srun_ms(clusters[name]))
    return {name: found[WARM_UP:] for name, found in times.items()}


def figures_of(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return medians, minima, and differences to plain Slurm."""
    found: dict[str, float] = {}
    for name, values in times.items():
        found[f"{name}_ms"] = statistics.median(values)
        found[f"{name}_least_ms"] = min(values)
    for name in times.keys() - {arms.PLAIN}:
        added = "added" if name == arms.OURS else f"{name}_added"
        pairs = [a - b for a, b in zip(times[name], times[arms.PLAIN], strict=True)]
        found[f"{added}_ms"] = found[f"{name}_ms"] - found[f"{arms.PLAIN}_ms"]
        found[f"{added}_paired_ms"] = statistics.median(pairs)
        found[f"{added}_low_ms"], found[f"{added}_high_ms"] = interval_of_the_median(pairs)
        found[f"{added}_least_ms"] = found[f"{name}_least_ms"] - found[f"{arms.PLAIN}_least_ms"]
    return {name: round(value, 2) for name, value in found.items()}


def main() -> int:
    """Measure and print; without Slurm, print one line and return 3."""
    args = arms.parser(__doc__ or "", REPEAT).parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            times = measure(Path(folder), args.before, args.repeat)
    except SteelyardError as error:
        print(f"bench start: {error}", file=sys.stderr)
        return 3
    figures = figures_of(times)
    print(f"{'srun true':<16} {'median':>8} {'least':>8}  ms, n = {args.repeat} each, interleaved")
    for name, values in times.items():
        print(f"{name:<16} {statistics.median(values):>8.1f} {min(values):>8.1f}")
    print(f"added {figures['added_ms']:+.1f} ms (of pairs {figures['added_paired_ms']:+.1f}, 95 % "
          f"interval {figures['added_low_ms']:+.1f} ... {figures['added_high_ms']:+.1f}; of the least "
          f"{figures['added_least_ms']:+.1f}); budget {BUDGET_MS:g} ms; "
          f"load average {os.getloadavg()[0]:.1f}")  # fmt: skip
    print(json.dumps({**figures, "n": args.repeat}))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
