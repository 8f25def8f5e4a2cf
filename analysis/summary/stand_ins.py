"""What stood in for the scheduler's accounting where it could not be read, as the report tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steelyard.analysis.sources.pbs.cells import SERVER_LOG

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def read_stand_ins(connection: DuckDBPyConnection) -> dict[str, int]:
    """The programs that were asked instead, and of how many runs; of the attempts that count."""
    rows = connection.execute(
        "SELECT extra->>'source' AS source, count(DISTINCT run_id) FROM accounting "
        "SEMI JOIN runs USING (run_id, attempt) "
        "WHERE extra->>'source' <> ? GROUP BY source ORDER BY source",
        [SERVER_LOG],
    ).fetchall()
    return {str(source): int(runs) for source, runs in rows}
