"""Describes what a run's totals count, and where two compared conditions do not count the same.

Totals of a run come from its record (docs/formats.md): they are sums over all of its clients and
containers and include a container's start and end, which `elapsed_s` does not.

Two conditions are compared only if both are counted in the same way: a cgroup's memory, a sum of
resident sets and the largest process of the same load differ by a factor of two to four.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.sources.records import LARGEST_PROCESS, MEMORY_SOURCES
from steelyard.facts.quantities import METRICS
from steelyard.jobscripts.plurals import counted

if TYPE_CHECKING:
    import duckdb


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


MEMORY = "max_memory_bytes"
PROGRAM, JOB = "of the program alone", "of all of the job"


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of the runs of one variant under one condition."""

    whose: frozenset[str]
    memory: frozenset[str]

    def describe(self, metric: str) -> frozenset[str]:
        """Return the sources of a metric in words; empty if it is no usage of processes."""
        if metric == MEMORY:
            return self.memory
        total = METRICS.get(metric)
        return self.whose if total is not None and not total.is_of_node else frozenset()


Found = dict[tuple[str, str], Sources]


def has_mixed_sources(sources: Iterable[Sources], metric: str) -> list[str]:
    """Return the ways of counting if there are several.

    The largest process is the smallest value in every way, so it does not count as different.
    """
    found = set().union(*(one.describe(metric) for one in sources))
    ways = found - {LARGEST_PROCESS} if metric == MEMORY else found
    return sorted(ways) if len(ways) > 1 else []


def read_usage_sources(connection: duckdb.DuckDBPyConnection) -> Found:
    """Read the sources of the counted attempts that have a record."""
    rows = connection.execute(
        """
        SELECT r.variant, r.condition_label,
            list(DISTINCT o.run_id IS NOT NULL),
            list(DISTINCT CASE WHEN o.max_memory_bytes IS NULL
                THEN json_extract_string(n.record, '$.memory.source') ELSE 'program' END)
        FROM runs AS r JOIN records AS n ON n.run_id = r.run_id AND n.attempt = r.attempt
        LEFT JOIN own_usage AS o ON o.run_id = r.run_id AND o.attempt = r.attempt
        WHERE r.state = 'completed'
        GROUP BY r.variant, r.condition_label
        """
    ).fetchall()
    program = f"{MEMORY_SOURCES['processes']} {PROGRAM}"
    return {
        (variant, label): Sources(
            frozenset(PROGRAM if own else JOB for own in whose),
            frozenset(
                program if one == "program" else MEMORY_SOURCES[one]
                for one in memory
                if one == "program" or one in MEMORY_SOURCES
            ),
        )
        for variant, label, whose, memory in rows
    }
