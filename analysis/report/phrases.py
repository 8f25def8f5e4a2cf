"""Parts of the answer's sentences: conditions and overheads in words.

`on virtual instead of physical nodes`, `takes 30 times as long (26 to 35 times)`,
`computes 16 % slower (10 to 21 %)`. An overhead keeps the unit's direction: seconds take longer,
operations by second are computed slower. Anything else is named, with the side that is better.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from steelyard.analysis.stats import number_format
from steelyard.analysis.stats.overhead import (
    AS_TIMES,
    EXACT,
    NO_DURATION,
    between,
    percent,
    percent_range,
)
from steelyard.analysis.stats.rates import is_rate
from steelyard.analysis.summary.summary import Row

OPERATIONS = re.compile(r"[kMGTP]?(?:op|flop|up)s?/s")  # Mop/s, Gflop/s, Gup/s
DATA = re.compile(r"(?:[kMGT]?B|[kMGT]?bit|bytes)(?:/s|_per_s)")
SPEEDS = ((OPERATIONS, "computes"), (DATA, "transfers data"))


def on_level(factor: str, level: str, instead: str | None = None) -> str:
    """One factor's level, and that of the baseline: `with 2 clients instead of 1`."""
    other = f" instead of {instead}" if instead is not None else ""
    match factor, level:
        case "node_type", _:
            return f"on {level}{other} nodes"
        case "kernel_release", _:
            return f"on kernel {level}{other}"
        case "clients", _:
            return f"with {level} client{'' if level == '1' else 's'}{other}"
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


def joined(words: Iterable[str]) -> str:
    """`a, b and c`."""
    every = list(words)
    return " and ".join(filter(None, [", ".join(every[:-1]), *every[-1:]]))


def limits(row: Row) -> tuple[float, float]:
    """Of its overhead, which has an interval; of bounds, which have none: no limit."""
    found = row.overhead
    if found is None or found.low is None or found.high is None:
        return -math.inf, math.inf
    return found.low, found.high


def change(row: Row) -> str:
    """`takes 12 % longer (9 to 15 %)`, `has 2 % lower size (1 to 3 %), which is better`."""
    found = row.overhead
    assert found is not None and found.value is not None
    low, high = limits(row)
    exactly = "exactly " if is_exact(row) else ""
    if found.value > AS_TIMES:
        ratio, ends = number_format.times(1 + found.value, 1 + low, 1 + high)
        ends = f" ({to(ends)} times)" if ends else ""
        return f"{factor_words(row, exactly + ratio)}{ends}{which_is(row, more=True)}"
    more = found.value > 0
    size = percent(abs(found.value), low, high)
    if high < 0:
        low, high = -high, -low
    ends = "" if low == high else f" ({to(percent_range(low, high))} %)"
    return f"{verb(row)} {by(row, f'{exactly}{size} %', more)}{ends}{which_is(row, more)}"


def to(ends: str) -> str:
    """`9 to 15` of `9 … 15`: in a sentence."""
    return ends.replace(" … ", " to ")


def interval(row: Row) -> str:
    """` (−0.4 to 0.9 %)`; empty where there is no spread."""
    low, high = limits(row)
    return "" if low == high else f" ({to(between(low, high))})"


def verb(row: Row) -> str:
    """What the program does: `takes`, `uses`, `computes`, `reaches`, `has`."""
    if is_time(row):
        return "takes"
    if is_energy(row):
        return "uses"
    if speed := speed_verb(row):
        return speed
    return "reaches" if is_count_rate(row) else "has"


def by(row: Row, size: str, more: bool) -> str:
    """`12 % longer`, `36 % less time`, `5 % more energy`, `16 % slower`, `2 % lower size`."""
    if is_time(row):
        return f"{size} longer" if more else f"{size} less time"
    if is_energy(row):
        return f"{size} {'more' if more else 'less'} energy"
    if speed_verb(row):
        return f"{size} {'faster' if more else 'slower'}"
    if is_count_rate(row):
        return f"{size} {'more' if more else 'fewer'} {number_format.unit_text(row.metric.unit)}"
    return f"{size} {'higher' if more else 'lower'} {row.metric.name}"


def factor_words(row: Row, ratio: str) -> str:
    """`takes 20 times as long`, `has 3 times the size`."""
    if is_time(row):
        return f"takes {ratio} times as long"
    if is_energy(row):
        return f"uses {ratio} times the energy"
    if speed := speed_verb(row):
        return f"{speed} {ratio} times as fast"
    if is_count_rate(row):
        return f"reaches {ratio} times the {number_format.unit_text(row.metric.unit)}"
    return f"has {ratio} times the {row.metric.name}"


def which_is(row: Row, more: bool) -> str:
    """`, which is worse`: of a figure whose better side its words do not tell."""
    better = row.metric.better
    if better is None or is_time(row) or is_energy(row) or speed_verb(row) or is_count_rate(row):
        return ""
    return ", which is worse" if more == (better == "lower") else ", which is better"


def between_words(row: Row) -> str:
    """Of an interval that holds 0: `takes 36 % less to 5 % more time`, `computes 26 % slower to 10 % faster`."""
    low, high = limits(row)
    less = f"{percent(abs(low), low, high)} %"
    if high > AS_TIMES:
        times = number_format.times(1 + high, 1 + low, 1 + high)[0]
        end = factor_words(row, times).removeprefix(f"{verb(row)} ")
        return f"{verb(row)} {by(row, less, False)} to {end}"
    more = f"{percent(high, low, high)} %"
    if is_time(row):
        return f"takes {less} less to {more} more time"
    if is_energy(row):
        return f"uses {less} less to {more} more energy"
    if speed_verb(row):
        return f"{verb(row)} {less} slower to {more} faster"
    if is_count_rate(row):
        return f"reaches {less} fewer to {by(row, more, True)}"
    side = {"lower": " (lower is better)", "higher": " (higher is better)"}
    name = row.metric.name
    return f"has {less} lower to {more} higher {name}{side.get(row.metric.better or '', '')}"


def no_worse(row: Row, margin: str) -> str:
    """`takes at most 2 % longer`, `computes at most 2 % slower`."""
    more = row.metric.better == "lower"
    return f"{verb(row)} {by(row, f'at most {margin}', more).replace('a at most', 'an at most')}"


def noun(row: Row) -> str:
    """`time`, `energy`, `gflops`."""
    if is_time(row):
        return "time"
    return "energy" if is_energy(row) else row.metric.name


def is_time(row: Row) -> bool:
    metric = row.metric
    return metric.unit == "s" and metric.better == "lower" and metric.name not in NO_DURATION


def is_energy(row: Row) -> bool:
    return row.metric.name == "energy_j"


def speed_verb(row: Row) -> str | None:
    """`computes`, `transfers data`: of operations and of data by second; None: no such speed."""
    metric = row.metric
    if not is_rate(metric.unit, metric.better):
        return None
    return next((word for units, word in SPEEDS if units.fullmatch(metric.unit or "")), None)


def is_count_rate(row: Row) -> bool:
    """Whether it counts named things by second: files, events."""
    metric = row.metric
    return is_rate(metric.unit, metric.better) and metric.unit != "1/s" and not speed_verb(row)


def is_exact(row: Row) -> bool:
    """Of a count that did not vary on either side."""
    return row.overhead is not None and row.overhead.method == EXACT


def mean_and_n(row: Row) -> str:
    """`800 ± 32 ms, n = 5`."""
    if row.interval is None:
        return "no values"
    return f"{number_format.mean_words(row.interval, row.metric.unit)}, n = {row.n_words}"
