"""Two jobs side by side, for the terminal and for programs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from steelyard.analysis.job import differences
from steelyard.analysis.job.differences import Fact, Used
from steelyard.analysis.job.job_view import JobView
from steelyard.analysis.job.time_series import LEVELS, JobTimeSeries, Series
from steelyard.analysis.sources import sample_csv
from steelyard.analysis.stats.number_format import format_binary
from steelyard.facts.quantities import METRICS
from steelyard.wrappers.base import console
from steelyard.wrappers.show import time_series
from steelyard.wrappers.show.job_data import read_time_series
from steelyard.wrappers.show.node_usage import choose_format
from steelyard.wrappers.show.terminal_text import group_by_reason
from steelyard.wrappers.show.time_series import format_sparkline

IN_BYTES = ("memory held", "memory of the node")
ONE_EACH = (
    "One run each: this is what differs, not why, and not whether it would again.\n"
    "`steelyard run --repeat 10` or a study (docs/study.md) shows that."
)


def print_pair(a: JobView, b: JobView) -> None:
    """Print what differs, what each job used, and when their time series diverge."""
    found = differences.compare_facts(a, b)
    print_facts(a, b, found)
    used = differences.compare_usage(a, b)
    rows = [format_used(one) for one in used if (one.a, one.b) != (None, None)]
    headings = ("", f"A: {a.job_id}", f"B: {b.job_id}", "B / A")
    console.print_table(headings, rows, title="what they used")
    print_missing(used)
    print_courses(a, b)
    print(ONE_EACH)


def print_facts(a: JobView, b: JobView, found: list[Fact]) -> None:
    """Print the differing facts in the order of relevance, and only the names of equal ones."""
    rows = [
        (f.about, format_cell(f.about, f.a), format_cell(f.about, f.b)) for f in found if f.differs
    ]
    if rows:
        headings = ("", f"A: {a.job_id}", f"B: {b.job_id}")
        console.print_table(headings, rows, title="what differs")
    else:
        console.print_line("what differs: nothing that is known of both")
    alike = differences.list_equal_facts(found)
    if alike:
        console.print_line(f"alike: {', '.join(alike)}")


def format_cell(about: str, value: object) -> object:
    """Format sizes and times with units."""
    if about in IN_BYTES and str(value).isdigit():
        return format_binary(float(str(value)))
    if about == "time limit" and isinstance(value, float):
        return console.format_seconds(value)
    return value


def format_used(used: Used) -> tuple[object, ...]:
    """Return the cells of one quantity."""
    format_value = choose_format(used.name, used.unit)
    ratio = None if used.ratio is None else f"{used.ratio:.3g}"
    return quantity_name(used), format_value(used.a), format_value(used.b), ratio


def quantity_name(used: Used) -> str:
    """Return the name of a quantity for the terminal."""
    if used.name == differences.GPU_ENERGY:
        return "energy of its GPUs"
    return METRICS[used.name].words if used.name in METRICS else "time"


def print_missing(used: Sequence[Used]) -> None:
    """Print which figures of which job are missing, each reason once."""
    missing: dict[str, str] = {}
    for one in used:
        for side, why in (("A", one.a_missing), ("B", one.b_missing)):
            if why is not None:
                missing[f"{side}: {quantity_name(one)}"] = why
    for why, names in group_by_reason(missing).items():
        console.print_line(f"  {', '.join(names)}: {why}")


def print_courses(a: JobView, b: JobView) -> None:
    """Print the time series of both jobs, each from its own start, on one scale."""
    (left, why_left), (right, why_right) = read_time_series([a, b])
    if left is None or right is None:
        console.print_line(f"over their time: not known: {why_left or why_right}")
        return
    letters = time_series.line_width()
    width_s = max(left.end_s, right.end_s) / letters
    lines = [line for name in time_series.WORDS for line in format_pair(left, right, name, letters)]
    if lines:
        console.print_line(
            f"over their time, both from their start; a letter is {console.format_seconds(width_s)}"
        )
    for line in (*lines, *describe_thinning(a, b)):
        console.print_line(line)


def describe_thinning(a: JobView, b: JobView) -> list[str]:
    """Return notes on jobs with thinned samples, in which a divergence is harder to see."""
    notes = ((name, note) for name, view in (("A", a), ("B", b)) for note in view.notes)
    return [f"{name}: {note}" for name, note in notes if sample_csv.THINNED in note]


def format_pair(a: JobTimeSeries, b: JobTimeSeries, name: str, letters: int) -> list[str]:
    """Return a line for each job, and one with the time of their divergence; [] if either has no
    values, or both are zero."""
    pair = [align_series(course, name, max(a.end_s, b.end_s), letters) for course in (a, b)]
    tops = [max((v for v in series if v is not None), default=None) for series in pair]
    if tops[0] is None or tops[1] is None:
        return []
    heading, title = time_series.WORDS[name]
    top = max(tops[0], tops[1])
    if not top:
        return []
    lines = [
        f"  {heading if letter == 'A' else '':<13}{letter} {format_sparkline(series, top):<{letters}} to {title(most)}"
        for letter, series, most in zip("AB", pair, (tops[0], tops[1]), strict=True)
    ]
    if name not in LEVELS and (begin := differences.find_divergence_s(a, b, name)) is not None:
        lines.append(
            f"  {'':<13}apart by more than a tenth of all from {console.format_seconds(begin)} on"
        )
    return lines


def align_series(course: JobTimeSeries, name: str, end_s: float, number: int) -> Series:
    """Return a series in equal intervals of the longer job's time, as many as the job lasted."""
    own = max(1, round(number * course.end_s / end_s))
    return differences.resample(course.series[name], course.piece_s, end_s / number, own)


def as_json(a: JobView, b: JobView) -> dict[str, Any]:
    """Return the comparison as a document."""
    found = differences.compare_facts(a, b)
    (left, why_left), (right, why_right) = read_time_series([a, b])
    return {
        "format": "steelyard-compare-jobs",
        "version": 1,
        "a": a.job_id,
        "b": b.job_id,
        "differences": [asdict(fact) for fact in found if fact.differs],
        "alike": differences.list_equal_facts(found),
        "used": [asdict(one) | {"ratio": one.ratio} for one in differences.compare_usage(a, b)],
        "course": None if left is None or right is None else courses_json(left, right),
        "course_missing": why_left or why_right,
        "course_notes": describe_thinning(a, b),
    }


def courses_json(a: JobTimeSeries, b: JobTimeSeries) -> dict[str, Any]:
    """Return each time series in its own intervals, and the times of divergence."""
    apart = {
        name: differences.find_divergence_s(a, b, name) for name in a.series if name not in LEVELS
    }
    return {"a": asdict(a), "b": asdict(b), "apart_from_s": apart}
