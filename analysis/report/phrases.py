"""Phrases for the answer's sentences: conditions and overheads in words.

`on virtual instead of physical nodes`, `takes 30 times as long (26 to 35 times)`, `computes 16 %
slower (10 to 21 %)`. An overhead keeps the unit's direction: seconds take longer, operations per
second are computed slower. Other figures are named, with the side that is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass

from steelyard.analysis.stats import number_format
from steelyard.analysis.stats.basics import is_rate
from steelyard.analysis.stats.overhead import EXACT
from steelyard.analysis.stats.overhead_verdict import (
    AS_TIMES,
    NO_DURATION,
    format_between,
    format_percent,
    format_percent_range,
)
from steelyard.analysis.summary.rows import Row

OPERATIONS = re.compile(r"[kMGTP]?(?:op|flop|up)s?/s")  # Mop/s, Gflop/s, Gup/s
DATA = re.compile(r"(?:[kMGT]?B|[kMGT]?bit|bytes)(?:/s|_per_s)")
SPEEDS = ((OPERATIONS, "computes"), (DATA, "transfers data"))

# Factors whose levels count things: the preposition, the thing, and what follows it.
COUNTED = {
    "clients": ("with", "client", ""),
    "nodes": ("on", "node", ""),
    "tasks_per_node": ("with", "task", " per node"),
    "cpus_per_task": ("with", "processor", " per task"),
}


@dataclass(frozen=True)
class Wording:
    """The words for one kind of figure; all but `verb` and `noun` follow a size (`12 %`)."""

    verb: str
    noun: str
    more: str
    less: str
    times: str  # after `3 times`
    below: str  # `36 % below to 5 % above`, of an interval that contains 0
    above: str
    is_directed: bool = True  # these words show which side is better


TIME = Wording("takes", "time", "longer", "less time", "as long", "less", "more time")
ENERGY = Wording(
    "uses", "energy", "more energy", "less energy", "the energy", "less", "more energy"
)


def find_wording(row: Row) -> Wording:
    """Return the wording by the figure's kind: time, energy, speed, count rate, other."""
    name = row.metric.name
    if is_time(row):
        return TIME
    if row.metric.name == "energy_j":
        return ENERGY
    if speed := find_speed_verb(row):
        return Wording(speed, name, "faster", "slower", "as fast", "slower", "faster")
    if is_count_rate(row):
        unit = number_format.format_unit(row.metric.unit)
        more = f"more {unit}"
        return Wording("reaches", name, more, f"fewer {unit}", f"the {unit}", "fewer", more)
    higher = f"higher {name}"
    return Wording("has", name, higher, f"lower {name}", f"the {name}", "lower", higher, False)


def describe_level(factor: str, level: str, instead: str | None = None) -> str:
    """Return one factor's level, and that of the baseline: `with 2 clients instead of 1`."""
    other = f" instead of {instead}" if instead is not None else ""
    if factor in COUNTED:
        before, noun_of, behind = COUNTED[factor]
        return f"{before} {level} {noun_of}{'' if level == '1' else 's'}{behind}{other}"
    match factor, level:
        case "node", _:
            return f"on {level}{other}"
        case "node_type", _:
            return f"on {level}{other} nodes"
        case "kernel_release", _:
            return f"on kernel {level}{other}"
        case "network", "none":
            return "without network conditions" + (f" instead of {instead}" if instead else "")
        case "network", _:
            return f"with network {level}{other}"
        case "cache", "cold" | "warm":
            return f"with {level}{other} caches"
        case "launcher", "bare":
            return "without a container"
        case "launcher", _:
            return f"in {level}{'' if instead == 'bare' else other}"
    return f"with {factor}={level}{other}"


def join_phrases(items: Iterable[str]) -> str:
    """Join `a, b and c`."""
    every = list(items)
    return " and ".join(filter(None, [", ".join(every[:-1]), *every[-1:]]))


def find_limits(row: Row) -> tuple[float, float]:
    """Return the limits of the row's overhead, or infinity if it has no interval."""
    found = row.overhead
    if found is None or found.low is None or found.high is None:
        return -math.inf, math.inf
    return found.low, found.high


def describe_overhead(row: Row) -> str:
    """Return `takes 12 % longer (9 to 15 %)`, `has 2 % lower size (1 to 3 %), which is better`."""
    found = row.overhead
    assert found is not None and found.value is not None
    low, high = find_limits(row)
    exactly = "exactly " if is_exact(row) else ""
    if found.value > AS_TIMES:
        ratio, ends = number_format.format_times(1 + found.value, 1 + low, 1 + high)
        ends = f" ({format_range(ends)} times)" if ends else ""
        return f"{describe_factor(row, exactly + ratio)}{ends}{describe_direction(row, more=True)}"
    more = found.value > 0
    size = format_percent(abs(found.value), low, high)
    if high < 0:
        low, high = -high, -low
    ends = "" if low == high else f" ({format_range(format_percent_range(low, high))} %)"
    return f"{find_wording(row).verb} {format_size(row, f'{exactly}{size} %', more)}{ends}{describe_direction(row, more)}"


def format_range(ends: str) -> str:
    """Return `9 to 15` for `9 … 15`, for sentences."""
    return ends.replace(" … ", " to ")


def format_interval(row: Row) -> str:
    """Return ` (−0.4 to 0.9 %)`; empty without spread."""
    low, high = find_limits(row)
    return "" if low == high else f" ({format_range(format_between(low, high))})"


def format_size(row: Row, size: str, more: bool) -> str:
    """Return `12 % longer`, `36 % less time`, `5 % more energy`, `16 % slower`, `2 % lower
    size`.
    """
    wording = find_wording(row)
    return f"{size} {wording.more if more else wording.less}"


def describe_factor(row: Row, ratio: str) -> str:
    """Return `takes 20 times as long`, `has 3 times the size`."""
    wording = find_wording(row)
    return f"{wording.verb} {ratio} times {wording.times}"


def describe_direction(row: Row, more: bool) -> str:
    """Return `, which is worse` or `, which is better` if the figure's words do not show it."""
    better = row.metric.better
    if better is None or find_wording(row).is_directed:
        return ""
    return ", which is worse" if more == (better == "lower") else ", which is better"


def describe_between(row: Row) -> str:
    """Describe an interval with 0: `takes 36 % less to 5 % more time`.

    If it contains more than 100 % more, both ends are factors: `takes 0.6 to 2.5 times as long`. A
    negative lower end is no factor: `takes at most 16 times as long`.
    """
    low, high = find_limits(row)
    wording = find_wording(row)
    if high > AS_TIMES and low > -1:
        return describe_factor(
            row, format_range(number_format.format_times(1.0, 1 + low, 1 + high)[1])
        )
    if high > AS_TIMES and wording.is_directed:
        return describe_factor(
            row, f"at most {number_format.format_times(1 + high, 0, 1 + high)[0]}"
        )
    less = f"{format_percent(abs(low), low, high)} %"
    more = f"{format_percent(high, low, high)} %"
    better = None if wording.is_directed else row.metric.better
    side = f" ({better} is better)" if better else ""
    return f"{wording.verb} {less} {wording.below} to {more} {wording.above}{side}"


def describe_no_worse(row: Row, margin: str) -> str:
    """Return `takes at most 2 % longer`, `computes at most 2 % slower`."""
    more = row.metric.better == "lower"
    return f"{find_wording(row).verb} {format_size(row, f'at most {margin}', more).replace('a at most', 'an at most')}"


def is_time(row: Row) -> bool:
    metric = row.metric
    return metric.unit == "s" and metric.better == "lower" and metric.name not in NO_DURATION


def find_speed_verb(row: Row) -> str | None:
    """Return `computes` or `transfers data` for operations or data per second; else None."""
    metric = row.metric
    if not is_rate(metric.unit, metric.better):
        return None
    return next((word for units, word in SPEEDS if units.fullmatch(metric.unit or "")), None)


def is_count_rate(row: Row) -> bool:
    """Return whether it counts named things per second: files, events."""
    metric = row.metric
    return is_rate(metric.unit, metric.better) and metric.unit != "1/s" and not find_speed_verb(row)


def is_exact(row: Row) -> bool:
    """Return whether the overhead is of a count that did not vary on either side."""
    return row.overhead is not None and row.overhead.method == EXACT


def format_mean_and_n(row: Row) -> str:
    """Return `800 ± 32 ms, n = 5`."""
    if row.interval is None:
        return "no values"
    return f"{number_format.format_mean(row.interval, row.metric.unit)}, n = {row.format_n}"
