"""Slurm's job ids and states, and the corresponding states of Steelyard."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.analysis.base.errors import UsageError
from steelyard.analysis.sources.hostlist import expand_ranges, is_number

# First word of State in sacct and squeue, and the state of docs/formats.md part 8.
STATES = {
    "BOOT_FAIL": "node_fail",
    "CANCELLED": "cancelled",
    "COMPLETED": "completed",
    "COMPLETING": "running",
    "CONFIGURING": "running",
    "DEADLINE": "timeout",
    "EXPEDITING": "pending",
    "FAILED": "failed",
    "LAUNCH_FAILED": "failed",
    "NODE_FAIL": "node_fail",
    "OUT_OF_MEMORY": "out_of_memory",
    "PENDING": "pending",
    "POWER_UP_NODE": "pending",
    "PREEMPTED": "cancelled",
    "RECONFIG_FAIL": "failed",
    "REQUEUED": "requeued",
    "REQUEUE_FED": "pending",
    "REQUEUE_HOLD": "pending",
    "RESIZING": "running",
    "RESV_DEL_HOLD": "pending",
    "REVOKED": "cancelled",
    "RUNNING": "running",
    "SIGNALING": "running",
    "SPECIAL_EXIT": "pending",
    "STAGE_OUT": "running",
    "STOPPED": "running",
    "SUSPENDED": "running",
    "TIMEOUT": "timeout",
}

REASONS = {
    "BOOT_FAIL": "a node did not boot",
    "DEADLINE": "the job's deadline passed",
    "EXPEDITING": "EXPEDITING: it is to start before others",
    "LAUNCH_FAILED": "LAUNCH_FAILED: it did not start on its nodes",
    "NODE_FAIL": "a node failed",
    "OUT_OF_MEMORY": "the job went out of memory",
    "POWER_UP_NODE": "POWER_UP_NODE: waiting for nodes that are switched on",
    "PREEMPTED": "the job was preempted",
    "RECONFIG_FAIL": "RECONFIG_FAIL: its nodes could not be set up for it",
    "REQUEUED": "the job was requeued",
    "REVOKED": "a sibling cluster started the job",
}


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
