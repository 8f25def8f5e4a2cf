"""Values as Slurm prints them: node lists, job ids and states of jobs.

The short form of node lists: `n[1-2,07-09],login` is n1, n2, n07, n08, n09, login.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from steelyard.analysis.base.errors import UsageError

# A wrong list (n[1-999999999]) must not fill the memory; the largest clusters have about 10^4
# nodes.
MAX_NODES = 1_000_000
MAX_DIGITS = 30
SHOWN_CHARACTERS = 80


def shorten(text: str) -> str:
    """Shorten a list to fit into a line."""
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


def describe_error(node_list: str, what: str) -> UsageError:
    """Return the error for a list in one line, however long the list is."""
    return UsageError(f"node list '{shorten(node_list)}': {what}", shorten(node_list))


def split_outside_brackets(text: str) -> list[str]:
    """Split `n[1,2],m` into `n[1,2]` and `m`."""
    return re.findall(r"(?:[^,\[]|\[[^\]]*\]?)+", text)


def is_number(text: str) -> bool:
    """Whether the text is all digits, and not longer than any node's number."""
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS


def expand_range(text: str, node_list: str) -> Iterator[str]:
    """Yield 07, 08, 09 for `07-09`; the first number gives the width."""
    first, dash, last = text.partition("-")
    if not is_number(first) or (dash and not is_number(last)):
        raise describe_error(node_list, f"'{shorten(text)}' is no number or range of numbers")
    low, high = int(first), int(last) if dash else int(first)
    if high - low >= MAX_NODES:
        raise describe_error(node_list, f"'{text}' names more than {MAX_NODES} nodes")
    return (str(number).zfill(len(first)) for number in range(low, high + 1))


def expand_ranges(text: str, node_list: str) -> list[str]:
    """Return 1, 2, 07 for `1-2,07`."""
    found = itertools.chain.from_iterable(expand_range(item, node_list) for item in text.split(","))
    numbers = list(itertools.islice(found, MAX_NODES + 1))
    if len(numbers) > MAX_NODES:
        raise describe_error(node_list, f"more than {MAX_NODES} nodes")
    return numbers


def expand_nodes(text: str) -> list[str]:
    """Return the names of a node list, in order; raise UsageError for an invalid list."""
    names: list[str] = []
    for item in split_outside_brackets(text.strip()):
        pieces = re.split(r"\[([^\]]*)\]", item)
        if any("[" in piece or "]" in piece for piece in pieces):
            raise describe_error(text, f"brackets do not match in '{shorten(item)}'")
        choices: list[list[str]] = []
        for index, piece in enumerate(pieces):  # every second piece was in brackets
            choices.append(expand_ranges(piece, text) if index % 2 else [piece])
            if len(names) + math.prod(map(len, choices)) > MAX_NODES:
                raise describe_error(text, f"more than {MAX_NODES} nodes")
        names += ("".join(combination) for combination in itertools.product(*choices))
    return names


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
