"""The details of a job, collected once for the screen and for programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.analysis.collect.job_totals import is_alone
from steelyard.analysis.collect.job_view import JobView
from steelyard.analysis.job import advice, usage

if TYPE_CHECKING:
    from steelyard.analysis.job.time_series import Course
    from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower

NO_SAMPLES = "no samples of it can be read here"
TOO_FEW = "it has too few samples"


@dataclass(frozen=True)
class JobDetails:
    """A job; `no_course`, `no_advice`: why there is none."""

    view: JobView
    used: usage.Efficiency
    course: Course | None = None
    no_course: str | None = None
    advice: list[advice.Advice] = field(default_factory=list)
    no_advice: str | None = None
    shares: Mapping[str, EnergyShare] = field(default_factory=dict)


def read_details(view: JobView, idle: IdlePower | None = None) -> JobDetails:
    """Everything, samples too; `idle`: what nodes draw when nothing runs."""
    used = usage.efficiency(view)
    found, why = read_time_series(view)
    return JobDetails(
        view,
        used,
        found,
        why,
        advice.advise(view, used, found),
        advice.why_none(view),
        {} if idle is None else read_energy_shares(view, idle),
    )


def read_time_series(view: JobView) -> tuple[Course | None, str | None]:
    """Or why there is none."""
    records = {
        node.node: node.record
        for node in view.nodes
        if (path := node.record.samples_path) is not None and path.is_file()
    }
    if not records:
        return None, NO_SAMPLES
    # Here and not above: duckdb would make `--help` slow.
    from steelyard.analysis.job import time_series

    found = time_series.course(records)
    return found, TOO_FEW if found is None else None


def read_energy_shares(view: JobView, idle: IdlePower) -> dict[str, EnergyShare]:
    """By node, where it has joules that need not all be the job's."""
    shared = {
        node.node: node.record
        for node in view.nodes
        if node.values["energy_j"] is not None and not is_alone(node.record)
    }
    if not shared:
        return {}
    from steelyard.analysis.collect.job_samples import shares_of

    return shares_of(shared, idle)
