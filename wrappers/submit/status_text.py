"""A study's progress in words: one line, the time left, what runs wait for."""

from __future__ import annotations

from steelyard.wrappers.base import console
from steelyard.wrappers.submit.status import Progress


def format_progress(progress: Progress) -> str:
    """`demo: 12 done, 4 running, 24 waiting, 0 failed of 40; about 1:20 left`."""
    words = [
        f"{progress.done} done",
        f"{progress.running} running",
        f"{progress.waiting} waiting",
        f"{progress.failed} failed",
    ]
    if progress.cancelled:
        words.append(f"{progress.cancelled} cancelled")
    text = f"{progress.study}: {', '.join(words)} of {progress.total}"
    if not progress.ended:
        text += f"; {format_time_left(progress)}"
    reasons = format_reasons(progress.waiting_reasons)
    return text + (f" (waiting for: {reasons})" if reasons and not progress.running else "")


def format_time_left(progress: Progress) -> str:
    """`1:20 left`."""
    if progress.time_left_s is None:
        return "time left unknown yet"
    return f"{console.format_seconds(progress.time_left_s)} left"


def format_reasons(reasons: dict[str, int]) -> str:
    """`2 Priority, 3 Resources`."""
    return ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))


def format_stuck_runs(progress: Progress) -> str | None:
    """What never runs, and what to do; None: all that waits may still run."""
    if not progress.stuck:
        return None
    return (
        f"{sum(progress.stuck.values())} runs wait for what does not come by itself "
        f"({format_reasons(progress.stuck)}): change what they ask for, or `steelyard cancel` them"
    )
