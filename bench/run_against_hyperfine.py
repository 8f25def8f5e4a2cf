"""How `steelyard run` measures a command's time, against hyperfine, which has no sampler.

Both measure the same commands in turn, a few runs each time, so that other load of the machine
affects both; as root at real-time priority, so that other load affects neither. Bias: the
difference of the medians, and of the minima. Limit: 0.5 ms in either direction, of the medians at
real-time priority, else of the minima; beyond it: exit code 1.

Last line: JSON with a row for each command and launcher; milliseconds.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from steelyard.wrappers.base.signals import ending_on_sigterm

ROUNDS, LIMIT_MS = 6, 0.5
# Runs per round: short commands vary more.
COMMANDS = {"true": 20, "sleep 0.2": 4}
WAYS = {"bare": "bare", "in unshare": "unshare"}
OURS = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli", "run", "--json"]


def hyperfine_ms(command: str, runs: int, folder: Path) -> list[float]:
    """Return times of hyperfine -N, without a shell, in ms."""
    export = folder / "hyperfine.json"
    words = ["hyperfine", "-N", "--runs", str(runs), "--export-json", str(export), command]
    subprocess.run(words, check=True, capture_output=True)
    (result,) = json.loads(export.read_bytes())["results"]
    return [second * 1e3 for second in result["times"]]


def ours_ms(command: str, runs: int, launcher: str) -> list[float]:
    """Return `elapsed` of `steelyard run` in ms."""
    words = [*OURS, "--in", launcher, "--repeat", str(runs), "--", *command.split()]
    done = subprocess.run(words, check=True, capture_output=True)
    return [
        one["values"]["elapsed"] * 1e3 for one in json.loads(done.stdout)["commands"][0]["runs"]
    ]


def row(command: str, name: str, peer: Sequence[float], ours: Sequence[float]) -> dict[str, Any]:
    """Return one row of the table."""
    medians = statistics.median(ours), statistics.median(peer)
    return {
        "command": command,
        "way": name,
        "hyperfine_ms": medians[1],
        "steelyard_ms": medians[0],
        "ratio": medians[0] / medians[1],
        "bias_ms": medians[0] - medians[1],
        "bias_of_least_ms": min(ours) - min(peer),
        "n": len(ours),
    }


def measure(command: str, runs: int, folder: Path) -> list[dict[str, Any]]:
    """Return the rows of one command."""
    peer: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        peer += hyperfine_ms(command, runs, folder)
        for name, launcher in WAYS.items():
            ours[name] += ours_ms(command, runs, launcher)
    return [row(command, name, peer, values) for name, values in ours.items()]


def go_first() -> bool:
    """Set real-time priority, as root; started programs inherit it. Return whether it is set."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10))
        return True
    return False


def beyond(rows: Sequence[dict[str, Any]], bias: str) -> list[str]:
    """Describe the rows that exceed the limit."""
    far = [one for one in rows if abs(one[bias]) > LIMIT_MS]
    return [f"{one['command']}, {one['way']}: {one[bias]:.3f} ms" for one in far]


def main() -> int:
    """Measure and print; without hyperfine, print one line and return 3."""
    if shutil.which("hyperfine") is None:
        print("bench run: no hyperfine: apt-get install hyperfine", file=sys.stderr)
        return 3
    first = go_first()
    bias = "bias_ms" if first else "bias_of_least_ms"
    how = f"at {'real-time' if first else 'usual'} priority {bias} counts"
    with tempfile.TemporaryDirectory(prefix="sy-", dir="/tmp") as folder:
        rows = [one for c, n in COMMANDS.items() for one in measure(c, n, Path(folder))]
    names = ("hyperfine_ms", "steelyard_ms", "ratio", "bias_ms", "bias_of_least_ms")
    print(f"{'command':<11}{'way':<12}" + "".join(f"{name:>18}" for name in names) + "     n")
    for one in rows:
        cells = "".join(f"{one[name]:>18.3f}" for name in names)
        print(f"{one['command']:<11}{one['way']:<12}{cells}{one['n']:>6}")
    print(f"limit of the bias: {LIMIT_MS:g} ms; {how}; load {os.getloadavg()[0]:.1f}")
    far = beyond(rows, bias)
    print(json.dumps({"limit_ms": LIMIT_MS, "rows": rows, "beyond": far}))
    for words in far:
        print(f"bench run: {words}: expected at most {LIMIT_MS:g} ms either way", file=sys.stderr)
    return 1 if far else 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
