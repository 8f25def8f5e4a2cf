"""The details of a job, collected once for the screen and for programs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from steelyard.analysis.job import advice, usage
from steelyard.analysis.job.job_totals import is_exclusive
from steelyard.analysis.job.job_view import JobView

if TYPE_CHECKING:
    from steelyard.analysis.job.time_series import JobTimeSeries
    from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower

NO_SAMPLES = "no samples of it can be read here"
TOO_FEW = "it has too few samples"


@dataclass(frozen=True)
class JobDetails:
    """A job; `no_course` and `no_advice` are the reasons if these are missing."""

    view: JobView
    used: usage.Efficiency
    course: JobTimeSeries | None = None
    no_course: str | None = None
    advice: list[advice.Advice] = field(default_factory=list)
    no_advice: str | None = None
    shares: Mapping[str, EnergyShare] = field(default_factory=dict)


def read_details(view: JobView, idle: IdlePower | None = None) -> JobDetails:
    """Return all details, with samples; `idle`: the power of idle nodes."""
    return read_several([view], idle)[0]


def read_several(views: Sequence[JobView], idle: IdlePower | None = None) -> list[JobDetails]:
    """Return the details of each job."""
    details = []
    for view, (found, why) in zip(views, read_time_series(views), strict=True):
        used = usage.compute_efficiency(view)
        details.append(
            JobDetails(
                view,
                used,
                found,
                why,
                advice.advise(view, used, found),
                advice.find_no_advice_reason(view),
                {} if idle is None else read_energy_shares(view, idle),
            )
        )
    return details


def read_time_series(views: Sequence[JobView]) -> list[tuple[JobTimeSeries | None, str | None]]:
    """Return each job's time series, or the reason why it has none."""
    jobs = [
        {
            node.node: node.record
            for node in view.nodes
            if (path := node.record.samples_path) is not None and path.is_file()
        }
        for view in views
    ]
    if not any(jobs):
        return [(None, NO_SAMPLES)] * len(jobs)
    # Imported here because duckdb would make `--help` slow.
    from steelyard.analysis.job import time_series

    return [
        (found, TOO_FEW if found is None else None) if records else (None, NO_SAMPLES)
        for records, found in zip(jobs, time_series.read_all_time_series(jobs), strict=True)
    ]


def read_energy_shares(view: JobView, idle: IdlePower) -> dict[str, EnergyShare]:
    """Return the energy shares by node, for nodes whose joules may be partly of other jobs."""
    shared = {
        node.node: node.record
        for node in view.nodes
        if node.values["energy_j"] is not None and not is_exclusive(node.record)
    }
    if not shared:
        return {}
    from steelyard.analysis.job.job_samples import compute_job_shares

    return compute_job_shares(shared, idle)
