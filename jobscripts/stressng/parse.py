"""Reads stress-ng's YAML from out.CLIENT: bogo operations, and their times.

stress-ng checks the stressor's results itself (`--verify`) and then ends with 0. The rates that it
prints are compared with its count and times.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from steelyard.jobscripts.errors import OutputError
from steelyard.jobscripts.output import number, read_complete
from steelyard.jobscripts.registry import Result

STRESSOR = re.compile(r"^ +- stressor: (\S+)$", re.MULTILINE | re.ASCII)
FIELD = re.compile(r"^ +([a-z-]+): (\S+)$", re.MULTILINE | re.ASCII)
END = re.compile(r"^\.\.\.$\n?", re.MULTILINE)
COUNT, REAL_S, USER_S, SYSTEM_S = "bogo-ops", "wall-clock-time", "user-time", "system-time"
RATES = {
    "bogo_ops_per_s": "bogo-ops-per-second-real-time",
    "bogo_ops_per_cpu_s": "bogo-ops-per-second-usr-sys-time",
}
ROUNDED_S = 2e-6  # times have six decimals, and user and system time are added


def parse(folder: Path, client: int, parameters: Mapping[str, object]) -> list[Result]:
    """Return bogo operations per second of real time, and per second of user and system time."""
    name = f"out.{client}"
    text = read_complete(
        folder, client, "stress-ng", END, "'...', the end of its YAML, is expected"
    )
    head, _, table = text.partition("\nmetrics:\n")
    if "system-info:" not in head:
        raise OutputError(name, "no YAML of stress-ng (system-info … metrics …)")
    found = STRESSOR.findall(table)
    if found != [parameters["stressor"]]:
        raise OutputError(name, f"stressors {found} instead of {parameters['stressor']}")
    fields = dict(FIELD.findall(table))
    needed = (COUNT, REAL_S, USER_S, SYSTEM_S, *RATES.values())
    missing = [key for key in needed if key not in fields]
    if missing:
        raise OutputError(name, f"without {', '.join(missing)}")
    values = {key: number(name, key, fields[key]) for key in needed}
    times_s = (values[REAL_S], values[USER_S] + values[SYSTEM_S])
    return [
        Result(metric, _rate(name, key, values, time_s), "1/s", 1)
        for (metric, key), time_s in zip(RATES.items(), times_s, strict=True)
        if time_s > ROUNDED_S
    ]


def _rate(name: str, key: str, values: Mapping[str, float], time_s: float) -> float:
    """Return a rate of stress-ng, if its count and time agree with it."""
    rate, expected = values[key], values[COUNT] / time_s
    if abs(rate - expected) > 1e-6 + expected * ROUNDED_S / time_s:
        raise OutputError(name, f"{key} is {rate}, but {values[COUNT]:.0f} in {time_s} s")
    return rate
