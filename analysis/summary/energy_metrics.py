"""Two metrics of every run for whoever asks for shares of shared nodes' joules: docs/energy.md.

`energy_low_j` and `energy_high_j`: above idle, at least and at most the job's, over all its nodes.
Of a run that had its nodes for itself they lie close together.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower, energy_shares

if TYPE_CHECKING:
    import duckdb

METRICS = ("energy_low_j", "energy_high_j")

Values = dict[tuple[str, str, str], dict[str, float | None]]


@dataclass(frozen=True, slots=True)
class WeighedRun:
    """An attempt that counts, and how many of its nodes have a whole record."""

    run_id: str
    attempt: str
    variant: str
    label: str
    nodes: int
    whole: int


def read_energy_metrics(connection: duckdb.DuckDBPyConnection, idle: IdlePower) -> Values:
    """One value per run and metric; None as soon as one of its nodes has none."""
    idle = replace(idle, told_w=read_idle_power(connection))
    of_run: dict[tuple[str, str], list[EnergyShare]] = defaultdict(list)
    for share in energy_shares(connection, idle):
        of_run[share.run_id, share.attempt].append(share)
    values: Values = defaultdict(dict)
    for run in weighed_runs(connection):
        shares = of_run[run.run_id, run.attempt]
        is_whole = len(shares) == run.whole == run.nodes
        for metric, parts in zip(METRICS, bounds(shares), strict=True):
            values[run.variant, run.label, metric][run.run_id] = total(parts) if is_whole else None
    return dict(values)


def read_idle_power(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """By node, as administrators say it; of several the newest record's, who may have been wrong."""
    rows = connection.execute(
        """
        SELECT node, arg_max(watts, start_unix_s) FROM (
            SELECT node, start_unix_s, TRY_CAST(record->>'$.energy.idle_w' AS DOUBLE) AS watts
            FROM records
        ) WHERE watts IS NOT NULL GROUP BY node
        """
    ).fetchall()
    return dict(rows)


def bounds(shares: list[EnergyShare]) -> tuple[list[float | None], list[float | None]]:
    return [share.low_j for share in shares], [share.high_j for share in shares]


def total(parts: list[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return sum(known) if known and len(known) == len(parts) else None


def weighed_runs(connection: duckdb.DuckDBPyConnection) -> list[WeighedRun]:
    rows = connection.execute(
        """
        SELECT r.run_id, r.attempt, r.variant, r.condition_label, len(a.nodes),
            count(n.node) FILTER (n.complete)
        FROM runs AS r
        JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
        LEFT JOIN records AS n ON n.run_id = r.run_id AND n.attempt = r.attempt
        GROUP BY ALL ORDER BY ALL
        """
    ).fetchall()
    return [WeighedRun(*row) for row in rows]
