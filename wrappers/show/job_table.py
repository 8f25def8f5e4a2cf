"""Several jobs, a line each."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from steelyard.analysis.job import job_array
from steelyard.analysis.job.job_array import ArrayUsage
from steelyard.analysis.job.job_view import JobView
from steelyard.analysis.job.usage import Efficiency, compute_efficiency
from steelyard.analysis.stats.number_format import format_binary
from steelyard.wrappers.base import console
from steelyard.wrappers.show import terminal_text
from steelyard.wrappers.show.efficiency_text import format_minimum, format_share
from steelyard.wrappers.show.terminal_text import format_joules, format_percent

HEADINGS = ("job", "name", "state", "nodes", "CPUs", "time", "of limit", "CPU", "memory", "of it",
            "energy", "tags")  # fmt: skip
DISPENSABLE = (
    "energy",
    "of limit",
    "nodes",
    "of it",
    "tags",
    "name",
    "CPUs",
)  # columns that are dropped first on a narrow terminal


def print_jobs(views: Sequence[JobView], is_array: bool = False) -> None:
    """Print the jobs, for an array with the sum of its tasks. `–` is unknown; `steelyard show
    JOBID` gives the reason."""
    rows = [format_row(view, compute_efficiency(view)) for view in views]
    total = job_array.summarize_tasks(views) if is_array else None
    if total is not None:
        rows.append(format_array(total, len(views)))
    console.print_table(
        *terminal_text.drop_columns(HEADINGS, rows, DISPENSABLE, terminal_text.terminal_columns())
    )
    for view in views:
        for line in view.refused:
            console.print_line(f"{view.job_id}: {line}")
    if total is not None:
        print_array(total)
    if sys.stdout.isatty():
        print("CPU: of its CPUs × its time what was used; `steelyard show JOBID` prints all of one")


def format_row(view: JobView, used: Efficiency) -> tuple[object, ...]:
    """Return the cells of one job."""
    row, allocation = view.row, view.allocation
    return (
        view.job_id,
        row.name if row is not None else None,
        row.state if row is not None else "from its records",
        len(view.all_nodes) or None,
        allocation.cpus if allocation is not None else None,
        "< 1 s" if used.time.used == 0 else console.format_seconds(used.time.used),
        format_percent(used.time.share),
        format_share(used.cpu),
        format_minimum(used.memory, format_binary(used.memory.used)),
        format_share(used.memory),
        format_joules(view.total("energy_j")),
        ", ".join(f"{key}={value}" for key, value in find_tags(view).items()) or None,
    )


def find_tags(view: JobView) -> dict[str, str]:
    """Return the tags of the nodes' records, else of the accounting or a cluster's database."""
    recorded = {key: value for node in view.nodes for key, value in node.record.tags.items()}
    found = (
        recorded or (view.admin_comment or {}).get("tags") or (view.stored_nodes or {}).get("tags")
    )
    return {str(k): str(v) for k, v in found.items()} if isinstance(found, dict) else {}


def format_array(total: ArrayUsage, tasks: int) -> tuple[object, ...]:
    """Return the cells for an array: CPU of all tasks; time and memory of the task that used
    most."""
    states = ", ".join(f"{count} {state}" for state, count in total.states.items())
    memory = format_binary(total.memory.used)
    return (
        f"all {tasks}", None, states, None, None,
        f"≤ {console.format_seconds(total.time.used)}", format_percent(total.time.share),
        format_share(total.cpu), f"≤ {memory}", format_share(total.memory), format_joules(total.energy_j), None,
    )  # fmt: skip


def print_array(total: ArrayUsage) -> None:
    """Print what all tasks used together, and what to request next time."""
    if total.cpu.used is not None:
        least = "at least " if total.cpu.is_least else ""
        allocated = (
            ""
            if total.cpu.allocated is None
            else f" of {console.format_seconds(total.cpu.allocated)} held"
        )
        print(f"CPU of all tasks: {least}{console.format_seconds(total.cpu.used)}{allocated}")
    if total.advice:
        print("next time, of each task")
    for one in total.advice:
        terminal_text.print_wrapped(f"{one.about}: {one.text}")
