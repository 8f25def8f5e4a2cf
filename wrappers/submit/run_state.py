"""The state of a run of a study."""

from __future__ import annotations

from dataclasses import dataclass, field

from steelyard.analysis.sources.study_files import RunFolder
from steelyard.wrappers.study.planned_run import Run


@dataclass(frozen=True)
class RunState:
    """The state of a run; `state` is a state of docs/formats.md part 8."""

    run: Run
    state: str
    reason: str | None = None
    attempt: str | None = None  # name of the last attempt's folder
    start_unix_s: float | None = None
    end_unix_s: float | None = None
    elapsed_s: float | None = None
    folder: RunFolder | None = field(default=None, repr=False, compare=False)
    is_stuck: bool = False  # it waits for something that only a person can change
