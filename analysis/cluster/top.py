"""Sums of a cluster's jobs that ended in a time span, by user, account, and so on.

Every sum comes with the number of its jobs. Unknown values are in no sum, and 0 means that nothing
was used. docs/cluster.md defines the quantities. The statements run on DuckDB and on Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from steelyard.analysis.base import spark
from steelyard.analysis.cluster import day_files

# Groupings for users, and the column of `jobs`.
BY = {
    "user": "user",
    "account": "account",
    "partition": "partition",
    "node-type": "node_type",
    "application": "application",
}
NOBODY = "(not known)"
NOT_SAID = "the scheduler does not say what was held"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A column of the answer. `sql` is its value for one job j, NULL if unknown."""

    name: str
    unit: str
    sql: str
    why: str  # key of `missing` with the reason for NULL


def make_non_negative_sql(sql: str) -> str:
    """Return SQL that replaces values below 0 by 0 and keeps NULL.

    DuckDB's greatest(NULL, 0) is 0.
    """
    return f"CASE WHEN {sql} < 0 THEN 0 ELSE {sql} END"


HELD_CPU = "j.cpus * j.elapsed_s"
HELD_MEMORY = "j.memory_bytes * j.elapsed_s"
QUANTITIES = (
    Quantity("energy_j", "J", "j.energy_j", "energy_j"),
    Quantity("cpu_s", "s", "j.cpu_s", "cpu_s"),
    Quantity("cpu_allocated_s", "s", HELD_CPU, "cpus"),
    Quantity("cpu_unused_s", "s", make_non_negative_sql(f"({HELD_CPU} - j.cpu_s)"), "cpu_s"),
    Quantity("memory_allocated_byte_s", "byte seconds", HELD_MEMORY, "memory_bytes"),
    Quantity(
        "memory_unused_byte_s",
        "byte seconds",
        make_non_negative_sql("((j.memory_bytes - j.memory_used_bytes) * j.elapsed_s)"),
        "memory_used_bytes",
    ),
    Quantity("read_bytes", "bytes", "j.read_bytes", "read_bytes"),
    Quantity("write_bytes", "bytes", "j.write_bytes", "write_bytes"),
    Quantity("rchar_bytes", "bytes", "j.rchar_bytes", "rchar_bytes"),
    Quantity("wchar_bytes", "bytes", "j.wchar_bytes", "wchar_bytes"),
)
NAMES = tuple(quantity.name for quantity in QUANTITIES)


@dataclass(frozen=True, slots=True)
class Line:
    """Sums of one user, account, … over the jobs with known values; None: no job has one."""

    name: str
    jobs: int
    marked: int  # jobs with suspect records
    values: Mapping[str, float | None]
    known: Mapping[str, int]  # number of jobs with a known value


@dataclass(frozen=True, slots=True)
class Top:
    """The answer.

    `why` has for each quantity the reasons for missing values with their job counts.
    """

    since_unix_s: float
    until_unix_s: float
    lines: list[Line]
    total: Line
    why: Mapping[str, list[tuple[str, int]]]
    mark: Mapping[str, Any]  # collected.json


@dataclass(frozen=True, slots=True)
class Engine:
    """Runs SQL statements on `jobs`, and names the functions that differ between engines."""

    rows: Callable[[str], Iterable[Sequence[Any]]]
    length: str  # function: length of a list
    member: str  # function: member of a JSON object by path


def make_duckdb_engine(connection: DuckDBPyConnection) -> Engine:
    """Return the engine that runs in this process."""
    return Engine(
        lambda statement: connection.execute(statement).fetchall(), "len", "json_extract_string"
    )


def make_spark_engine(session: Any) -> Engine:
    """Return the engine of a Spark session. All of its machines must see the files."""
    return Engine(lambda statement: session.sql(statement).collect(), "size", "get_json_object")


def sum_top(
    database_dir: Path, by: str, since_unix_s: float, until_unix_s: float,
    engine: str = "duckdb", master: str | None = None,
) -> Top:  # fmt: skip
    """Sum the jobs that had nodes and ended in [since, until), by a key of BY, unordered.

    `engine` is duckdb, or spark with the address `master` (see `spark.open_session`).
    """
    span = since_unix_s, until_unix_s
    if engine == "spark":
        return sum_with_spark(database_dir, by, span, master)
    return sum_with_duckdb(database_dir, by, span)


def sum_with_duckdb(database_dir: Path, by: str, span: day_files.Span) -> Top:
    """Do the same as `sum_top` with DuckDB."""
    return day_files.query_jobs(
        database_dir,
        lambda found, mark: build_top(make_duckdb_engine(found), by, span, mark),
        span=span,
    )


def sum_with_spark(database_dir: Path, by: str, span: day_files.Span, master: str | None) -> Top:
    """Do the same as `sum_top` with Spark."""
    with spark.open_session(master) as session:
        from pyspark.errors import PySparkException

        def attempt(files: Sequence[Path], mark: Mapping[str, Any]) -> Top:
            if not files:  # without files Spark cannot infer columns
                return sum_with_duckdb(database_dir, by, span)
            session.read.parquet(*map(spark.escape_hadoop_path, files)).createOrReplaceTempView(
                "jobs"
            )
            return build_top(make_spark_engine(session), by, span, mark)

        return day_files.read_consistently(database_dir, attempt, PySparkException, span=span)


def build_top(engine: Engine, by: str, span: day_files.Span, mark: Mapping[str, Any]) -> Top:
    """Return the answer for the jobs of an engine."""
    sums = compute_sums(engine, [by], span)
    why = find_reasons(engine, span)
    return Top(*span, sums.lines[by], sums.total, why, mark)


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of all jobs of a span by several keys of BY, and their total."""

    lines: Mapping[str, list[Line]]
    total: Line


def compute_sums(engine: Engine, by: Sequence[str], span: day_files.Span) -> Sums:
    """Sum by all keys in one scan of the needed columns."""
    groups = [f"g{index}" for index in range(len(by))]
    keys = (f"coalesce(j.{BY[key]}, '{NOBODY}') AS {g}" for key, g in zip(by, groups, strict=True))
    values = (f"{quantity.sql} AS of_{quantity.name}" for quantity in QUANTITIES)
    odd = f"CASE WHEN {engine.length}(j.marks) > 0 THEN 1 END AS odd"
    cells = ", ".join(f"CAST(sum(of_{n}) AS DOUBLE), count(of_{n})" for n in NAMES)
    sets = ", ".join([*(f"({group})" for group in groups), "()"])
    rows = engine.rows(
        f"SELECT grouping_id({', '.join(groups)}), coalesce({', '.join(groups)}, 'all'), count(*), "
        f"count(odd), {cells} FROM (SELECT {', '.join([*keys, odd, *values])} FROM jobs AS j "
        f"WHERE {make_ended_condition(span)}) AS counted GROUP BY GROUPING SETS ({sets})"
    )
    # grouping_id has a bit for each key that a set leaves out; the first key's is the highest.
    every = (1 << len(by)) - 1
    of_set = {every - (1 << (len(by) - 1 - index)): key for index, key in enumerate(by)}
    lines: dict[str, list[Line]] = {key: [] for key in by}
    total = build_line(("all", 0, 0, *(None, 0) * len(NAMES)))
    for grouping, *row in rows:
        if grouping == every:
            total = build_line(row)
        else:
            lines[of_set[grouping]].append(build_line(row))
    return Sums(lines, total)


def make_ended_condition(span: day_files.Span) -> str:
    """Return the SQL condition for jobs that had nodes and ended in a span."""
    since, until = (f"CAST('{moment!r}' AS DOUBLE)" for moment in map(float, span))
    return f"j.start_unix_s IS NOT NULL AND j.end_unix_s >= {since} AND j.end_unix_s < {until}"


def build_line(row: Sequence[Any]) -> Line:
    """Return the line of a row: name, jobs, marked jobs, and sum and count of each quantity."""
    values = dict(zip(NAMES, row[3::2], strict=True))
    return Line(row[0], row[1], row[2], values, dict(zip(NAMES, row[4::2], strict=True)))


def find_reasons(engine: Engine, span: day_files.Span) -> dict[str, list[tuple[str, int]]]:
    """Return by quantity the reasons for missing values with job counts, the most common first.

    Text after a colon is specific to a job and is dropped.
    """
    of_each = ", ".join(
        f"CASE WHEN {quantity.sql} IS NULL THEN coalesce(split_part({engine.member}"
        f"(j.missing, '$.{quantity.why}'), ':', 1), '{NOT_SAID}') END AS why_{quantity.name}"
        for quantity in QUANTITIES
    )
    rows = engine.rows(
        f"SELECT quantity, why, count(*) FROM (SELECT {of_each} FROM jobs AS j "
        f"WHERE {make_ended_condition(span)}) AS told UNPIVOT (why FOR quantity IN "
        f"({', '.join(f'why_{name}' for name in NAMES)})) GROUP BY quantity, why"
    )
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in NAMES}
    for quantity, why, jobs in sorted(rows, key=lambda row: (-row[2], row[1])):
        found[quantity.removeprefix("why_")].append((why, jobs))
    return found
