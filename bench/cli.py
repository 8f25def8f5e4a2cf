"""How long a user waits for the command line: `--help`, and `status` of 10,000 runs.

Three programs take turns: Python that does nothing, `steelyard --help`, and `pip --help` as another
well-known program in the same environment. Then `steelyard status` of a study in which every run
has a result, so that no scheduler is queried: first call and later calls. Its peer is a script that
only reads the plan and every result.json and counts states. Budgets: `--help` 150 ms (DESIGN), a
later `status` 0.5 s.

Last line: JSON with help_ms, python_ms, pip_ms, ratio_pip (help / pip), first_s, status_s,
script_s, ratio_first, ratio_script (medians of wall time), help_cpu_ms, first_cpu_s, status_cpu_s,
script_cpu_s, runs, load.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import collect
from collect import Cost, measured

from steelyard.analysis.base import file_changes
from steelyard.wrappers.base.signals import ending_on_sigterm
from steelyard.wrappers.submit import run_state

BUDGET_MS, STATUS_BUDGET_MS = 150.0, 500.0
STEELYARD = str(Path(sys.executable).with_name("steelyard"))
SCRIPT = """
import collections, json, pathlib, sys
study = pathlib.Path(sys.argv[1])
runs = json.loads((study / "plan.json").read_bytes())["runs"]
states = collections.Counter()
for run in runs:
    for path in (study / "runs" / run["run_id"]).glob("*/result.json"):
        states[json.loads(path.read_bytes())["state"]] += 1
print(states)
"""


def make(folder: Path, runs: int) -> Path:
    """Make a study with a plan and a result for every run."""
    study_dir = folder / "bench.study"
    study_dir.mkdir()
    size = collect.BLOCKS
    blocks = [list(range(runs))[number::size] for number in range(size)]
    collect.write_plan(study_dir, runs, blocks)
    for number, block in enumerate(blocks):
        for place, run in enumerate(block):
            job = collect.JobId(str(100 + number * runs), place)
            collect.write_run(study_dir, run, job)
    return study_dir


def in_turn(programs: dict[str, list[str]], repeat: int) -> dict[str, Cost]:
    """Return each program's medians; a first, unmeasured execution fills the page cache."""
    costs: dict[str, list[Cost]] = {name: [] for name in programs}
    for number in range(repeat + 1):
        for name, arguments in programs.items():
            cost = measured(arguments)
            if number:
                costs[name].append(cost)
    return {name: median(found) for name, found in costs.items()}


def median(costs: list[Cost]) -> Cost:
    """Return the median of each figure."""
    seconds, cpu, memory = (statistics.median(column) for column in zip(*costs, strict=True))
    return seconds, cpu, memory


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=20, help="of --help; status a fifth of it")
    asked = parser.parse_args()
    helps = in_turn(
        {
            "python3 -c pass": [sys.executable, "-c", "pass"],
            "steelyard --help": [STEELYARD, "--help"],
            "pip --help": [sys.executable, "-m", "pip", "--help"],
        },
        asked.repeat,
    )
    with tempfile.TemporaryDirectory(prefix="sy-cli-") as name:
        study_dir = str(make(Path(name), asked.runs))
        time.sleep(file_changes.RACE_NS / 1e9)  # as in a study whose runs ended earlier
        first = f"rm -f {study_dir}/{run_state.CACHE_FILE}; exec {STEELYARD} status {study_dir}"
        states = in_turn(
            {
                "status, first look": ["/bin/sh", "-c", first],
                "status, a later look": [STEELYARD, "status", study_dir],
                "a script that counts": [sys.executable, "-c", SCRIPT, study_dir],
            },
            max(asked.repeat // 5, 1),
        )
    print(
        f"load of the machine {os.getloadavg()[0]:.1f}; medians of {asked.repeat}, of status a fifth"
    )
    print(f"{'':<22} {'ms':>9} {'CPU ms':>9} {'MB':>6}")
    for words, (seconds, cpu, memory) in (helps | states).items():
        print(f"{words:<22} {seconds * 1e3:>9.0f} {cpu * 1e3:>9.0f} {memory:>6.0f}")
    print(f"budgets: --help {BUDGET_MS:g} ms, a later look {STATUS_BUDGET_MS:g} ms")
    print(json.dumps(document(helps, states) | {"runs": asked.runs}))
    return 0


def document(helps: dict[str, Cost], states: dict[str, Cost]) -> dict[str, float]:
    """Return the last line's content."""
    python, ours, pip = helps.values()
    first, status, script = states.values()
    return {
        "help_ms": round(ours[0] * 1e3, 1), "python_ms": round(python[0] * 1e3, 1),
        "pip_ms": round(pip[0] * 1e3, 1), "ratio_pip": round(ours[0] / pip[0], 3),
        "first_s": round(first[0], 2), "status_s": round(status[0], 2),
        "script_s": round(script[0], 2), "ratio_first": round(first[0] / script[0], 2),
        "ratio_script": round(status[0] / script[0], 2), "help_cpu_ms": round(ours[1] * 1e3, 1),
        "first_cpu_s": round(first[1], 2), "status_cpu_s": round(status[1], 2),
        "script_cpu_s": round(script[1], 2), "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
