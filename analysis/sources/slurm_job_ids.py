"""Slurm's job ids, as sacct and squeue print them, and their lists of array tasks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources.hostlist import expand_ranges, is_number


@dataclass(frozen=True, slots=True)
class JobKey:
    """The parts of sacct's JobID."""

    job: str  # id of the array, of the heterogeneous job, or of the job
    task: str | None = None
    waits_in_array: bool = False
    waiting_tasks: tuple[int, ...] = ()
    het_offset: int | None = None
    step: str | None = None


JOB_ID = re.compile(
    r"(?P<job>\d+)(?:_(?P<task>\d+)|_\[(?P<tasks>[\d,:.-]+)(?:%\d+)?\]|\+(?P<het>\d+))?"
    r"(?:\.(?P<step>.+))?",
    re.ASCII,
)


def split_job_id(text: str) -> JobKey | None:
    """Return the parts of `100`, `100_3`, `100_[3-9%2]`, `100+1` or a step; None: no job id."""
    match = JOB_ID.fullmatch(text)
    if match is None:
        return None
    listed = match["tasks"]
    tasks = tuple(parse_waiting_tasks(listed)) if listed and "..." not in listed else ()
    het = int(match["het"]) if match["het"] else None
    return JobKey(match["job"], match["task"], listed is not None, tasks, het, match["step"])


def parse_waiting_tasks(text: str) -> Iterator[int]:
    """Yield 1, 3, 5, 7, 9 for `1,3,5-9:2`."""
    for item in text.split(","):
        numbers, colon, step = item.partition(":")
        if colon and not (is_number(step) and int(step)):
            raise UsageError(f"array tasks '{text[:80]}': '{step[:80]}' is no step")
        yield from map(int, expand_ranges(numbers, text)[:: int(step or 1)])
