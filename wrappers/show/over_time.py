"""CPU, memory and power over a job's time, a line each."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.analysis.job.course import Course
from steelyard.analysis.stats.readable import binary
from steelyard.wrappers.base import console
from steelyard.wrappers.show import narrow
from steelyard.wrappers.show.sparkline import narrowed, sparkline
from steelyard.wrappers.show.told import Told

WORDS: dict[str, tuple[str, Callable[[float], str]]] = {
    "cpus_busy": ("CPUs busy", "{:.3g}".format),
    "memory_bytes": ("memory", binary),
    "power_w": ("power of node", "{:.3g} W".format),
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
    """None: nobody tells."""
    series = course.series[name]
    known = [value for value in series if value is not None]
    if not known:
        return None
    heading, words = WORDS[name]
    return f"  {heading:<13}{sparkline(narrowed(series, letters))} to {words(max(known))}"
