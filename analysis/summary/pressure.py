"""Metrics of runs on nodes whose kernel tells pressure (PSI): the share of a run's job in which some
task waited for a CPU, for I/O or memory; and what of a virtual node's CPU time its host gave to others.
Of several nodes the largest."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

# By the field of the record that tells it, and the CPUs over which that is added up.
ONE, ALL_CPUS = "1", "TRY_CAST(n.record->>'$.probe.cpu.cpus_online' AS DOUBLE)"
METRICS = {
    "waited_for_cpu": ("$.pressure.cpu_some_s", ONE),
    "waited_for_io": ("$.pressure.io_some_s", ONE),
    "waited_for_memory": ("$.pressure.memory_some_s", ONE),
    "stolen_by_host": ("$.cpu.node_steal_s", ALL_CPUS),
}

Values = dict[tuple[str, str, str], dict[str, float | None]]


def read_pressure(connection: duckdb.DuckDBPyConnection) -> Values:
    """In percent, one value per run, None as soon as it is not known of a node; none at all of
    conditions under which no node told any."""
    values: Values = {}
    for metric, (path, cpus) in METRICS.items():
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
