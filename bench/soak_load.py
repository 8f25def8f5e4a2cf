"""Submits many short jobs of every kind to a throwaway Slurm, and waits for their end."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

from steelyard.wrappers.cluster.cluster import Cluster

# Per hundred jobs; the others are tasks of an array, on one node each.
TWO_NODES, SINGLE, ALONE = 4, 4, 4
BASE_BYTES, MODULUS = 1000, 89
LIMIT_S = 1800.0

# The number of bytes follows from the job's id: another job's record would be detected.
WRITE = f"head -c $(({BASE_BYTES} + SLURM_JOB_ID % {MODULUS})) /dev/zero > /dev/null"


def written_bytes(job_id: int) -> int:
    """Return how many bytes `WRITE` writes in this job."""
    return BASE_BYTES + job_id % MODULUS


def set_up(slurm: Cluster) -> None:
    """Have slurmctld forget ended jobs soon, as an old cluster does."""
    conf = slurm.dir / "etc" / "slurm.conf"
    conf.write_text(re.sub(r"MinJobAge=\d+", "MinJobAge=5", conf.read_text()))
    ask(slurm, "scontrol", "reconfigure")


def ask(slurm: Cluster, *argv: str, stdin: str = "") -> str:
    """Run one of Slurm's commands; return its output."""
    done = subprocess.run(
        argv, env=slurm.environment(), cwd="/", input=stdin, check=True, timeout=300,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return done.stdout


def run(slurm: Cluster, jobs: int, tag: str) -> float:
    """Run `jobs` jobs, at least four, to their end; return the seconds."""
    two, single, alone = (-(-jobs * share // 100) for share in (TWO_NODES, SINGLE, ALONE))
    began = time.monotonic()
    sbatch(slurm, jobs - two - single - alone, "-N1", script=WRITE)
    sbatch(slurm, two, "-N2", script=f"srun sh -c '{WRITE}'")
    for _ in range(single):
        sbatch(slurm, 1, "-N1", *([f"--tag=round={tag}"] if tag else []), script=WRITE)
    wait_all([srun(slurm, 1 + number % 2) for number in range(alone)])
    wait_empty(slurm)
    return time.monotonic() - began


def sbatch(slurm: Cluster, jobs: int, *options: str, script: str) -> None:
    """Submit one job, or an array of several."""
    array = [f"--array=1-{jobs}"] if jobs > 1 else []
    if jobs:
        asked = ("sbatch", "--parsable", "-o", "/dev/null", *array, *options)
        ask(slurm, *asked, stdin=f"#!/bin/sh\n{script}\n")


def srun(slurm: Cluster, nodes: int) -> subprocess.Popen[bytes]:
    """Start a job with srun alone, which may wait for resources."""
    argv = ["srun", "-Q", f"-N{nodes}", "sh", "-c", WRITE]
    return subprocess.Popen(argv, env=slurm.environment(), cwd="/")


def wait_all(processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait for all processes; the accounting has their exit codes."""
    for process in processes:
        process.wait(LIMIT_S)


def wait_empty(slurm: Cluster) -> None:
    """Wait until no job is pending, running or completing."""
    end = time.monotonic() + LIMIT_S
    while ask(slurm, "squeue", "-h", "-o", "%i"):
        if time.monotonic() > end:
            raise SystemExit(f"bench: jobs still run after {LIMIT_S:.0f} s")
        time.sleep(0.5)


def log_bytes(slurm: Cluster) -> dict[str, int]:
    """Return the sizes of the daemons' logs; those of slurmd and of ours over all nodes."""
    found = dict.fromkeys(("slurmctld", "slurmdbd", "slurmd", "steelyard"), 0)
    for path in (slurm.dir / "log").glob("*.log"):
        found[path.name.split(".")[0]] += path.stat().st_size
    ours = Path(slurm.dir / "run" / "steelyard").glob("*.log")
    found["steelyard"] = sum(path.stat().st_size for path in ours)
    return found
