"""Totals of each node that Steelyard's hook in OpenPBS writes into a job's accounting.

`resources_used.steelyard_used` is one JSON object, keyed by host. Its values have the keys of
AdminComment (docs/formats.md part 5).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from steelyard.facts.quantities import TOTALS, Total

SHARED = "of the whole node, and not said that the job was alone"


@dataclass(frozen=True, slots=True)
class HookTotals:
    """The values by node as written, and combined into one comment over all nodes."""

    by_node: dict[str, dict[str, Any]]
    comment: dict[str, Any]

    def has_all_nodes(self, name: str) -> bool:
        """Whether every node of the job has a value."""
        totals = [values.get(name) for values in self.by_node.values()]
        return len(totals) >= self.comment["nodes"] and all(
            isinstance(n, int | float) for n in totals
        )


def parse(text: str | None) -> dict[str, dict[str, Any]] | None:
    """Return the object by host, without quotes of qstat and the accounting; None: no object."""
    for quote in ('"', "'"):
        if text and len(text) > 1 and text[0] == text[-1] == quote:
            text = text[1:-1]
    try:
        found = json.loads(text or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        return None
    return found


def build_comment(text: str | None, nodes: int) -> HookTotals | None:
    """Return the totals of all nodes; None: Steelyard's hook has written nothing."""
    by_node = parse(text)
    if not by_node:
        return None
    first = next(iter(by_node.values()))
    facts = {name: first.get(name) for name in ("node_type", "vm", "container", "kernel", "tags")}
    comment: dict[str, Any] = {"steelyard": 1, **{n: v for n, v in facts.items() if v is not None}}
    silent = sum(values.get("nodes_measured") == 0 for values in by_node.values())
    comment |= {"nodes": max(nodes, len(by_node)), "nodes_measured": len(by_node) - silent}
    if idle := sum(1 for values in by_node.values() if values.get("nodes_idle")):
        comment["nodes_idle"] = idle
    comment["exclusive"] = has_exclusive_nodes(by_node)
    missing = {}
    for name, total in TOTALS.items():
        if total.in_comment:
            shared = total.is_of_node and comment["exclusive"] is not True
            found = None if shared else sum_over_nodes(by_node, total)
            comment[name] = found
            if found is None:
                missing[name] = SHARED if shared else find_missing_reason(by_node, name)
    return HookTotals(by_node, comment | ({"missing": missing} if missing else {}))


def sum_over_nodes(by_node: Mapping[str, Mapping[str, Any]], total: Total) -> float | None:
    """Return the sum or the largest value; None: a node has no value. Idle nodes may have none."""
    counted = [v for v in by_node.values() if total.is_of_node or not v.get("nodes_idle")]
    found = [values.get(total.name) for values in counted]
    numbers = [one for one in found if isinstance(one, int | float)]
    if not found or len(numbers) < len(found):
        return None
    return max(numbers) if total.over_nodes == "LARGEST" else sum(numbers)


def find_missing_reason(by_node: Mapping[str, Mapping[str, Any]], name: str) -> str:
    """Return the reason of the first node without a value."""
    for node, values in by_node.items():
        reasons = values.get("missing")
        if values.get(name) is None:
            reason = reasons.get(name) if isinstance(reasons, dict) else None
            return f"{node}: {reason or 'not told'}"
    return "not told"


def has_exclusive_nodes(by_node: Mapping[str, Mapping[str, Any]]) -> bool | None:
    """Whether the job had every node exclusively; None: unknown for one."""
    flags = [values.get("exclusive") for values in by_node.values()]
    if False in flags:
        return False
    return True if all(one is True for one in flags) else None
