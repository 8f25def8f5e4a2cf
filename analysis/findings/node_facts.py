"""What the nodes of each variant and condition were."""

from __future__ import annotations

from operator import attrgetter

from steelyard.analysis.summary.summary import Summary

NODE_FACTS = ("node_type", "vm", "container", "kernel", "cpu_model", "cpus")

Facts = dict[tuple[str, str], dict[str, set[str]]]  # by variant and condition, then by fact


def facts_by_group(summary: Summary) -> Facts:
    """Of the runs that count."""
    where = {run.run_id: (run.variant, run.label) for run in summary.data.runs if run.counts}
    fact = [attrgetter(name) for name in NODE_FACTS]
    # Most records of a group say the same: told apart once, then taken to pieces.
    said: dict[tuple[str, str], set[tuple[object, ...]]] = {}
    for record in summary.data.records:
        if record.run_id in where:
            rows = said.setdefault(where[record.run_id], set())
            rows.add(tuple([get(record) for get in fact]))
    return {
        key: {
            name: {str(row[place]) for row in rows if row[place] is not None}
            for place, name in enumerate(NODE_FACTS)
        }
        for key, rows in said.items()
    }
