"""What submitting a large study to Slurm costs: 10,000 runs, 100 conditions, 10 blocks.

Two studies. In the first every condition has its own scheduler options (50 delays, cold and warm
caches), so that each block is 100 arrays: 1,000 submissions, the maximum. In the second the
conditions are parameters of the benchmark: 10 arrays. The peer is a loop of plain sbatch, one job
per run with the first study's options, before and after: PEER calls, extrapolated to all runs. The
nodes of the throwaway cluster are down, so that the jobs themselves are not measured. --scale
selects a part of the repeats. Budget (DESIGN): 15 s, at most 1,000 submissions.

Last line: JSON with runs, submissions, seconds, cpu_s (sbatch included), ratio_sbatch_loop (our
seconds / the loop's), sbatch_calls (measured for it), sbatch_ms, again_seconds (submit with nothing
to add), alike_submissions, alike_seconds, alike_cpu_s.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from collect import Cost, measured

from steelyard.analysis.base.errors import SteelyardError
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.cluster import cluster
from steelyard.wrappers.cluster.cluster_config import ClusterConfig
from steelyard.wrappers.schedulers import ledger
from steelyard.wrappers.study.folder import StudyDir

BUDGET_S, BUDGET_SUBMISSIONS = 15.0, 1000
REPEAT, BLOCKS, CONDITIONS = 100, 10, 100
PEER = 100  # calls of sbatch, before ours and again after
STUDY = """\
[study]
name = "{name}"
repeat = {repeat}
blocks = 10
[factors]
{factors}
[[benchmark]]
use = "{benchmark}"
"""
JOB = "#!/bin/sh\n#SBATCH --netem=delay=1ms --cache=cold --exclusive --output=/dev/null\ntrue\n"
LOOP = 'i=0; while [ "$i" -lt "$1" ]; do sbatch -Q --parsable "$2" || exit; i=$((i + 1)); done'


def write_studies(folder: Path, repeat: int) -> tuple[Path, Path]:
    """Write the study with options per condition, and the one whose conditions have the same
    options.
    """
    delays = [f"delay={number}ms" for number in range(CONDITIONS // 2)]
    kinds = {
        "apart": ("app", f'network = {json.dumps(delays)}\ncache = ["cold", "warm"]'),
        "alike": ("hpl", f"n = {list(range(100, 100 + CONDITIONS))}"),
    }
    for name, (benchmark, factors) in kinds.items():
        text = STUDY.format(name=name, repeat=repeat, factors=factors, benchmark=benchmark)
        text += 'command = "true"\n' if benchmark == "app" else ""
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")
    return folder / "apart.toml", folder / "alike.toml"


def ours(study: Path, environment: dict[str, str]) -> Cost:
    """Run `steelyard submit` as a user calls it."""
    program = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "submit"]
    return measured([*program, str(study)], environment)


def loop(folder: Path, environment: dict[str, str]) -> Cost:
    """Submit PEER jobs with one sbatch each."""
    job = folder / "job.sh"
    job.write_text(JOB, encoding="utf-8")
    return measured(["/bin/sh", "-c", LOOP, "loop", str(PEER), str(job)], environment)


def submissions(study: Path) -> int:
    """Return the number of submissions in the study's folder."""
    return len(ledger.read_submissions(StudyDir(study.with_suffix(".study"))))


def measure(folder: Path, repeat: int) -> dict[str, float]:
    """Return all figures of the last line except the ratio."""
    plugin, node_program = cluster.find_plugin()
    config = ClusterConfig(
        dir=folder / "c", plugin=plugin, node_program=node_program, virtual_nodes=0
    )
    apart, alike = write_studies(folder, repeat)
    with cluster.start_cluster(config) as slurm:
        env = slurm.environment()
        down = ["scontrol", "update", f"NodeName={','.join(config.node_names())}"]
        subprocess.run([*down, "State=DOWN", "Reason=bench"], env=env, check=True)
        before = loop(folder, env)
        cost, again = ours(apart, env), ours(apart, env)
        other = ours(alike, env)
        after = loop(folder, env)
    return {
        "runs": repeat * CONDITIONS, "submissions": submissions(apart),
        "seconds": cost[0], "cpu_s": cost[1], "again_seconds": again[0],
        "sbatch_calls": 2 * PEER, "sbatch_ms": (before[0] + after[0]) / (2 * PEER) * 1e3,
        "sbatch_cpu_s": (before[1] + after[1]) / (2 * PEER),
        "alike_submissions": submissions(alike), "alike_seconds": other[0],
        "alike_cpu_s": other[1],
    }  # fmt: skip


def main() -> int:
    """Measure and print; without Slurm, print one line and return 3."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1: 10,000 runs (from 0.1)")
    repeat = max(BLOCKS, round(parser.parse_args().scale * REPEAT))
    try:
        with tempfile.TemporaryDirectory(prefix="sy-submit-", dir="/tmp") as folder:
            found = measure(Path(folder), repeat)
    except SteelyardError as error:
        print(f"bench submit: {error}", file=sys.stderr)
        return 3
    runs = found["runs"]
    all_of_loop = runs * found["sbatch_ms"] / 1e3
    cpu = found.pop("sbatch_cpu_s") * runs
    print(f"{runs:.0f} runs in {CONDITIONS} conditions, {BLOCKS} blocks, to a throwaway Slurm")
    print(f"{'':<34} {'submissions':>11} {'s':>8} {'CPU s':>8}")
    for words, row in (
        ("steelyard submit", (found["submissions"], found["seconds"], found["cpu_s"])),
        ("  conditions of the same options",
         (found["alike_submissions"], found["alike_seconds"], found["alike_cpu_s"])),
        (f"loop of sbatch, from {2 * PEER} calls", (runs, all_of_loop, cpu)),
    ):  # fmt: skip
        print(f"{words:<34} {row[0]:>11.0f} {row[1]:>8.1f} {row[2]:>8.1f}")
    print(f"again, with nothing to add: {found['again_seconds']:.1f} s")
    print(f"budget at scale 1: {BUDGET_S:g} s, {BUDGET_SUBMISSIONS} submissions")
    found["ratio_sbatch_loop"] = found["seconds"] / all_of_loop
    print(json.dumps({name: round(value, 4) for name, value in found.items()}))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
