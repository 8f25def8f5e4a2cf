"""Counts that do not vary: their ratio is exact, and needs neither an interval nor a test.

Equal numbers in all runs have two causes. A count (bytes of a file, messages, iterations) is
deterministic: the next run has the same one. A clock that prints 0.01 s hides what varies below its
step. They are told apart by the unit, never by the values: only whole numbers of a unit that is
counted are exact. Whatever has another unit or none may be rounded.
"""

from __future__ import annotations

from collections.abc import Sequence

from steelyard.analysis.stats.overhead import EXACT, MIN_RUNS, Overhead

UNITS = frozenset((
    "B", "bytes", "bit", "bits", "calls", "count", "events", "faults", "files", "iterations",
    "messages", "operations", "packets", "processes", "segments", "steps",
))  # fmt: skip
SAMPLED = "memory"  # is read in pages, now and then: a peak between two readings is not seen
UNNAMED = (None, "", "1")


def is_counted(metric: str, unit: str | None, values: Sequence[float]) -> bool:
    """Whether each value is a whole number of something that is counted one by one."""
    return unit in UNITS and SAMPLED not in metric and are_whole(values)


def may_be_counted(unit: str | None, values: Sequence[float]) -> bool:
    """Whether they could be, if only their unit said so."""
    return unit in UNNAMED and are_whole(values)


def are_whole(values: Sequence[float]) -> bool:
    return all(float(value).is_integer() for value in values)


def exact_overhead(condition: Sequence[float], baseline: Sequence[float]) -> Overhead | None:
    """The ratio of two counts, each the same in all of its runs; None where one varies, where one
    has too few runs for that to be seen, or where they differ and the baseline is not above 0."""
    counts = len(condition), len(baseline)
    if min(counts) < MIN_RUNS or len(set(condition)) > 1 or len(set(baseline)) > 1:
        return None
    if condition[0] == baseline[0]:
        return Overhead(0.0, 0.0, 0.0, *counts, EXACT)
    if baseline[0] <= 0:
        return None
    value = (condition[0] - baseline[0]) / baseline[0]
    return Overhead(value, value, value, *counts, EXACT)
