"""Compares joules with a second meter, if this machine has both; else reports what is missing.

The second meter is another counter of the same machine, read around the same run: perf's power
events (the same processors' counters by another path through the kernel), or hwmon's energy
sensors. IPMI has watts of the whole machine every few seconds, so it cannot check the processors
alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

from steelyard.analysis.sources.records import find_number
from steelyard.wrappers.calibrate import table
from steelyard.wrappers.calibrate.known_loads import KnownLoad
from steelyard.wrappers.calibrate.local_runs import Bench, NotMeasuredError, Outcome
from steelyard.wrappers.calibrate.table import Cell, Limit

METHOD = "run: joules"
LOAD = KnownLoad("joules", ("threads=2:3",), (table.ENERGY,))
EVENTS = ("energy-pkg", "energy-ram")  # the same domains as our zones: packages and dram
LIMIT_PART = 0.05


def measure(bench: Bench) -> Outcome:
    """Measure one load of some seconds, because the second meter is read outside of it. Raises
    NotMeasuredError without two meters."""
    witness = perf_prefix(Path("/"))
    sensors = find_hwmon_sensors(Path("/"))
    before = read_hwmon_j(sensors)
    record = replace(bench, prefix=witness).measure(LOAD).record
    measured = find_number(record, table.ENERGY.path)
    if measured is None:
        why = table.reason_at(record, table.ENERGY.path)
        raise NotMeasuredError(f"not measured: {why or 'and no reason given'}", failed=why is None)
    truth = read_perf_j(bench.folder) if witness else None
    if truth is None and before is not None:
        truth = (read_hwmon_j(sensors) or before) - before
    if truth is None:
        raise NotMeasuredError(
            f"{measured:.1f} J, and no second witness (perf's power events, hwmon)"
        )
    yield energy_cell(truth, measured)


def energy_cell(truth: float, measured: float) -> Cell:
    """Return a cell that compares our joules with those of the second meter."""
    most = LIMIT_PART * truth
    limit = Limit(most, most, "the witness begins before and ends after the run")
    return Cell("run", LOAD.name, table.ENERGY.name, "J", table.RECORD, truth, measured, limit)


def perf_prefix(root: Path) -> tuple[str, ...]:
    """Return `perf stat` as a prefix of the command, if the kernel has power events that perf may
    read; else ()."""
    folder = root / "sys/bus/event_source/devices/power/events"
    events = [f"power/{name}/" for name in EVENTS if (folder / name).exists()]
    if not events or shutil.which("perf") is None:
        return ()
    trial = ["perf", "stat", "-a", "-e", events[0], "--", "true"]
    try:
        done = subprocess.run(trial, capture_output=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    if done.returncode != 0:
        return ()
    return ("perf", "stat", "-a", "-x;", "-o", "../perf.csv", "-e", ",".join(events), "--")


def read_perf_j(folder: Path) -> float | None:
    """Return the sum (J) in the output of `perf stat -x;`: VALUE;Joules;EVENT;…"""
    path = folder / "perf.csv"
    text = path.read_text(errors="replace") if path.exists() else ""
    found = re.findall(r"^([0-9.]+);Joules;", text, re.MULTILINE)
    return sum(map(float, found)) if found else None


def find_hwmon_sensors(root: Path) -> list[Path]:
    """Return the energy sensors of whole processors: hwmon's energyN_input (µJ) with "socket" in
    the label."""
    found = []
    for path in sorted(root.glob("sys/class/hwmon/hwmon*/energy*_input")):
        label = path.with_name(path.name.replace("_input", "_label"))
        if label.exists() and "socket" in label.read_text().lower():
            found.append(path)
    return found


def read_hwmon_j(sensors: list[Path]) -> float | None:
    """Return the sum of the sensors in joules; None if there are none, or one is not readable."""
    try:
        return sum(int(path.read_text()) for path in sensors) / 1e6 if sensors else None
    except (OSError, ValueError):
        return None
