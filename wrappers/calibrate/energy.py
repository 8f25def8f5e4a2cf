"""Joules beside a second witness, where there is a meter and a witness; else what is missing.

The witness is another counter of the same machine, read around the same run: perf's power events
(the same processors' counters by another way through the kernel), or hwmon's energy sensors. IPMI
tells watts of the whole machine, every few seconds: no witness for the processors alone.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from steelyard.wrappers.calibrate import table
from steelyard.wrappers.calibrate.loads import Load
from steelyard.wrappers.calibrate.local import Bench, Outcome
from steelyard.wrappers.calibrate.table import Cell, Limit, Trouble

WAY = "run: joules"
LOAD = Load("joules", ("threads=2:3",), (table.ENERGY,))
EVENTS = ("energy-pkg", "energy-ram")  # as our zones: packages and dram
# perf and the command around it start before the sampler and end after it.
LIMIT_PART = 0.05


def every(bench: Bench) -> Outcome:
    """One load of some seconds, since the witness is read from outside."""
    witness = perf_prefix(Path("/"))
    sensors = hwmon_sensors(Path("/"))
    before = hwmon_j(sensors)
    wrapped = Bench(bench.folder, bench.program, tuple(witness)) if witness else bench
    found = wrapped.weigh(LOAD)
    if isinstance(found, Trouble):
        yield Trouble(WAY, found.why, found.broken)
        return
    weighed = table.number_at(found.record, table.ENERGY.path)
    if weighed is None:
        why = table.reason_at(found.record, table.ENERGY.path)
        yield Trouble(WAY, f"not weighed: {why or 'and no reason given'}", broken=why is None)
        return
    truth = perf_j(bench.folder) if witness else None
    if truth is None and before is not None:
        truth = (hwmon_j(sensors) or before) - before
    if truth is None:
        yield Trouble(WAY, f"{weighed:.1f} J, and no second witness (perf's power events, hwmon)")
        return
    yield cell(truth, weighed)


def cell(truth: float, weighed: float) -> Cell:
    """The witness' joules beside ours."""
    limit = Limit(
        LIMIT_PART * truth, LIMIT_PART * truth, "the witness begins before and ends after the run"
    )
    return Cell("run", LOAD.name, table.ENERGY.name, "J", table.RECORD, truth, weighed, limit)


def perf_prefix(root: Path) -> list[str]:
    """`perf stat` around the command, where the kernel has power events and perf may read them."""
    folder = root / "sys/bus/event_source/devices/power/events"
    events = [f"power/{name}/" for name in EVENTS if (folder / name).exists()]
    if not events or shutil.which("perf") is None:
        return []
    argv = ["perf", "stat", "-a", "-x;", "-o", "../perf.csv", "-e", ",".join(events), "--"]
    try:
        done = subprocess.run(
            ["perf", "stat", "-a", "-e", events[0], "--", "true"],
            capture_output=True, timeout=20, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return []
    return argv if done.returncode == 0 else []


def perf_j(folder: Path) -> float | None:
    """The sum of what `perf stat -x;` wrote: VALUE;Joules;EVENT;…"""
    path = folder / "perf.csv"
    text = path.read_text(errors="replace") if path.exists() else ""
    found = re.findall(r"^([0-9.]+);Joules;", text, re.MULTILINE)
    return sum(map(float, found)) if found else None


def hwmon_sensors(root: Path) -> list[Path]:
    """Energy sensors of whole processors: hwmon's energyN_input, in µJ, whose label says socket."""
    found = []
    for path in sorted(root.glob("sys/class/hwmon/hwmon*/energy*_input")):
        label = path.with_name(path.name.replace("_input", "_label"))
        if label.exists() and "socket" in label.read_text().lower():
            found.append(path)
    return found


def hwmon_j(sensors: list[Path]) -> float | None:
    """Their sum; None where there are none, or they are not for us."""
    try:
        return sum(int(path.read_text()) for path in sensors) / 1e6 if sensors else None
    except (OSError, ValueError):
        return None
