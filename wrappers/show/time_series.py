"""CPU, memory, power, bytes of storage and network over a job's time, a line each."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise

from steelyard.analysis.job.time_series import JobTimeSeries
from steelyard.analysis.stats.number_format import choose_prefix, format_binary
from steelyard.wrappers.base import console
from steelyard.wrappers.show import terminal_text
from steelyard.wrappers.show.job_data import JobDetails

BLOCKS = "▁▂▃▄▅▆▇█"
ASCII = ".:-=+*#@"
UNKNOWN = "·"


def format_sparkline(series: Sequence[float | None], top: float | None = None) -> str:
    """Return a letter per value, from 0 to `top` (else the largest value); `·` for None."""
    highest = top or max((value for value in series if value is not None), default=0.0)
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    letters, unknown = (BLOCKS, UNKNOWN) if encoding == "utf8" else (ASCII, " ")
    return "".join(
        unknown if value is None else letters[letter_index(value, highest, len(letters))]
        for value in series
    )


def letter_index(value: float, highest: float, steps: int) -> int:
    """Return the index of a value's letter; the last one is for values close to the highest."""
    if highest <= 0 or value <= 0:
        return 0
    return min(int(value / highest * steps), steps - 1)


def average_neighbors(series: Sequence[float | None], width: int) -> list[float | None]:
    """Return at most `width` values: means of the known values of neighbors."""
    if len(series) <= width:
        return list(series)
    edges = [round(len(series) * n / width) for n in range(width + 1)]
    pieces = [series[a:b] for a, b in pairwise(edges)]
    known = [[value for value in piece if value is not None] for piece in pieces]
    return [sum(piece) / len(piece) if piece else None for piece in known]


def format_speed(value: float) -> str:
    """Return, for example, `12.3 MB/s`."""
    factor, unit = choose_prefix(value, "bytes_per_s")
    return f"{value / factor:.3g} {unit}"


WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "cpus_busy": ("CPUs busy", "{:.3g}".format),
    "memory_bytes": ("memory", format_binary),
    "power_w": ("power of node", "{:.3g} W".format),
    "read_bytes_per_s": ("from storage", format_speed),
    "write_bytes_per_s": ("to storage", format_speed),
    "rx_bytes_per_s": ("node received", format_speed),
    "tx_bytes_per_s": ("node sent", format_speed),
}
NAME_WIDTH, REST_WIDTH = 15, 21
NARROWEST, WIDEST = 10, 60


def line_width() -> int:
    """Return the number of letters that fit in a line with its labels."""
    return min(
        max((terminal_text.terminal_columns() or 80) - NAME_WIDTH - REST_WIDTH, NARROWEST), WIDEST
    )


def print_time_series(details: JobDetails) -> None:
    """Print each series from 0 to its highest value; nothing without samples."""
    course = details.course
    if course is None:
        return
    lines = [
        line for name in WORDS if (line := format_line(course, name, line_width())) is not None
    ]
    if not lines:
        return
    every = len(course.nodes) == len(details.view.all_nodes)
    nodes = "" if every else f" on {', '.join(course.nodes)}"
    console.print_line(f"over its {console.format_seconds(course.end_s)}{nodes}")
    for line in lines:
        console.print_line(line)


def format_line(course: JobTimeSeries, name: str, letters: int) -> str | None:
    """Return the line of one series; None if no node reports it, or all values are zero."""
    series = course.series[name]
    top = max((value for value in series if value is not None), default=0.0)
    if not top:
        return None
    heading, format_value = WORDS[name]
    return f"  {heading:<13}{format_sparkline(average_neighbors(series, letters))} to {format_value(top)}"
