"""What a benchmark measured several times inside its runs, iteration by iteration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.base.benchmark_traits import has_time_order
from steelyard.analysis.stats.warm_up import MIN_ITERATIONS

if TYPE_CHECKING:
    import duckdb

# {(run, metric): its iterations in their order, each the mean over the clients}
Iterations = dict[tuple[str, str], list[float]]


def read_iterations(connection: duckdb.DuckDBPyConnection) -> Iterations:
    """Main figures of the attempts that count, where a run has at least 3 iterations in time."""
    names = connection.execute("SELECT DISTINCT benchmark FROM runs").fetchall()
    rows = connection.execute(
        """
        WITH means AS (
            SELECT s.run_id, s.metric, s.iteration, avg(s.value) AS v
            FROM results AS s JOIN runs AS r ON r.run_id = s.run_id AND r.attempt = s.attempt
            WHERE s.is_primary AND isfinite(s.value) AND list_contains(?, r.benchmark)
            GROUP BY s.run_id, s.metric, s.iteration)
        SELECT run_id, metric, list(v ORDER BY iteration) FROM means
        GROUP BY run_id, metric HAVING count(*) >= ?
        """,
        [[name for (name,) in names if has_time_order(name)], MIN_ITERATIONS],
    ).fetchall()
    return {(run_id, metric): values for run_id, metric, values in rows}
