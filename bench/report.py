"""What `steelyard report` costs for 10,000 runs in 100 conditions (10 blocks).

The peer, in turn with it, is a script with pandas and matplotlib on the same database
(bench/report_peer.py): means with Student's intervals, overheads, one bar figure. It has no tests
and no findings, draws one figure where the report draws all, and lists no runs, so that a ratio
above 1 is the cost of these. `--json`, and `compare` of two conditions, are measured, too. Budget
(DESIGN): 5 s, 3 MB. The report draws in two processes, so that with two free cores it takes fewer
seconds than CPU seconds; on a busy machine only CPU seconds are comparable.

Last line: JSON with runs, conditions, seconds, cpu_s, mb (of the page), rss_mb, ratio_pandas (our
CPU seconds / the peer's, medians), json_cpu_s, compare_cpu_s, load.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import report_study
from collect import Cost, measured

from steelyard.wrappers.base.signals import ending_on_sigterm

BUDGET_S, BUDGET_MB = 5.0, 3.0
STEELYARD = [sys.executable, "-P", "-m", "steelyard.wrappers.commands.cli"]


def median(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    seconds, cpu, memory = (statistics.median(column) for column in zip(*costs, strict=True))
    return seconds, cpu, memory


def run(study_dir: Path, folder: Path, repeat: int) -> dict[str, Cost]:
    """Run all programs in turn, so that other load of the machine affects them equally."""
    peer = str(Path(__file__).with_name("report_peer.py"))
    delay = "network=delay=45ms, node_type=virtual, clients=16"
    programs = {
        "steelyard report": [*STEELYARD, "report", str(study_dir), "-o", str(folder / "r.html")],
        "  --json": [*STEELYARD, "report", str(study_dir), "--json"],
        "steelyard compare": [
            *STEELYARD, "compare", str(study_dir),
            "network=none, node_type=physical, clients=16", delay,
        ],
        "pandas + matplotlib": [
            sys.executable, "-P", peer, str(study_dir / "study.duckdb"), str(folder / "p.html")
        ],
    }  # fmt: skip
    costs: dict[str, list[Cost]] = {name: [] for name in programs}
    for _ in range(repeat):
        for name, arguments in programs.items():
            costs[name].append(measured(arguments))
    return {name: median(found) for name, found in costs.items()}


def main() -> int:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="a multiple of 1,000")
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sy-report-") as name:
        folder = Path(name)
        costs = run(report_study.make(folder, asked.runs), folder, asked.repeat)
        mb = (folder / "r.html").stat().st_size / 1e6
    print(
        f"{asked.runs} runs, load of the machine {os.getloadavg()[0]:.1f}; medians of {asked.repeat}"
    )
    print(f"{'':<22} {'s':>8} {'CPU s':>8} {'MB':>8}")
    for words, figures in costs.items():
        print(f"{words:<22} {figures[0]:>8.2f} {figures[1]:>8.2f} {figures[2]:>8.0f}")
    print(f"the page has {mb:.2f} MB; budget {BUDGET_S:g} s, {BUDGET_MB:g} MB")
    ours, peer = costs["steelyard report"], costs["pandas + matplotlib"]
    figures = {
        "runs": asked.runs, "conditions": 100, "seconds": round(ours[0], 2),
        "cpu_s": round(ours[1], 2), "mb": round(mb, 2), "rss_mb": round(ours[2], 1),
        "ratio_pandas": round(ours[1] / peer[1], 2),
        "json_cpu_s": round(costs["  --json"][1], 2),
        "compare_cpu_s": round(costs["steelyard compare"][1], 2),
        "load": round(os.getloadavg()[0], 1),
    }  # fmt: skip
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        sys.exit(main())
