"""What the plugin costs a job's start: `srun true` with it and without it.

Two throwaway clusters, alike but for the plugin, asked in turn, so that whatever else the machine
does hits both. The peer is Slurm itself. Budget (DESIGN): 3 ms on the median.
Last line: JSON with plain_ms, plugin_ms, added_ms (medians; milliseconds), n.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from steelyard.analysis.base.errors import SteelyardError
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.config import ClusterConfig

REPEAT, WARM_UP, BUDGET_MS = 60, 5, 3.0


def srun_ms(slurm: cluster.Cluster) -> float:
    """One `srun true`, milliseconds."""
    begin = time.monotonic()
    subprocess.run(["srun", "-n1", "true"], env=slurm.environment(), check=True)
    return (time.monotonic() - begin) * 1e3


def measure(folder: Path) -> tuple[list[float], list[float]]:
    """Milliseconds of each start: without the plugin, with it."""
    plugin, node_program = cluster.find_plugin()
    one_node = {"physical_nodes": 1, "virtual_nodes": 0}
    with (
        cluster.up(ClusterConfig(dir=folder / "a", **one_node)) as plain,
        cluster.up(
            ClusterConfig(dir=folder / "b", plugin=plugin, node_program=node_program, **one_node)
        ) as weighed,
    ):
        times = [(srun_ms(plain), srun_ms(weighed)) for _ in range(WARM_UP + REPEAT)][WARM_UP:]
    return [pair[0] for pair in times], [pair[1] for pair in times]


def main() -> int:
    """Measure and print; a missing Slurm is one line and exit code 3."""
    try:
        with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
            plain, weighed = measure(Path(folder))
    except SteelyardError as error:
        print(f"bench start: {error}", file=sys.stderr)
        return 3
    print(f"{'srun true':<16} {'median':>8} {'least':>8}  ms, n = {REPEAT} each, interleaved")
    for name, times in (("without plugin", plain), ("with plugin", weighed)):
        print(f"{name:<16} {statistics.median(times):>8.1f} {min(times):>8.1f}")
    added = statistics.median(weighed) - statistics.median(plain)
    print(f"added {added:+.1f} ms; budget {BUDGET_MS:g} ms")
    figures = {"plain_ms": statistics.median(plain), "plugin_ms": statistics.median(weighed)}
    print(json.dumps({**figures, "added_ms": added, "n": REPEAT}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
