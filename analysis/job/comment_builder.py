"""Builds a job's AdminComment from its records (docs/formats.md part 5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from steelyard.analysis.job import job_totals
from steelyard.analysis.job.job_view import JobView, find_refusals
from steelyard.analysis.sources import admin_comment
from steelyard.analysis.sources.admin_comment import IN_COMMENT
from steelyard.analysis.sources.records import Record
from steelyard.facts.quantities import METRICS, TOTALS

# The sampler writes AdminComment first and continues until the job's last process has ended. So the
# record may differ by this share of a total, or by what the job uses in this many seconds.
SHARE, MOMENT_S = 0.01, 0.5


def build_comment(view: JobView) -> dict[str, Any]:
    """Return the content of Steelyard's key in AdminComment, without empty and default values."""
    measured = find_complete_records(view)
    totals = {name: compute_total(view, measured, name) for name in IN_COMMENT}
    document: dict[str, Any] = {
        **describe_node_type(view),
        "tags": {key: value for record in measured for key, value in record.tags.items()},
        "nodes": len(view.all_nodes),
        "nodes_measured": len(measured),
        "partial": len(measured) < len(view.all_nodes) or None,
        "nodes_idle": sum(map(job_totals.is_idle, measured)),
        **{name: round_value(name, value) for name, (value, _) in totals.items()},
        "memory_source": join_memory_sources(measured, totals["max_memory_bytes"][0]),
        "exclusive": has_exclusive_nodes(measured),
        "missing": group_by_reason(
            {name: why for name, (_, why) in totals.items() if why is not None}
        ),
        **describe_conditions(measured),
        "refused": next((why for record in measured for why in find_refusals(record)), None),
    }
    if document["nodes_measured"] == document["nodes"]:
        del document["nodes_measured"]
    layers = ("vm", "container") if document["node_type"] else ()
    empty_values: tuple[Any, ...] = (None, {})
    return {
        name: value
        for name, value in document.items()
        if (value != "none" if name in layers else value not in empty_values)
        and not (name == "nodes_idle" and not value)
    }


def is_less_complete(comment: Mapping[str, Any] | None, ours: Mapping[str, Any]) -> bool:
    """Whether AdminComment covers less of the job than its records.

    It does when it is absent, was written before the job's end, or covers fewer nodes.
    """
    if comment is None or comment.get("so_far"):
        return True
    if (comment.get("nodes_measured") or 0) < ours["nodes_measured"]:
        return True
    return admin_comment.is_partial(comment) and not admin_comment.is_partial(ours)


def find_different_totals(comment: Mapping[str, Any], ours: Mapping[str, Any]) -> list[str]:
    """Return the totals that the records have and that the comment lacks or states differently."""
    if admin_comment.is_partial(ours):
        return []
    elapsed = ours["elapsed_s"]
    share = max(SHARE, MOMENT_S / elapsed) if elapsed else SHARE
    return [
        name
        for name in IN_COMMENT
        if (value := ours[name]) is not None
        and (
            (comment_total := comment.get(name)) is None
            or abs(value - comment_total) > share * value
        )
    ]


def find_complete_records(view: JobView) -> list[Record]:
    """Return the records of the nodes whose sampler covered the job.

    If some of a job's processes were not counted, their usage is a total only where the cgroup has
    it. Energy, time and network conditions of such a record are still valid.
    """
    return [node.record for node in view.nodes if node.record.has_final_totals(of_node=True)]


def describe_node_type(view: JobView) -> dict[str, Any]:
    """Return type, virtual machine, container and kernel of the job's first node."""
    names = ("node_type", "vm", "container", "kernel")
    first = next((n for n in view.nodes if n.node == view.all_nodes[0]), None)
    return {name: first.values[name] if first else None for name in names}


def compute_total(
    view: JobView, measured: list[Record], name: str
) -> tuple[float | None, str | None]:
    """Return a total over the job's nodes, or None and the reason.

    A job with one node gives the reason in its record.
    """
    if name in METRICS:
        value, why = view.total_or_reason(name)
    else:
        value, why = sum_field(view, measured, name)
    if value is None and len(view.all_nodes) == len(measured) == 1:
        why = measured[0].missing_reason(TOTALS[name].path) or why
    return value, why


def sum_field(view: JobView, measured: list[Record], name: str) -> tuple[float | None, str | None]:
    """Return the sum or the largest value of one of TOTALS, or None and the reason.

    This is for totals that are no metric of runs. Idle nodes are not counted.
    """
    used = [record for record in measured if not job_totals.is_idle(record)]
    values = [record.get(TOTALS[name].path) for record in used if record.is_total_final(name)]
    numbers = [value for value in values if isinstance(value, int | float)]
    unknown = len(view.all_nodes) - len(measured) + len(used) - len(numbers)
    if unknown or not numbers:
        return None, f"not known on {unknown} of {len(view.all_nodes)} nodes"
    largest = TOTALS[name].over_nodes == "LARGEST"
    return float(max(numbers) if largest else sum(numbers)), None


def round_value(name: str, value: float | None) -> float | int | None:
    """Round a real value to 6 decimals (microseconds, microjoules); make others integers."""
    if value is None:
        return None
    return round(value, 6) if TOTALS[name].is_real else int(value)


def has_exclusive_nodes(records: list[Record]) -> bool | None:
    """Whether the job had all of its nodes exclusively; None: unknown."""
    flags = [record.get("job.exclusive") for record in records]
    if False in flags:
        return False
    return True if flags and None not in flags else None


def join_memory_sources(records: list[Record], memory_bytes: float | None) -> str | None:
    """Return how the nodes' memory was counted; None: there is no figure of it."""
    sources = {str(found) for record in records if (found := record.get("memory.source"))}
    return ", ".join(sorted(sources)) or None if memory_bytes is not None else None


def group_by_reason(missing: dict[str, str]) -> dict[str, list[str]]:
    """Return the names of the missing values by reason, cut at its first punctuation."""
    found: dict[str, list[str]] = {}
    for name, why in missing.items():
        found.setdefault(re.split("[:;,]", why)[0], []).append(name)
    return found


def describe_conditions(records: list[Record]) -> dict[str, Any]:
    """Return the requested network conditions and whether they were applied."""
    for record in records:
        requested = record.get("network_conditions.requested")
        if requested is not None:
            return {"netem": requested, "netem_valid": record.get("network_conditions.valid")}
    return {}
