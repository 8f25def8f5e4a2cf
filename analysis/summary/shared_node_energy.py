"""Metrics of energy on shared nodes: docs/energy.md.

`energy_low_j` and `energy_high_j` are lower and upper bounds of the job's joules above idle, over
all its nodes. Two conditions are compared by both together: a difference is shown only if the lower
bound of one is above the upper bound of the other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.overhead_verdict import (
    Direction,
    Verdict,
    format_between,
    format_percent,
)
from steelyard.analysis.store.energy_shares import EnergyShare, IdlePower, compute_energy_shares

if TYPE_CHECKING:
    import duckdb

METRICS = ("energy_low_j", "energy_high_j")

Values = dict[tuple[str, str, str], dict[str, float | None]]


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """An attempt that counts, and how many of its nodes have a complete record."""

    run_id: str
    attempt: str
    variant: str
    label: str
    nodes: int
    complete_nodes: int


def read_energy_metrics(connection: duckdb.DuckDBPyConnection, idle: IdlePower) -> Values:
    """Return one value per run and metric; None if one of its nodes has no value."""
    idle = replace(idle, configured_w=read_idle_power(connection))
    of_run: dict[tuple[str, str], list[EnergyShare]] = defaultdict(list)
    for share in compute_energy_shares(connection, idle):
        of_run[share.run_id, share.attempt].append(share)
    values: Values = defaultdict(dict)
    for run in read_measured_runs(connection):
        shares = of_run[run.run_id, run.attempt]
        is_complete = len(shares) == run.complete_nodes == run.nodes
        for metric, parts in zip(METRICS, sum_bounds(shares), strict=True):
            values[run.variant, run.label, metric][run.run_id] = (
                sum_known(parts) if is_complete else None
            )
    return dict(values)


def read_idle_power(connection: duckdb.DuckDBPyConnection) -> dict[str, float]:
    """Return the idle power in W that administrators configured, by node, of the newest record."""
    rows = connection.execute(
        """
        SELECT node, arg_max(watts, start_unix_s) FROM (
            SELECT node, start_unix_s, TRY_CAST(record->>'$.energy.idle_w' AS DOUBLE) AS watts
            FROM records
        ) WHERE watts IS NOT NULL GROUP BY node
        """
    ).fetchall()
    return dict(rows)


def sum_bounds(shares: list[EnergyShare]) -> tuple[list[float | None], list[float | None]]:
    return [share.low_j for share in shares], [share.high_j for share in shares]


def sum_known(parts: list[float | None]) -> float | None:
    """Return the sum of the values; None if one is unknown, or there are none."""
    known = [value for value in parts if value is not None]
    return sum(known) if known and len(known) == len(parts) else None


def read_measured_runs(connection: duckdb.DuckDBPyConnection) -> list[MeasuredRun]:
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
    return [MeasuredRun(*row) for row in rows]


@dataclass(frozen=True, slots=True)
class Bounds:
    """A condition's energy_low_j and energy_high_j; None: no run has a value."""

    low: Interval | None
    high: Interval | None

    def range_j(self) -> tuple[float, float] | None:
        """Return the lowest and highest value that the means' 95 % intervals allow."""
        if self.low is None or self.high is None:
            return None
        if self.low.low is None or self.high.high is None:
            return None
        return max(self.low.low, 0.0), self.high.high


def make_bounds_verdict(ours: Bounds, base: Bounds) -> Verdict:
    """Compare the bounds of two conditions in words; lower is better."""
    mine, theirs = ours.range_j(), base.range_j()
    if mine is None or theirs is None:
        return Verdict(Direction.UNKNOWN, "cannot be judged: fewer than two values")
    assert ours.low is not None and base.low is not None
    n = f"n = {ours.low.n} + {base.low.n}"
    least, most = (
        format_bounds_ratio(mine[0], theirs[1]) - 1,
        format_bounds_ratio(mine[1], theirs[0]) - 1,
    )
    if least > 0:
        return Verdict(Direction.WORSE, f"higher: {format_bounds(least, most)}, {n}")
    if most < 0:
        return Verdict(Direction.BETTER, f"lower: {format_bounds(least, most)}, {n}")
    return Verdict(Direction.NOT_SHOWN, f"not shown to differ ({format_bounds(least, most)}), {n}")


def format_bounds_ratio(one: float, other: float) -> float:
    return one / other if other > 0 else math.inf if one > 0 else 1.0


def format_bounds(least: float, most: float) -> str:
    """Format the range of ratios that both conditions' bounds allow."""
    if math.isinf(most):
        return f"bounds: {format_percent(least, least, least)} % and more"
    return f"bounds: {format_between(least, most)}"
