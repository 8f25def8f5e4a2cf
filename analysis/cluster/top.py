"""Who used what of a cluster: jobs that ended in a time, summed by user, account, and so on.

Every sum stands beside the number of jobs that it is of: what is not known is in no sum, and 0 means
that nothing was used. docs/cluster.md defines the quantities.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from steelyard.analysis.cluster import days

# What a person groups by, and the column of `jobs`.
BY = {
    "user": "user",
    "account": "account",
    "partition": "partition",
    "node-type": "node_type",
    "application": "application",
}
NOBODY = "(not known)"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of the answer: `sql` of one job, NULL where it is not known of it."""

    name: str
    unit: str
    sql: str
    why: str  # the key of `missing` that says why it is not known


def at_least_0(sql: str) -> str:
    """What is below 0 as 0, and NULL as NULL: DuckDB's greatest(NULL, 0) is 0."""
    return f"CASE WHEN {sql} < 0 THEN 0 ELSE {sql} END"


HELD_CPU = "cpus * elapsed_s"
HELD_MEMORY = "memory_bytes * elapsed_s"
QUANTITIES = (
    Quantity("energy_j", "J", "energy_j", "energy_j"),
    Quantity("cpu_s", "s", "cpu_s", "cpu_s"),
    Quantity("cpu_held_s", "s", HELD_CPU, "cpus"),
    Quantity("cpu_unused_s", "s", at_least_0(f"({HELD_CPU} - cpu_s)"), "cpu_s"),
    Quantity("memory_held_byte_s", "byte seconds", HELD_MEMORY, "memory_bytes"),
    Quantity(
        "memory_unused_byte_s",
        "byte seconds",
        at_least_0("((memory_bytes - memory_used_bytes) * elapsed_s)"),
        "memory_used_bytes",
    ),
    Quantity("read_bytes", "bytes", "read_bytes", "read_bytes"),
    Quantity("write_bytes", "bytes", "write_bytes", "write_bytes"),
    Quantity("rchar_bytes", "bytes", "rchar_bytes", "rchar_bytes"),
    Quantity("wchar_bytes", "bytes", "wchar_bytes", "wchar_bytes"),
)
NAMES = tuple(quantity.name for quantity in QUANTITIES)


@dataclass(frozen=True, slots=True)
class Line:
    """One user, account, …: sums of those jobs of which each is known; None: of none of them."""

    name: str
    jobs: int
    marked: int  # of which records are odd
    values: Mapping[str, float | None]
    known: Mapping[str, int]  # of how many jobs


@dataclass(frozen=True, slots=True)
class Top:
    """The answer; `why`: by quantity the reasons why it is not known, with the number of jobs."""

    since_unix_s: float
    until_unix_s: float
    lines: list[Line]
    total: Line
    why: Mapping[str, list[tuple[str, int]]]
    mark: Mapping[str, Any]  # collected.json


def top(database_dir: Path, by: str, since_unix_s: float, until_unix_s: float) -> Top:
    """Jobs that had nodes and ended in [since, until), by a key of BY; in no order."""

    def ask(connection: DuckDBPyConnection, mark: Mapping[str, Any]) -> Top:
        connection.execute(
            f"CREATE TEMP TABLE counted AS SELECT coalesce({quoted(by)}, '{NOBODY}') AS who, *, "
            f"{', '.join(f'{q.sql} AS {quoted_name(q.name)}' for q in QUANTITIES)} "
            "FROM jobs WHERE start_unix_s IS NOT NULL AND end_unix_s >= ? AND end_unix_s < ?",
            [since_unix_s, until_unix_s],
        )
        return Top(
            since_unix_s,
            until_unix_s,
            lines(connection, "who", "GROUP BY who"),
            lines(connection, "'all'", "")[0],
            {q.name: reasons(connection, q) for q in QUANTITIES},
            mark,
        )

    return days.read(database_dir, ask)


def quoted(by: str) -> str:
    """The column that a person groups by."""
    return f'"{BY[by]}"'


def quoted_name(name: str) -> str:
    """Of a quantity, beside the job's own column of that name."""
    return f'"of_{name}"'


def lines(connection: DuckDBPyConnection, who: str, group: str) -> list[Line]:
    """The sums of each group."""
    cells = ", ".join(
        f"sum({quoted_name(name)})::DOUBLE, count({quoted_name(name)})" for name in NAMES
    )
    rows = connection.execute(
        f"SELECT {who}, count(*), count(*) FILTER (len(marks) > 0), {cells} FROM counted {group}"
    ).fetchall()
    return [
        Line(
            row[0],
            row[1],
            row[2],
            dict(zip(NAMES, row[3::2], strict=True)),
            dict(zip(NAMES, row[4::2], strict=True)),
        )
        for row in rows
    ]


def reasons(connection: DuckDBPyConnection, quantity: Quantity) -> list[tuple[str, int]]:
    """Why it is not known of jobs, the commonest first; words after a colon are each job's own."""
    rows = connection.execute(
        f"SELECT coalesce(split_part(missing->>'{quantity.why}', ':', 1), 'the scheduler does not "
        f"say what was held') AS why, count(*) AS n FROM counted WHERE "
        f"{quoted_name(quantity.name)} IS NULL GROUP BY why ORDER BY n DESC, why"
    ).fetchall()
    return [(row[0], row[1]) for row in rows]
