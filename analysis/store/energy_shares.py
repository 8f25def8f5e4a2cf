"""Bounds for a job's share of the energy of a shared node, apart from the node's idle energy.

In each window between two readings of the node's CPU time (a second), the job used `own` CPU
seconds, all other processes `others`, and the node `dynamic` joules more than it needs idle. A CPU
second of one program takes at most RATIO times the power of a CPU second of another on the same
node at the same time. So the job's part of `dynamic` is at least own / (own + RATIO * others) and
at most RATIO * own / (RATIO * own + others). Samples that are truncated or still grow end with a
CPU time of the node that was read up to a second before: the usage of others since then is unknown.
docs/energy.md has the assumptions, the sources, and how often the interval is right.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import duckdb

RATIO = 3.0  # bench/energy_share.py: with it the interval contains the true value often enough
ROUNDING = 0.02  # of the node's CPU time: most kernels charge a whole tick to the running process
TICKS_S = 0.02  # two of 10 ms, at the start and the end of a window
SHORTEST_S = 0.5  # seconds; shorter windows are not used to estimate idle power

OPTION, ADMINISTRATOR = "option", "administrator"

NO_CPU = (
    "the samples have no CPU time of the node, as where the node's joules are not those of packages "
    "and dram"
)
NO_ENERGY = "the node's joules are not known"
NO_OWN = "no sample has the job's CPU time"
REASONS = (NO_ENERGY, NO_CPU, NO_OWN)


@dataclass(frozen=True, slots=True)
class IdlePower:
    """Known idle power of nodes in watts, by name and for all others; None: unknown.

    `configured_w` is what administrators configured, by name. It is used if nothing else is known.
    """

    of_nodes_w: Mapping[str, float] = field(default_factory=dict)
    elsewhere_w: float | None = None
    configured_w: Mapping[str, float] = field(default_factory=dict)

    def list_named_powers(self) -> dict[str, float]:
        """Return the idle power by name of all nodes that have their own value."""
        configured = self.configured_w if self.elsewhere_w is None else {}
        return {**configured, **self.of_nodes_w}

    def find_source(self, node: str) -> str | None:
        """Return the source of a node's idle power: OPTION, ADMINISTRATOR; None: unknown."""
        if node in self.of_nodes_w or self.elsewhere_w is not None:
            return OPTION
        return ADMINISTRATOR if node in self.configured_w else None


NOT_KNOWN = IdlePower()


@dataclass(frozen=True, slots=True)
class EnergyShare:
    """A job on a node. Values are in joules; None: unknown, and `reason` states why.

    `low_j` to `high_j` is the job's usage above idle, `idle_low_j` to `idle_high_j` what the node
    would have used idle in that time, and `energy_j` the node's total. `idle_source` is the source
    of the idle power.
    """

    run_id: str
    attempt: str
    node: str
    energy_j: float | None
    low_j: float | None
    high_j: float | None
    idle_low_j: float | None
    idle_high_j: float | None
    reason: str | None
    idle_source: str | None = None


# Idle power is at most the lowest power of any window. Counters are NULL until the job's processes
# are known, which means that they have used nothing.
SHARES = f"""
WITH readings AS (
    SELECT run_id, attempt, node, elapsed_s, energy_j, node_cpu_s,
        coalesce(max(cpu_s) OVER seen, 0) AS cpu_s, cpu_s IS NOT NULL AS is_own_told,
        lag(node_cpu_s) OVER every IS DISTINCT FROM node_cpu_s OR lag(elapsed_s) OVER every IS NULL
            OR lead(elapsed_s) OVER every IS NULL AS is_mark,
        lag(node_cpu_s) OVER every IS NOT DISTINCT FROM node_cpu_s AS is_old
    FROM samples
    WINDOW every AS (PARTITION BY run_id, attempt, node ORDER BY elapsed_s),
        seen AS (PARTITION BY run_id, attempt, node ORDER BY elapsed_s
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
windows AS (
    SELECT run_id, attempt, node, elapsed_s - lag(elapsed_s) OVER marks AS time_s,
        energy_j - lag(energy_j) OVER marks AS energy_j,
        cpu_s - lag(cpu_s) OVER marks AS own_s,
        node_cpu_s - lag(node_cpu_s) OVER marks AS node_cpu_s, is_own_told, is_old
    FROM readings WHERE is_mark
    WINDOW marks AS (PARTITION BY run_id, attempt, node ORDER BY elapsed_s)
),
seen AS (
    SELECT node, min(energy_j / time_s) FILTER (time_s >= {SHORTEST_S}) AS seen_w
    FROM windows GROUP BY node
),
known AS (
    SELECT unnest($nodes::VARCHAR[]) AS node, unnest($watts::DOUBLE[]) AS known_w
),
told AS (
    SELECT node, seen_w, coalesce(known_w, $elsewhere_w::DOUBLE) AS known_w
    FROM seen LEFT JOIN known USING (node)
),
powers AS (
    SELECT node, least(seen_w, known_w) AS high_w,
        CASE WHEN known_w IS NULL THEN 0 ELSE least(seen_w, known_w) END AS low_w
    FROM told
),
parts AS (
    SELECT w.*, p.low_w, p.high_w, greatest(w.node_cpu_s - own_s, 0) AS others_s,
        {ROUNDING} * greatest(w.node_cpu_s, own_s) + {TICKS_S} AS slack_s,
        CASE WHEN high_w IS NULL THEN 0 ELSE greatest(energy_j - high_w * time_s, 0) END AS least_j,
        greatest(energy_j - low_w * time_s, 0) AS most_j
    FROM windows AS w JOIN powers AS p USING (node)
    WHERE time_s IS NOT NULL
)
SELECT run_id, attempt, node, count(energy_j) = count(*) AS has_energy,
    count(node_cpu_s) = count(*) AS has_cpu, bool_or(is_own_told) AS has_own, sum(energy_j) AS energy_j,
    sum(CASE WHEN own_s > 0 AND NOT is_old
        THEN least_j * own_s / (own_s + $ratio * (others_s + slack_s)) ELSE 0 END) AS low_j,
    sum(CASE WHEN own_s > 0
        THEN most_j * $ratio * own_s / ($ratio * own_s + greatest(others_s - slack_s, 0))
        ELSE 0 END) AS high_j,
    sum(low_w * time_s) AS idle_low_j, sum(high_w * time_s) AS idle_high_j
FROM parts GROUP BY run_id, attempt, node ORDER BY run_id, attempt, node
"""


def compute_energy_shares(
    connection: duckdb.DuckDBPyConnection, idle: IdlePower = NOT_KNOWN, ratio: float = RATIO
) -> list[EnergyShare]:
    """Return the share of every run, attempt and node in the table `samples`.

    Unknown idle power is from 0 to the lowest power of the node in all of these runs. A known value
    is limited to that lowest power.
    """
    known = idle.list_named_powers()
    parameters = {
        "nodes": list(known),
        "watts": list(known.values()),
        "elsewhere_w": idle.elsewhere_w,
        "ratio": ratio,
    }
    rows = connection.execute(SHARES, parameters).fetchall()
    return [compute_share(row[:3], row[3:6], row[6:], idle) for row in rows]


def compute_share(
    key: tuple[str, ...], known: tuple[bool, ...], joules: tuple[Any, ...], idle: IdlePower
) -> EnergyShare:
    """Return one share.

    `key` is run, attempt and node. `known` states whether energy, the node's CPU time and the job's
    CPU time are known. `joules` are the energies in the order of the fields.
    """
    reason = next((why for is_known, why in zip(known, REASONS, strict=True) if not is_known), None)
    names = ("energy_j", "low_j", "high_j", "idle_low_j", "idle_high_j")
    shares: dict[str, Any] = dict(zip(names, joules, strict=True))
    if reason is not None:
        shares = dict.fromkeys(names)
    run_id, attempt, node = key
    return EnergyShare(
        run_id, attempt, node, **shares, reason=reason, idle_source=idle.find_source(node)
    )
