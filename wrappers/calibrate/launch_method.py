"""A launch method of jobs: how a job starts a known load."""

from __future__ import annotations

from dataclasses import dataclass

from steelyard.wrappers.calibrate.known_loads import KnownLoad
from steelyard.wrappers.calibrate.limits import LimitTable

JOB_NAME = "steelyard-calibrate"
RATE_HZ = 10


@dataclass(frozen=True)
class LaunchMethod:
    """How a load is started, how many results it writes, and what runs besides it."""

    name: str
    load: KnownLoad
    lines: tuple[str, ...]  # the command line of each job
    program: str = ""  # runs the line and waits; empty: each job is a script
    options: tuple[str, ...] = ()
    rate_hz: int = RATE_HZ
    nodes: int = 1
    tasks: int = 0  # of an array job; 0: no array
    on_one_node: bool = False  # all jobs at the same time
    results: int = 1
    job_name: str = JOB_NAME
    beside: tuple[LimitTable, ...] = ()  # limits of what else runs in the job
    no_totals: str | None = None  # why the scheduler may miss this method's totals
    interrupt: tuple[str, ...] = ()  # run with the job's id when a result exists
