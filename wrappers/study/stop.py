"""[study] stop of a study file: repeat until the intervals of the means are narrow enough."""

from __future__ import annotations

import re
from dataclasses import dataclass

from steelyard.wrappers.study.reader import Table

KEYS = ("half_width", "max_repeat")
MOST_REPEATS = 999  # a run id has three digits for the repeat
PERCENT = re.compile(r"(\d{1,2}(?:\.\d+)?)\s?%")


@dataclass(frozen=True)
class Stop:
    """When a study has enough repeats."""

    half_width: float  # of the interval, as a share of the mean
    max_repeat: int


def read_stop(head: Table, repeat: int) -> Stop | None:
    """Check `stop`; None when absent."""
    if "stop" not in head.data:
        return None
    table = head.table("stop")
    table.only(KEYS)
    text = table.data.get("half_width")
    match = PERCENT.fullmatch(text) if isinstance(text, str) else None
    if match is None or not float(match[1]):
        table.wrong("half_width", text, 'a share of the mean above zero, such as "1%"')
    most = table.count("max_repeat", 100, most=MOST_REPEATS)
    if most < repeat:
        table.wrong("max_repeat", most, f"at least repeat = {repeat}, with which it begins")
    return Stop(float(match[1]) / 100, most)
