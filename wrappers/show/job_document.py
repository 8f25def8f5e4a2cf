"""A job as a JSON document, for programs; names and units as in docs/formats.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from steelyard.analysis.job import job_totals, pressure
from steelyard.facts.quantities import METRICS
from steelyard.wrappers.show.job_data import JobDetails
from steelyard.wrappers.show.node_usage import usage_minimum

if TYPE_CHECKING:
    from steelyard.analysis.job.job_view import JobView
    from steelyard.analysis.job.usage import Usage
    from steelyard.analysis.sources.records import Record
    from steelyard.analysis.store.energy_shares import EnergyShare


def as_json(details: JobDetails) -> dict[str, object]:
    """Return the document of a job."""
    view, course = details.view, details.course
    return {
        "job_id": view.job_id,
        "job": job_json(view),
        "allocation": allocation_json(view),
        "efficiency": {
            "cpu": use_json(details.used.cpu),
            "memory": use_json(details.used.memory),
            "time": use_json(details.used.time),
        },
        "pressure": [asdict(one) for one in pressure.find_pressures(view)],
        "course": None if course is None else asdict(course),
        "course_missing": details.no_course,
        "advice": [asdict(advice) for advice in details.advice],
        "advice_missing": details.no_advice,
        "nodes": nodes_json(details),
        "totals": {name: view.total(name) for name in METRICS},
        "totals_missing": {
            name: why for name in METRICS if (why := view.total_or_reason(name)[1]) is not None
        },
        "totals_at_least": usage_minimum(view),
        "admin_comment": view.admin_comment,
        "cluster_database": view.stored_nodes,
        "refused": view.refused,
        "missing": view.refused + view.missing,
        "notes": view.notes,
    }


def job_json(view: JobView) -> dict[str, object] | None:
    """Return the accounting's entry of the job; None if it does not know the job."""
    row = view.row
    if row is None:
        return None
    return {
        "raw_job_id": row.job_id,
        "array_job_id": row.array_job_id,
        "array_task_id": row.array_task_id,
        "name": row.name,
        "user": row.user,
        "cluster": row.cluster,
        "state": row.state,
        "reason": row.reason,
        "exit_code": row.exit_code,
        "submit_unix_s": row.submit_unix_s,
        "start_unix_s": row.start_unix_s,
        "end_unix_s": row.end_unix_s,
        "elapsed_s": row.elapsed_s,
        "suspended_s": row.suspended_s,
        "nodes": list(row.nodes),
        "earlier_starts_unix_s": list(view.earlier_starts),
    }


def allocation_json(view: JobView) -> dict[str, object] | None:
    """Return the job's allocation by the scheduler; None if the accounting does not know it."""
    if view.allocation is None:
        return None
    used = ("cpu_s", "resident_low_bytes", "resident_high_bytes")
    of_scheduler = {f"scheduler_{name}": getattr(view.allocation, name) for name in used}
    names = ("partition", "account", "nodes", "cpus", "cpus_requested", "memory_bytes", "gpus")
    allocated = {name: getattr(view.allocation, name) for name in (*names, "time_limit_s")}
    return {**allocated, **of_scheduler, "missing": dict(view.allocation.missing)}


def use_json(use: Usage) -> dict[str, object]:
    """Return a usage; `share` is used / allocated."""
    return asdict(use) | {"share": use.share}


def array_json(views: Sequence[JobView]) -> dict[str, object]:
    """Return the usage of all tasks together."""
    from steelyard.analysis.job.job_array import summarize_tasks

    found = summarize_tasks(views)
    return {
        "tasks": len(views),
        "states": found.states,
        "cpu": use_json(found.cpu),
        "memory": use_json(found.memory),
        "time": use_json(found.time),
        "energy_j": found.energy_j,
        "advice": [asdict(advice) for advice in found.advice],
        "advice_missing": found.no_advice,
    }


def nodes_json(details: JobDetails) -> list[dict[str, object]]:
    """Return each node's record."""
    return [
        {
            "node": node.node,
            **node.values,
            "memory_source": node.record.get("memory.source"),
            "network_conditions": node.record.get("network_conditions"),
            "gpus": gpus_json(node.record),
            "energy_share": share_json(details.shares.get(node.node)),
            "missing": node.missing,
            "tags": node.record.tags,
        }
        for node in details.view.nodes
    ]


def gpus_json(record: Record) -> dict[str, object] | None:
    """Return the GPUs; None if the node has none with an energy counter."""
    found = job_totals.read_job_gpus(record)
    return None if found is None else asdict(found)


def share_json(share: EnergyShare | None) -> dict[str, object] | None:
    """Return the energy share; None if the node's joules are unknown, or are all the job's."""
    if share is None:
        return None
    names = ("low_j", "high_j", "idle_low_j", "idle_high_j", "idle_source", "reason")
    return {name: getattr(share, name) for name in names}
