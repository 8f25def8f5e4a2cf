"""The remaining time of a study: the remaining work divided by the rate of completed work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.wrappers.submit.run_state import RunState

ACTIVE = ("pending", "running", "requeued")
# A longer pause between runs separates two stretches of work.
GAP_S = 3600


def time_left_s(states: Sequence[RunState], now_unix_s: float) -> float | None:
    """Return the seconds until no run waits or runs; None until a run has ended."""
    unended = [entry for entry in states if entry.state in ACTIVE]
    if not unended:
        return 0.0
    ended = [
        (entry.start_unix_s, entry.elapsed_s, run_kind(entry))
        for entry in states
        if entry.start_unix_s is not None and entry.elapsed_s is not None
    ]
    if not ended:
        return None
    means = mean_by_kind([(what, elapsed_s) for _, elapsed_s, what in ended])
    overall = sum(elapsed_s for _, elapsed_s, _ in ended) / len(ended)
    work_s = sum(means.get(run_kind(entry), overall) for entry in unended)
    stretch = find_last_stretch(sorted((start, elapsed_s) for start, elapsed_s, _ in ended))
    wall_s = max(now_unix_s - stretch[0][0], 1e-3)
    done_s = sum(elapsed_s for _, elapsed_s in stretch)
    return work_s * wall_s / done_s if done_s > 0 else None


def runs_per_hour(states: Sequence[RunState], now_unix_s: float) -> float | None:
    """Return the runs ended per hour since the last long pause."""
    ended = sorted(
        (entry.start_unix_s, entry.elapsed_s)
        for entry in states
        if entry.start_unix_s is not None and entry.elapsed_s is not None
    )
    if not ended:
        return None
    stretch = find_last_stretch(ended)
    is_over = not any(entry.state in ACTIVE for entry in states)
    end = max(start + elapsed for start, elapsed in stretch) if is_over else now_unix_s
    return 3600 * len(stretch) / max(end - stretch[0][0], 1e-3)


def run_kind(entry: RunState) -> tuple[str, str]:
    """Return the run's kind; runs of the same kind take about equally long."""
    return entry.run.variant, entry.run.condition_label


def mean_by_kind(pairs: Sequence[tuple[tuple[str, str], float]]) -> dict[tuple[str, str], float]:
    """Return the mean of each kind."""
    groups: dict[tuple[str, str], list[float]] = {}
    for what, elapsed_s in pairs:
        groups.setdefault(what, []).append(elapsed_s)
    return {what: sum(values) / len(values) for what, values in groups.items()}


def find_last_stretch(runs: Sequence[tuple[float, float]]) -> Sequence[tuple[float, float]]:
    """Return the runs after the last long pause; (start, elapsed) in order of start."""
    first = 0
    for index in range(1, len(runs)):
        start, elapsed_s = runs[index - 1]
        if runs[index][0] - (start + elapsed_s) > GAP_S:
            first = index
    return runs[first:]
