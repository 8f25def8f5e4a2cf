"""The factor kernel_release: whether the nodes of a run ran the kernel that its level says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.analysis.collect.attempts import Attempt
    from steelyard.analysis.sources.study_files import PlannedRun

FACTOR = "kernel_release"


def is_release_of(level: object, release: str | None) -> bool:
    """Whether `uname -r` begins with the level, as a whole: 6.1 is 6.1.176, and not 6.18.5."""
    text = str(level)
    if release is None or not release.startswith(text):
        return False
    following = release[len(text) : len(text) + 1]
    return not (text[-1].isdigit() and following.isdigit())


def invalid_reason(run: PlannedRun, attempt: Attempt) -> str | None:
    """Why a completed run was not under its level; None: it was, or the factor is not there."""
    level = run.condition.get(FACTOR)
    if level is None:
        return None
    if not attempt.records:
        return f"{FACTOR}={level} was asked for, and no record says what the nodes ran"
    found = {node: r.get("probe.kernel.release") for node, r in sorted(attempt.records.items())}
    others = [
        f"{node} ran Linux {re.sub(r'[^ -~]', '?', release)}" if release else f"{node}: not told"
        for node, release in found.items()
        if not is_release_of(level, release)
    ]
    return f"{FACTOR}={level} was asked for: {', '.join(others)}" if others else None
