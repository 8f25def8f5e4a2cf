"""Runs whose job was suspended: their times are the cluster's as much as the benchmark's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from steelyard.analysis.collect.attempts import Attempt
    from steelyard.analysis.sources.study_files import PlannedRun

SLURM = "slurm"  # alone: a PBS server's walltime lacks more than suspension, as Torque's epilogues


def invalid_reason(_run: PlannedRun, attempt: Attempt) -> str | None:
    """Why a completed run's times are not its own; None: they are, or nobody says."""
    row = attempt.row
    if attempt.scheduler != SLURM or row is None or not row.suspended_s:
        return None
    return f"its job was suspended for {row.suspended_s:.10g} s, which its times may include"
