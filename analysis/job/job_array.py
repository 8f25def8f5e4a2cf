"""Usage of a complete array, and advice on what to request next time.

An array's request is for each of its tasks. So less can be requested only if all of them leave it
unused: the task with the largest usage decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from steelyard.analysis.job.advice import Advice, advise, find_no_advice_reason
from steelyard.analysis.job.job_view import JobView
from steelyard.analysis.job.usage import Efficiency, Usage, compute_efficiency


@dataclass(frozen=True, slots=True)
class ArrayUsage:
    """Usage of an array: `cpu` of all tasks together, `memory` and `time` of the largest task."""

    states: dict[str, int]
    cpu: Usage
    memory: Usage
    time: Usage
    energy_j: float | None  # None: unknown for a task
    advice: list[Advice]
    no_advice: str | None


def summarize_tasks(views: Sequence[JobView]) -> ArrayUsage:
    """Return the usage of all tasks of one array."""
    used = [compute_efficiency(view) for view in views]
    joules = [view.total("energy_j") for view in views]
    advice, why = advise_all(views)
    return ArrayUsage(
        states=dict(Counter(view.row.state for view in views if view.row is not None)),
        cpu=sum_usage([one.cpu for one in used]),
        memory=find_largest([one.memory for one in used]),
        time=find_largest([one.time for one in used]),
        energy_j=None if None in joules else sum(one for one in joules if one is not None),
        advice=advice,
        no_advice=why,
    )


def sum_usage(uses: Sequence[Usage]) -> Usage:
    """Return the sum of the known usage; the allocation only if it is known for all."""
    used = [one.used for one in uses if one.used is not None]
    allocated = [one.allocated for one in uses if one.allocated is not None]
    is_least = len(used) < len(uses) or any(one.is_least for one in uses)
    return Usage(
        sum(allocated) if len(allocated) == len(uses) else None,
        sum(used) if used else None,
        is_least,
    )


def find_largest(uses: Sequence[Usage]) -> Usage:
    """Return the largest usage."""
    known = [one for one in uses if one.used is not None]
    return max(known, key=lambda one: one.used or 0.0) if known else Usage()


def advise_all(views: Sequence[JobView]) -> tuple[list[Advice], str | None]:
    """Return the advice that holds for every task, from the task with the largest usage.

    Without advice, also returns the reason.
    """
    tasks = [advise_task(view) for view in views]
    for task in tasks:
        why = find_no_advice_reason(task)
        if why is not None:
            return [], f"{task.job_id}: {why}"
    used = [compute_efficiency(task) for task in tasks]
    by_task = [
        {one.about: one for one in advise(task, own, None)}
        for task, own in zip(tasks, used, strict=True)
    ]
    found = []
    for about in ("memory", "time"):
        if by_task and all(about in one for one in by_task):
            most = max(range(len(used)), key=lambda n: format_used(used[n], about))
            advice = by_task[most][about]
            found.append(replace(advice, text=f"{advice.text} ({tasks[most].job_id} took most)"))
    return found, None


def advise_task(view: JobView) -> JobView:
    """Return the task as an independent job."""
    allocation = None if view.allocation is None else replace(view.allocation, shares_request=False)
    return replace(view, allocation=allocation)


def format_used(used: Efficiency, about: str) -> float:
    """Return the usage of memory in bytes or of time in seconds, as in `about`."""
    return (used.memory if about == "memory" else used.time).used or 0.0
