"""Metrics of time spans of runs, and above the measured idle power: docs/energy.md.

A run's own script names its spans (the table `spans`): an iteration, until its first client ended,
the idle before and after the run. Counters are assumed to grow evenly between two samples: at the
begin and the end of a span they are interpolated from the two samples around it. In some samples
joules change at most once a second, whatever the sampling rate (docs/sampler.md), so only samples
in which the joules have changed are used.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from steelyard.analysis.summary.shared_node_energy import Values, sum_known

if TYPE_CHECKING:
    import duckdb

PARTS = ("iteration", "until_first")  # a run has one of each per iteration
COUNTERS = {"energy_j": "J", "rx_bytes": "bytes", "tx_bytes": "bytes", "cpu_s": "s"}
OF_NODE = ("energy_j", "rx_bytes", "tx_bytes")  # the run's only if it had the node alone
IDLE_POWER, ABOVE_IDLE = "idle_power_w", "energy_above_idle_j"
ABOVE_TOLD = "energy_above_told_idle_j"
UNITS = {
    **{f"{span_name}_{counter}": unit for span_name in PARTS for counter, unit in COUNTERS.items()},
    IDLE_POWER: "W",
    ABOVE_IDLE: "J",
    ABOVE_TOLD: "J",
}
# Largest gap between samples as a share of a span: with larger gaps most of the value would come
# from outside the span.
LARGEST_GAP = 0.5

# The run's measured time is between its two idle spans. Nodes without a record, or with a truncated
# one, are excluded because their samples are incomplete.
NODES = """
    SELECT s.*, n.node, CASE WHEN n.exclusive IS NULL
        THEN json_extract_string(n.record, '$.job.scheduler') = 'none' ELSE n.exclusive END IS TRUE
        AS alone
    FROM all_spans AS s JOIN records AS n
        ON n.run_id = s.run_id AND n.attempt = s.attempt AND n.complete
"""
ALL_SPANS = """
    SELECT s.* FROM spans AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
    UNION ALL
    SELECT b.run_id, b.attempt, 'between_idles', 1, b.end_unix_s, a.begin_unix_s
    FROM spans AS b JOIN runs AS r ON r.run_id = b.run_id AND r.attempt = b.attempt
    JOIN spans AS a ON a.run_id = b.run_id AND a.attempt = b.attempt
    WHERE b.span = 'idle_before' AND a.span = 'idle_after' AND a.begin_unix_s > b.end_unix_s
"""
USED = """
WITH all_spans AS ({all_spans}),
of_nodes AS ({nodes}),
readings AS (
    SELECT run_id, attempt, node, unix_s, {counter} AS v FROM samples
    SEMI JOIN of_nodes USING (run_id, attempt, node)
    WHERE {counter} IS NOT NULL AND unix_s IS NOT NULL
    {qualify}
),
edges AS (
    SELECT *, begin_unix_s AS t FROM of_nodes UNION ALL SELECT *, end_unix_s FROM of_nodes
),
below AS (
    SELECT e.*, p.unix_s AS t0, p.v AS v0 FROM edges AS e ASOF LEFT JOIN readings AS p
    ON e.run_id = p.run_id AND e.attempt = p.attempt AND e.node = p.node AND e.t >= p.unix_s
),
around AS (
    SELECT b.*, p.unix_s AS t1, p.v AS v1 FROM below AS b ASOF LEFT JOIN readings AS p
    ON b.run_id = p.run_id AND b.attempt = p.attempt AND b.node = p.node AND b.t <= p.unix_s
),
told AS (
    SELECT *, CASE WHEN t1 - t0 > {gap} * (end_unix_s - begin_unix_s) THEN NULL WHEN t1 = t0 THEN v0
        ELSE v0 + (v1 - v0) * (t - t0) / (t1 - t0) END AS value
    FROM around
)
SELECT run_id, span, iteration, node, max(end_unix_s - begin_unix_s) AS time_s,
    CASE WHEN count(value) = 2 AND ({is_alone}) THEN max(value) - min(value) END AS used
FROM told GROUP BY run_id, span, iteration, node ORDER BY ALL
"""
# A sample without a change is left out, except for the last, which shows that nothing changed until
# then.
CHANGED = """
    WINDOW times AS (PARTITION BY run_id, attempt, node ORDER BY unix_s)
    QUALIFY lag({counter}) OVER times IS DISTINCT FROM {counter}
        OR lead({counter}) OVER times IS NULL
"""

Key = tuple[str, str, int, str]  # run, span, iteration, node


def read_span_metrics(connection: duckdb.DuckDBPyConnection) -> Values:
    """Return one value per run and metric, summed over its nodes; None if a node has none.

    Metrics without a value in any run of a condition are absent.
    """
    found: dict[str, dict[str, float | None]] = defaultdict(dict)
    of_run = read_nodes(connection)
    if connection.execute("SELECT count(*) FROM spans").fetchall() != [(0,)]:
        times: dict[Key, float] = {}
        used = {counter: read_used(connection, counter, times) for counter in COUNTERS}
        for run_id, nodes in of_run.items():
            found[run_id] |= compute_span_energy(run_id, nodes, used)
            found[run_id] |= compute_above_idle(run_id, nodes, used["energy_j"], times)
    for run_id, joules in read_above_configured(connection):
        found[run_id][ABOVE_TOLD] = joules
    return group_by_condition(connection, found)


def read_nodes(connection: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """Return the nodes of each run that has ended, by run."""
    rows = connection.execute(
        "SELECT r.run_id, a.nodes FROM runs AS r JOIN attempts AS a "
        "ON a.run_id = r.run_id AND a.attempt = r.attempt ORDER BY r.run_id"
    ).fetchall()
    return {run_id: list(nodes or ()) for run_id, nodes in rows}


def read_used(
    connection: duckdb.DuckDBPyConnection, counter: str, times: dict[Key, float]
) -> dict[Key, float | None]:
    """Return a counter's growth in each span on each node; put the lengths into `times`."""
    text = USED.format(
        all_spans=ALL_SPANS,
        nodes=NODES,
        counter=counter,
        gap=LARGEST_GAP,
        is_alone="bool_and(alone)" if counter in OF_NODE else "TRUE",
        qualify=CHANGED.format(counter=counter) if counter == "energy_j" else "",
    )
    used: dict[Key, float | None] = {}
    for run_id, span, iteration, node, time_s, value in connection.execute(text).fetchall():
        used[run_id, span, iteration, node] = value
        times[run_id, span, iteration, node] = time_s
    return used


def compute_span_energy(
    run_id: str, nodes: list[str], used: dict[str, dict[Key, float | None]]
) -> dict[str, float | None]:
    """Return means over the iterations, as for all figures of a run."""
    found = {}
    for counter, values in used.items():
        for span in PARTS:
            iterations = {key[2] for key in values if key[:2] == (run_id, span)}
            sums = [
                sum_known([values.get((run_id, span, number, node)) for node in nodes])
                for number in sorted(iterations)
            ]
            known = [one for one in sums if one is not None]
            mean = sum(known) / len(known) if known and len(known) == len(sums) else None
            found[f"{span}_{counter}"] = mean
    return found


def compute_above_idle(
    run_id: str, nodes: list[str], joules: dict[Key, float | None], times: dict[Key, float]
) -> dict[str, float | None]:
    """Return the idle power, and the joules above it between the two idle spans."""
    powers: list[float | None] = []
    above: list[float | None] = []
    for node in nodes:
        idle = [(run_id, span, 1, node) for span in ("idle_before", "idle_after")]
        idle_j = sum_known([joules.get(key) for key in idle])
        run = (run_id, "between_idles", 1, node)
        run_j = joules.get(run)
        power = None if idle_j is None else idle_j / sum(times[key] for key in idle)
        powers.append(power)
        above.append(None if power is None or run_j is None else run_j - power * times[run])
    return {IDLE_POWER: sum_known(powers), ABOVE_IDLE: sum_known(above)}


def read_above_configured(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, float | None]]:
    """Return the joules of the whole job above the idle power that administrators configured."""
    return connection.execute(
        """
        WITH nodes AS (
            SELECT n.run_id, len(a.nodes) AS nodes, n.complete AND n.energy_j IS NOT NULL AND
                CASE WHEN n.exclusive IS NULL
                    THEN json_extract_string(n.record, '$.job.scheduler') = 'none'
                    ELSE n.exclusive END IS TRUE AS whole,
                n.energy_j - n.elapsed_s * TRY_CAST(n.record->>'$.energy.idle_w' AS DOUBLE) AS above
            FROM records AS n JOIN runs AS r ON r.run_id = n.run_id AND r.attempt = n.attempt
            JOIN attempts AS a ON a.run_id = n.run_id AND a.attempt = n.attempt
        )
        SELECT run_id, CASE WHEN count(above) = any_value(nodes) AND bool_and(whole)
            THEN sum(above) END
        FROM nodes GROUP BY run_id ORDER BY run_id
        """
    ).fetchall()


def group_by_condition(
    connection: duckdb.DuckDBPyConnection, found: dict[str, dict[str, float | None]]
) -> Values:
    """Return the values by variant, condition and metric."""
    rows = connection.execute(
        "SELECT run_id, variant, condition_label FROM runs ORDER BY run_id"
    ).fetchall()
    values: Values = defaultdict(dict)
    for run_id, variant, label in rows:
        for metric, value in found.get(run_id, {}).items():
            values[variant, label, metric][run_id] = value
    return {
        key: of_runs
        for key, of_runs in values.items()
        if any(value is not None for value in of_runs.values())
    }
