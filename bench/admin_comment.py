"""What AdminComment costs a batch job's end: from the script's last command to slurmctld's record.

One throwaway cluster has the plugin; plugstack.conf sets `admin_comment=yes` and `no` in turn, for
one job each, so that other load of the machine affects both. Each pair has the opposite order of
the previous one. The script's end is measured by its own clock, slurmctld's by its log
(milliseconds). --before adds the plugin of another checkout, with its comments. The peer is the
plugin without AdminComment. Budget: 10 ms on the median.

Last line: JSON with without_ms, with_ms (medians; milliseconds), added_ms (median of pairs) with
its 95 % interval (added_low_ms, added_high_ms), n, written (of the jobs that should have a
comment), load; with --before also before_ms, before_added_ms, before_low_ms, before_high_ms.
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
from datetime import datetime
from pathlib import Path

import slurm_arms as arms
from bootstrap_interval import interval_of_the_median

from steelyard.analysis.base.errors import SteelyardError
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster.cluster import Cluster

REPEAT, WARM_UP, LIMIT_S, BUDGET_MS = 60, 3, 60.0, 10.0
WITH, WITHOUT = "with", "without"


def switch(slurm: Cluster, arm: str) -> None:
    """Set whether jobs that begin from now on have a comment."""
    path = slurm.dir / "etc" / "plugstack.conf"
    line = re.sub(r" admin_comment=\w+", "", path.read_text())
    path.write_text(line.replace("\n", f" admin_comment={'no' if arm == WITHOUT else 'yes'}\n"))


def log_of(slurm: Cluster) -> str:
    return (slurm.dir / "log" / "slurmctld.log").read_text()


def end_ms(slurm: Cluster, folder: Path) -> tuple[float, bool]:
    """Return the milliseconds of one job's end, and whether slurmctld received its comment."""
    output = folder / "said"
    argv = ["sbatch", "--parsable", "-o", str(output), "--wrap", "sleep 0.3; date +%s%N"]
    job = subprocess.run(
        argv, env=slurm.environment(), check=True, capture_output=True, text=True
    ).stdout.strip()
    pattern = re.compile(rf"\[([^]]+)\] _job_complete: JobId={job} WEXITSTATUS 0\n")
    until_s = time.monotonic() + LIMIT_S
    while not (found := pattern.search(log := log_of(slurm))):
        if time.monotonic() > until_s:
            raise SteelyardError(f"job {job} has not ended within {LIMIT_S:.0f} s")
        time.sleep(0.05)
    ended_s = datetime.fromisoformat(found[1]).timestamp()
    return ended_s * 1e3 - int(output.read_text()) / 1e6, bool(
        re.search(rf"setting admin_comment to .* for JobId={job}\n", log)
    )


def measure(folder: Path, before: Path | None, repeat: int) -> tuple[dict[str, list[float]], int]:
    """Return milliseconds of each end, by arm, and the number of comments of the first arm."""
    with arms.up(folder, before) as clusters:
        places = {WITH: clusters[arms.OURS], WITHOUT: clusters[arms.OURS]}
        if before is not None:
            places[arms.BEFORE] = clusters[arms.BEFORE]
        times: dict[str, list[float]] = {name: [] for name in places}
        written = 0
        for number in range(WARM_UP + repeat):
            for name in list(places)[:: 1 if number % 2 else -1]:
                switch(places[name], name)
                took_ms, is_written = end_ms(places[name], folder)
                times[name].append(took_ms)
                written += is_written and name == WITH and number >= WARM_UP
    return {name: found[WARM_UP:] for name, found in times.items()}, written


def figures_of(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return medians, and the difference to the end without a comment."""
    found = {f"{name}_ms": statistics.median(values) for name, values in times.items()}
    for name in times.keys() - {WITHOUT}:
        added = "added" if name == WITH else name
        pairs = [a - b for a, b in zip(times[name], times[WITHOUT], strict=True)]
        median = "added_ms" if name == WITH else f"{name}_added_ms"
        found[median] = statistics.median(pairs)
        found[f"{added}_low_ms"], found[f"{added}_high_ms"] = interval_of_the_median(pairs)
    return {name: round(value, 2) for name, value in found.items()}


def main() -> int:
    """Measure and print; without Slurm, print one line and return 3."""
    args = arms.parser(__doc__ or "", REPEAT).parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            times, written = measure(Path(folder), args.before, args.repeat)
    except SteelyardError as error:
        print(f"bench end: {error}", file=sys.stderr)
        return 3
    figures = figures_of(times)
    print(f"{'job end':<10} {'median':>8} {'least':>8}  ms, n = {args.repeat} each, interleaved")
    for name, values in times.items():
        print(f"{name:<10} {statistics.median(values):>8.1f} {min(values):>8.1f}")
    print(f"added {figures['added_ms']:+.1f} ms (95 % interval {figures['added_low_ms']:+.1f} ... "
          f"{figures['added_high_ms']:+.1f}); budget {BUDGET_MS:g} ms; {written} of {args.repeat} comments "
          f"written; load average {os.getloadavg()[0]:.1f}")  # fmt: skip
    print(json.dumps({**figures, "n": args.repeat, "written": written, "load": os.getloadavg()[0]}))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
