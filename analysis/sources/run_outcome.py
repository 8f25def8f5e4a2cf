"""The outcome of a run: the scheduler's report on its job and the run's own result.json, combined."""

from __future__ import annotations

import re
from dataclasses import dataclass

from steelyard.analysis.sources.study_files import RESULT_STATES, RunFolder

# As steelyard.sh says it; PBS sends its signal to the clients as well, which may be first.
STOPPED = re.compile(r"stopped by SIG|client \d+ .*exited with 143\b")


@dataclass(frozen=True, slots=True)
class SchedulerReport:
    """What the accounting says of a job; `begun`: it names the job's start."""

    state: str
    reason: str | None
    begun: bool


def decide_outcome(told: SchedulerReport, folder: RunFolder | None) -> tuple[str, str | None]:
    """State and reason.

    The accounting knows how the job ended; result.json knows whether the run in it came to its
    end, and says why not in better words.
    """
    said = folder.text("state") if folder is not None else None
    why = folder.text("reason") if folder is not None else None
    if told.state == "failed":
        return ("timeout" if said == "timeout" else "failed"), why or told.reason
    # Purged before its end was asked for; or forgotten with its array, as qstat does: what left a
    # result has begun.
    is_guess = told.state == "lost" or (told.state == "cancelled" and not told.begun)
    was_stopped = told.state == "cancelled" and STOPPED.match(why or "")
    if is_guess and said in RESULT_STATES and not was_stopped:
        return said, why
    if told.state != "completed" or said == "completed":
        return told.state, told.reason
    if said in ("failed", "timeout"):
        return said, why or "the run's own script says so"
    if said == "started":
        return "failed", "the job ended, but the run in it did not: result.json says 'started'"
    problem = folder.problem if folder is not None else None
    return "failed", problem or "the job ended, but left no folder: did its script begin?"
