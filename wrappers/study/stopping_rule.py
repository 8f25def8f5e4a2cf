"""[study] stop of a study file: repeat until the intervals of the means are narrow enough."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.analysis.stats.number_format import parse_percent
from steelyard.wrappers.study.study_table import Table

KEYS = ("half_width", "max_repeat")
MOST_REPEATS = 999  # a run id has three digits for the repeat


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
    half_width = parse_percent(text)
    if half_width is None:
        table.wrong("half_width", text, 'a share of the mean above zero, such as "1%"')
    most = table.count("max_repeat", 100, most=MOST_REPEATS)
    if most < repeat:
        table.wrong("max_repeat", most, f"at least repeat = {repeat}, with which it begins")
    return Stop(half_width, most)


def read_equivalent(head: Table) -> float | None:
    """Check `equivalent`: overheads of less count as none; as a share, None when absent."""
    if "equivalent" not in head.data:
        return None
    share = parse_percent(head.data["equivalent"])
    if share is None:
        head.wrong(
            "equivalent",
            head.data["equivalent"],
            'the largest overhead that does not matter, such as "2%"',
        )
    return share
