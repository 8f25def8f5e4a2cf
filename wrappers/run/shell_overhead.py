"""The time that a shell takes: `sh -c :`, measured by steelyard-time like a command in a
container."""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from steelyard.analysis.stats.basics import mean_interval
from steelyard.wrappers.base import programs
from steelyard.wrappers.run import container_run

RUNS = 20


@dataclass(frozen=True)
class Cost:
    """Seconds of a shell that has nothing to do, from its start to its end, over `n` runs."""

    shell: str
    mean_s: float
    low_s: float
    high_s: float
    n: int


def measure(shell: str, runs: int = RUNS) -> Cost | None:
    """Measure the shell; return None if steelyard-time is not installed or the shell does not
    run."""
    timer = programs.find_program(container_run.TIMER)
    if timer is None:
        return None
    with tempfile.TemporaryDirectory(prefix="steelyard-shell-") as folder:
        times = [time_once(timer, shell, Path(folder) / str(number)) for number in range(runs)]
    known = [one for one in times if one is not None]
    if len(known) < len(times):
        return None
    found = mean_interval(known, never_negative=True)
    return Cost(shell, fmean(known), found.low or 0.0, found.high or 0.0, len(known))


def time_once(timer: Path, shell: str, path: Path) -> float | None:
    """Return the elapsed seconds of one run, or None if it failed."""
    command = [str(timer), str(path), shell, "-c", ":"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        check=False,
    )  # fmt: skip
    return (
        container_run.only_numbers(container_run.read_values(path)).get("elapsed_s")
        if done.returncode == 0
        else None
    )
