"""Where a run of a study stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from steelyard.analysis.sources.study_files import RunFolder
from steelyard.wrappers.study.planned_run import Run


@dataclass(frozen=True)
class RunState:
    """Where a run stands; `state` in the words of docs/formats.md part 8."""

    run: Run
    state: str
    reason: str | None = None
    attempt: str | None = None  # name of the last attempt's folder
    start_unix_s: float | None = None
    end_unix_s: float | None = None
    elapsed_s: float | None = None
    folder: RunFolder | None = field(default=None, repr=False, compare=False)
    is_stuck: bool = False  # it waits for what does not come by itself
