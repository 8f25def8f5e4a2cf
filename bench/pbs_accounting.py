"""What reading accounting logs of Torque and OpenPBS costs, on one core.

The peer, in turn with it on the same lines, is the obvious plain Python: split at `;`, split at
blanks, split at `=`, into a dictionary. It ends a value at a blank or a quote, does not detect a
truncated line, and selects no job. Our reader matches every line's shape once, and analyzes only
lines of another shape in detail.

Logs: the recorded ones of the tests, with each job repeated under new ids (S, E, Q in the original
order); `hook`: as OpenPBS writes them with Steelyard's hook, an object in each E; `odd`: every
third record has a blank or a quote in its account. Budget: 100,000 lines per second on each of
them.

Last line: JSON with runs (lines of each log), lines_per_s and peer_lines_per_s by log, ratio (ours
/ the peer's, the least of all logs), scan_lines_per_s (one job searched among all), load.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from steelyard.analysis.sources.pbs import accounting_lines, accounting_logs
from steelyard.analysis.sources.pbs.field_values import JobId
from steelyard.wrappers.base.signals import ending_on_sigterm

DATA = Path(__file__).resolve().parents[1] / "tests" / "data"
LOGS = {
    "torque": DATA / "torque" / "accounting-mixed.log",
    "openpbs": DATA / "openpbs" / "accounting-1-classic-pelog.log",
}
BUDGET = 100_000
HOOK = (
    '{"vm": {"steelyard": 1, "node_type": "physical", "tags": {"study": "x"}, "nodes_measured": 1, '
    '"elapsed_s": 1.29, "energy_j": 80.5, "cpu_s": 0.9, "exclusive": true, "missing": {"rx_bytes": '
    '"of the whole node, which the job shared"}}}'
)


def log(name: str, count: int) -> list[str]:
    """Return `count` lines; ids differ between repetitions, so that no line occurs twice."""
    text = LOGS["openpbs" if name in ("hook", "odd") else name].read_text("utf-8")
    # A site has few jobs with unusual names; here they would occur by the thousand.
    lines = [line for line in text.split("\n") if line and ('"' not in line or name == "openpbs")]
    if name == "hook":
        lines = [with_hook(line) for line in lines]
    if name == "odd":
        lines = [odd(line, place) for place, line in enumerate(lines)]
    found: list[str] = []
    for number in range(count // len(lines) + 1):
        found += (re.sub(r";(\d+)", rf";{number}\1", line, count=1) for line in lines)
    return found[:count]


def with_hook(line: str) -> str:
    """Add what our hook adds to an E record."""
    usage = f"resources_used.ncpus=1 resources_used.steelyard_used='{HOOK}' "
    return line.replace("resources_used.ncpus=1 ", usage, 1)


def odd(line: str, place: int) -> str:
    """Add an account with blanks or quotes."""
    account = ('account="physics, group 7" ', 'account="a "good" one" ')[place % 2]
    return line.replace(" project=", f" {account}project=", 1) if place % 3 == 0 else line


def ours(rows: Sequence[str]) -> int:
    """Return how many lines our reader reads."""
    reader = accounting_lines.LineReader(None)
    read = (reader.read(record) for record in accounting_lines.join_broken_lines(rows))
    return sum(isinstance(one, accounting_lines.Line) for one in read)


def peer(rows: Sequence[str]) -> int:
    """Return how many lines the plain reader reads."""
    found = 0
    for row in rows:
        _, _, _, text = row.split(";", 3)
        found += bool(dict(word.split("=", 1) for word in text.split() if "=" in word))
    return found


def per_s(work: Callable[[Sequence[str]], int], rows: Sequence[str]) -> float:
    """Return lines per second of CPU."""
    begun = time.process_time()
    work(rows)
    return len(rows) / (time.process_time() - begun)


def scan_per_s(rows: Sequence[str]) -> float:
    """Return lines per second of the search of `steelyard show` for one job."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "20261121").write_text("\n".join(rows) + "\n", encoding="utf-8")
        begun = time.process_time()
        accounting_logs.scan_logs(Path(folder), [JobId("99999999", None, None)])
        return len(rows) / (time.process_time() - begun)


def main() -> int:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200_000, help="lines of each log")
    parser.add_argument("--repeat", type=int, default=5)
    args = parser.parse_args()
    speeds: dict[str, tuple[float, float]] = {}
    print(f"{'log':<10}{'ours':>12}{'plain split':>14}  lines/s")
    for name in (*LOGS, "hook", "odd"):
        rows = log(name, args.runs)
        turns = [(per_s(ours, rows), per_s(peer, rows)) for _ in range(args.repeat)]
        first, second = (statistics.median(column) for column in zip(*turns, strict=True))
        speeds[name] = first, second
        print(f"{name:<10}{first:>12,.0f}{second:>14,.0f}")
    scanned = scan_per_s(log("torque", args.runs))
    print(f"{'one job':<10}{scanned:>12,.0f}")
    slowest = min(first for first, _ in speeds.values())
    print(f"budget {BUDGET:,} lines/s: {'kept' if slowest >= BUDGET else 'not kept'}")
    figures = {
        "runs": args.runs,
        "lines_per_s": {name: round(pair[0]) for name, pair in speeds.items()},
        "peer_lines_per_s": {name: round(pair[1]) for name, pair in speeds.items()},
        "ratio": round(min(first / second for first, second in speeds.values()), 3),
        "scan_lines_per_s": round(scanned),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    with ending_on_sigterm():
        raise SystemExit(main())
