"""CPU, memory, power, bytes of storage and network over a job's time, a line each."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.analysis.job.course import Course
from steelyard.analysis.stats.readable import binary, scale
from steelyard.wrappers.base import console
from steelyard.wrappers.show import narrow
from steelyard.wrappers.show.sparkline import narrowed, sparkline
from steelyard.wrappers.show.told import Told


def speed(value: float) -> str:
    """`12.3 MB/s`."""
    factor, unit = scale(value, "bytes_per_s")
    return f"{value / factor:.3g} {unit}"


WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "cpus_busy": ("CPUs busy", "{:.3g}".format),
    "memory_bytes": ("memory", binary),
    "power_w": ("power of node", "{:.3g} W".format),
    "read_bytes_per_s": ("from storage", speed),
    "write_bytes_per_s": ("to storage", speed),
    "rx_bytes_per_s": ("node received", speed),
    "tx_bytes_per_s": ("node sent", speed),
}
NAME_WIDTH, REST_WIDTH = 15, 21
NARROWEST, WIDEST = 10, 60


def width() -> int:
    """Letters of a line that fit beside its words."""
    return min(max((narrow.columns() or 80) - NAME_WIDTH - REST_WIDTH, NARROWEST), WIDEST)


def print_course(told: Told) -> None:
    """From 0 to the highest; nothing where there are no samples."""
    course = told.course
    if course is None:
        return
    lines = [line for name in WORDS if (line := line_of(course, name, width())) is not None]
    if not lines:
        return
    every = len(course.nodes) == len(told.view.all_nodes)
    nodes = "" if every else f" on {', '.join(course.nodes)}"
    console.print_line(f"over its {console.format_seconds(course.end_s)}{nodes}")
    for line in lines:
        console.print_line(line)


def line_of(course: Course, name: str, letters: int) -> str | None:
    """None: nobody tells, or there was nothing of it."""
    series = course.series[name]
    top = max((value for value in series if value is not None), default=0.0)
    if not top:
        return None
    heading, words = WORDS[name]
    return f"  {heading:<13}{sparkline(narrowed(series, letters))} to {words(top)}"
