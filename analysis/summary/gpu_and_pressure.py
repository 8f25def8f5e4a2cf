"""Metrics of runs that only some nodes have: joules of GPUs with meters, and pressure.

Pressure (PSI) is the share of a run's job in which some task waited for a CPU, for I/O or memory.
Stolen time is the share of a virtual node's CPU time that its host gave to others. The largest
value of several nodes counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb


GPU_ENERGY = "gpu_energy_j"

Values = dict[tuple[str, str, str], dict[str, float | None]]


def read_gpu_energy(connection: duckdb.DuckDBPyConnection) -> Values:
    """Return one value per run, None if it is unknown for a node.

    Nodes without a GPU add nothing. Conditions under which no node had a GPU are absent.
    """
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
        values.setdefault((variant, label, GPU_ENERGY), {})[run_id] = energy_j
    return values


# By metric: the field of the record, and the number of CPUs over which the field adds up.
ONE, ALL_CPUS = "1", "TRY_CAST(n.record->>'$.probe.cpu.cpus_online' AS DOUBLE)"
PRESSURE = {
    "waited_for_cpu": ("$.pressure.cpu_some_s", ONE),
    "waited_for_io": ("$.pressure.io_some_s", ONE),
    "waited_for_memory": ("$.pressure.memory_some_s", ONE),
    "stolen_by_host": ("$.cpu.node_steal_s", ALL_CPUS),
}


def read_pressure(connection: duckdb.DuckDBPyConnection) -> Values:
    """Return one value in percent per run, None if it is unknown for a node.

    Conditions under which no node reported a value are absent.
    """
    values: Values = {}
    for metric, (path, cpus) in PRESSURE.items():
        rows = connection.execute(
            f"""
            WITH nodes AS (
                SELECT r.variant, r.condition_label, r.run_id, len(a.nodes) AS nodes,
                    CASE WHEN n.complete AND n.elapsed_s > 0 THEN
                        100 * TRY_CAST(n.record->>? AS DOUBLE) / n.elapsed_s / nullif({cpus}, 0) END AS told,
                    CASE WHEN told > 100 THEN 100 ELSE told END AS share
                FROM runs AS r
                JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
                JOIN records AS n ON n.run_id = r.run_id AND n.attempt = r.attempt
            )
            SELECT variant, condition_label, run_id,
                CASE WHEN count(*) >= any_value(nodes) AND count(share) = count(*)
                    THEN max(share) END
            FROM nodes SEMI JOIN (SELECT * FROM nodes WHERE share IS NOT NULL)
                USING (variant, condition_label)
            GROUP BY variant, condition_label, run_id ORDER BY ALL
            """,
            [path],
        ).fetchall()
        for variant, label, run_id, share in rows:
            values.setdefault((variant, label, metric), {})[run_id] = share
    return values
