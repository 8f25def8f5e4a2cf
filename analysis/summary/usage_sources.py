"""Describes the scope of a run's CPU time, memory and bytes, and the source of its memory.

Two conditions are compared only if both are counted in the same way: a cgroup's memory, a sum of
resident sets and the largest process of the same load differ by a factor of two to four.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.sources.records import LARGEST_PROCESS, MEMORY_SOURCES
from steelyard.facts.quantities import METRICS

if TYPE_CHECKING:
    import duckdb

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
