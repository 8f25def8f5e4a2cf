"""A metric of runs on nodes whose GPUs have meters: the joules of the job's own, over its nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

METRIC = "gpu_energy_j"

Values = dict[tuple[str, str, str], dict[str, float | None]]


def read_gpu_energy(connection: duckdb.DuckDBPyConnection) -> Values:
    """One value per run, None as soon as it is not known of a node; none at all of conditions
    under which no node had a GPU. Nodes without add nothing."""
    rows = connection.execute(
        """
        WITH nodes AS (
            SELECT r.variant, r.condition_label, r.run_id, n.complete, n.gpu_energy_j,
                len(a.nodes) AS nodes,
                TRY_CAST(n.record->>'$.energy.gpus.of_node' AS INTEGER) AS gpus
            FROM runs AS r
            JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
            JOIN records AS n ON n.run_id = r.run_id AND n.attempt = r.attempt
        )
        SELECT variant, condition_label, run_id,
            CASE WHEN count(*) = any_value(nodes) AND count(gpus) = count(*) AND bool_and(complete)
                AND bool_and(gpus = 0 OR gpu_energy_j IS NOT NULL)
            THEN sum(gpu_energy_j) FILTER (gpus > 0) END
        FROM nodes SEMI JOIN (SELECT * FROM nodes WHERE gpus > 0)
            USING (variant, condition_label)
        GROUP BY variant, condition_label, run_id ORDER BY ALL
        """
    ).fetchall()
    values: Values = {}
    for variant, label, run_id, energy_j in rows:
        values.setdefault((variant, label, METRIC), {})[run_id] = energy_j
    return values
