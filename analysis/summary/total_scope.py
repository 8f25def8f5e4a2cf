"""Describes what a total counts if two compared conditions do not count the same.

Totals of a run come from its record (docs/formats.md): they are sums over all of its clients and
containers and include a container's start and end, which `elapsed_s` does not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.plurals import counted

Condition = Mapping[str, object]
CONTAINERS = re.compile(r",containers=(\d+)(?:,|$)")
ACROSS = "ranks=across"  # one program has all ranks


def describe_scope_difference(metric: str, condition: Condition, base: Condition) -> str:
    """Return the remark for the comparison of a total; empty if both sides count the same."""
    if metric not in METRICS:
        return ""
    ours, theirs = count_programs(condition), count_programs(base)
    differences = [f"a sum: {counted(ours, 'client')} against {theirs}"] if ours != theirs else []
    contained = is_in_container(condition), is_in_container(base)
    if contained != (False, False):
        whose = {(True, True): "both containers'", (True, False): "the container's"}
        start = whose.get(contained, "the baseline's container's")
        differences.append(f"{start} start and end included")
    return ", ".join(differences)


def count_programs(condition: Condition) -> int:
    """Return the number of clients, times the containers per node."""
    clients = condition.get("clients", 1)
    launcher = str(condition.get("launcher", ""))
    found = None if ACROSS in launcher.split(",") else CONTAINERS.search(launcher)
    return (clients if isinstance(clients, int) else 1) * (int(found[1]) if found else 1)


def is_in_container(condition: Condition) -> bool:
    """Return whether the run's launcher is a container."""
    return str(condition.get("launcher", "bare")) != "bare"
