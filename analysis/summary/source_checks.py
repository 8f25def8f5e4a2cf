"""Sources that disagree, and programs that replaced the scheduler's accounting, as the report reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from steelyard.analysis.sources.pbs.accounting_cells import SERVER_LOG

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two sources that are further apart than allowed; node None: sums over all nodes."""

    run_id: str
    node: str | None
    quantity: str
    unit: str
    source_a: str
    value_a: float
    source_b: str
    value_b: float


@dataclass(frozen=True, slots=True)
class Checks:
    """What came of comparing, of the attempts that count."""

    runs: int = 0  # of which two sources could be compared
    disagreements: tuple[Disagreement, ...] = ()  # the widest apart first


def read_checks(connection: DuckDBPyConnection) -> Checks:
    """From the table `checks`."""
    counted = "checks AS c JOIN runs AS r ON r.run_id = c.run_id AND r.attempt = c.attempt"
    runs = connection.execute(f"SELECT count(DISTINCT c.run_id) FROM {counted}").fetchall()
    rows = connection.execute(
        "SELECT c.run_id, c.node, c.quantity, c.unit, c.source_a, c.value_a, c.source_b, c.value_b "
        f"FROM {counted} WHERE NOT c.agrees "
        "ORDER BY abs(c.value_a - c.value_b) / greatest(c.bound, 1e-9) DESC, 1, 2, 3, 5, 7"
    ).fetchall()
    return Checks(int(runs[0][0]), tuple(Disagreement(*row) for row in rows))


def read_stand_ins(connection: DuckDBPyConnection) -> dict[str, int]:
    """The programs that were asked instead, and of how many runs; of the attempts that count."""
    rows = connection.execute(
        "SELECT extra->>'source' AS source, count(DISTINCT run_id) FROM accounting "
        "SEMI JOIN runs USING (run_id, attempt) "
        "WHERE extra->>'source' <> ? GROUP BY source ORDER BY source",
        [SERVER_LOG],
    ).fetchall()
    return {str(source): int(runs) for source, runs in rows}
