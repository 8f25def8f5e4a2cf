"""The progress of a study: its runs counted by state, the failed ones, and the time left.

The time left is the remaining work divided by the rate of completed work."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from steelyard.analysis.sources.study_files import RESULT_STATES, read_plan_as
from steelyard.jobscripts.plurals import counted, inflect
from steelyard.wrappers.base import console
from steelyard.wrappers.base.errors import MissingError
from steelyard.wrappers.study.folder import StudyDir
from steelyard.wrappers.study.planned_run import Run
from steelyard.wrappers.submit.run_state import (
    CANCELLED,
    FAILED,
    RUNNING,
    WAITING,
    RunState,
    StateCache,
    read_file_states,
    read_states,
)


@dataclass(frozen=True)
class Failure:
    """A run that failed or was cancelled, with the reason; `folder` and `end_unix_s` are those of
    its last attempt."""

    run_id: str
    variant: str
    condition_label: str
    state: str
    reason: str | None
    folder: str | None = None
    end_unix_s: float | None = None


@dataclass(frozen=True)
class Counts:
    """The runs of one condition, by state."""

    variant: str
    condition_label: str
    total: int
    done: int
    running: int
    waiting: int
    failed: int
    cancelled: int
    planned: int


@dataclass(frozen=True)
class Progress:
    """A study at one moment; `planned` runs are neither done nor submitted."""

    study: str
    study_dir: str
    unix_s: float
    total: int
    done: int
    running: int
    waiting: int
    failed: int
    planned: int
    time_left_s: float | None
    note: str | None  # which scheduler did not answer
    waiting_reasons: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    cancelled: int = 0  # not in any other count
    stuck: dict[str, int] = field(
        default_factory=dict
    )  # part of `waiting`: reason and number of runs that never start
    runs_per_hour: float | None = None
    conditions: list[Counts] = field(default_factory=list)

    @property
    def failed_runs(self) -> list[Failure]:
        """`failures` without cancelled runs."""
        return [one for one in self.failures if one.state in FAILED]

    @property
    def ended(self) -> bool:
        """Whether no run is active, except waiting runs that never start."""
        return self.running == 0 and self.waiting <= sum(self.stuck.values())


def read_progress(study_dir: Path, strict: bool = False) -> Progress:
    """Return the current progress by files and schedulers; ends of runs are cached
    (run_state.StateCache).

    If a scheduler does not answer, only the files count and `note` says so. With `strict`, raise
    MissingError instead."""
    study = StudyDir(study_dir.absolute())
    stored_study, runs = read_plan_as(study.path, Run)
    note = None
    try:
        with StateCache(study.path) as looks:
            states = read_states(study, runs, last_attempt=looks.last_attempt)
    except MissingError as error:
        if strict:
            raise
        states = read_file_states(study)
        if any(entry.state not in RESULT_STATES for entry in states):
            note = f"{error}; running and waiting are as the files have them"
    return count_states(str(stored_study.get("name") or study.path.stem), study, states, note)


def count_states(
    name: str, study: StudyDir, states: Sequence[RunState], note: str | None = None
) -> Progress:
    """Count the states."""
    waiting = [entry for entry in states if entry.state in WAITING]
    stuck = [entry for entry in waiting if entry.is_stuck]
    now, counts = time.time(), Counter(entry.state for entry in states)
    return Progress(
        study=name,
        study_dir=str(study.path),
        unix_s=now,
        total=len(states),
        done=count_in_states(counts, ("completed",)),
        running=count_in_states(counts, RUNNING),
        waiting=len(waiting),
        failed=count_in_states(counts, FAILED),
        planned=count_in_states(counts, ("planned",)),
        time_left_s=time_left_s([e for e in states if not e.is_stuck], now),
        note=note,
        waiting_reasons=count_reasons(waiting),
        failures=[describe_failure(e) for e in states if e.state in (*FAILED, *CANCELLED)],
        cancelled=count_in_states(counts, CANCELLED),
        stuck=count_reasons(stuck),
        runs_per_hour=runs_per_hour(states, now),
        conditions=count_by_condition(states),
    )


def count_reasons(waiting: Sequence[RunState]) -> dict[str, int]:
    """Return the scheduler's reasons for waiting, with their counts."""
    return dict(Counter(entry.reason for entry in waiting if entry.reason))


def count_by_condition(states: Sequence[RunState]) -> list[Counts]:
    """Return the counts of each condition, ordered by variant and label."""
    groups: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for entry in states:
        groups[entry.run.variant, entry.run.condition_label][entry.state] += 1
    kinds = (("completed",), RUNNING, WAITING, FAILED, CANCELLED, ("planned",))
    return [
        Counts(variant, label, counts.total(), *(count_in_states(counts, some) for some in kinds))
        for (variant, label), counts in sorted(groups.items())
    ]


def count_in_states(found: Mapping[str, int], states: Sequence[str]) -> int:
    """Return how many runs are in one of these states."""
    return sum(found.get(word, 0) for word in states)


def describe_failure(entry: RunState) -> Failure:
    """Return the details of a failed run."""
    run, folder = entry.run, entry.folder
    return Failure(
        run.run_id, run.variant, run.condition_label, entry.state, entry.reason,
        None if folder is None else folder.where, entry.end_unix_s,
    )  # fmt: skip


def format_progress(progress: Progress) -> str:
    """Return, for example, `demo: 12 done, 4 running, 24 waiting, 0 failed of 40; 1:20 left`."""
    counts = [
        f"{progress.done} done",
        f"{progress.running} running",
        f"{progress.waiting} waiting",
        f"{progress.failed} failed",
    ]
    if progress.cancelled:
        counts.append(f"{progress.cancelled} cancelled")
    text = f"{progress.study}: {', '.join(counts)} of {progress.total}"
    if not progress.ended:
        text += f"; {format_time_left(progress)}"
    reasons = format_reasons(progress.waiting_reasons)
    return text + (f" (waiting for: {reasons})" if reasons and not progress.running else "")


def format_time_left(progress: Progress) -> str:
    """Return, for example, `1:20 left`."""
    if progress.time_left_s is None:
        return "time left unknown yet"
    return f"{console.format_seconds(progress.time_left_s)} left"


def format_reasons(reasons: dict[str, int]) -> str:
    """Return, for example, `2 Priority, 3 Resources`."""
    return ", ".join(f"{n} {reason}" for reason, n in sorted(reasons.items()))


def format_stuck_runs(progress: Progress) -> str | None:
    """Describe runs that can never start, and what to do; None if there are none."""
    if not progress.stuck:
        return None
    stuck = sum(progress.stuck.values())
    return (
        f"{counted(stuck, 'run')} {inflect(stuck, 'waits', 'wait')} for what does not come by itself "
        f"({format_reasons(progress.stuck)}): change what they ask for, or `steelyard cancel` them"
    )


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
