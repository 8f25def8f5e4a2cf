"""Who used what of a cluster: jobs that ended in a time, summed by user, account, and so on.

Every sum stands beside the number of jobs that it is of: what is not known is in no sum, and 0 means
that nothing was used. docs/cluster.md defines the quantities. The statements are such as DuckDB and
Spark understand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckdb import DuckDBPyConnection

from steelyard.analysis.base import spark
from steelyard.analysis.cluster import day_files

# What a person groups by, and the column of `jobs`.
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
    """A column of the answer: `sql` of one job j, NULL where it is not known of it."""

    name: str
    unit: str
    sql: str
    why: str  # the key of `missing` that says why it is not known


def make_non_negative_sql(sql: str) -> str:
    """What is below 0 as 0, and NULL as NULL: DuckDB's greatest(NULL, 0) is 0."""
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


@dataclass(frozen=True, slots=True)
class Engine:
    """Who answers an SQL statement on `jobs`, and what it calls what others call otherwise."""

    rows: Callable[[str], Iterable[Sequence[Any]]]
    length: str  # of a list
    member: str  # of a JSON object, by its path


def make_duckdb_engine(connection: DuckDBPyConnection) -> Engine:
    """In this process."""
    return Engine(
        lambda statement: connection.execute(statement).fetchall(), "len", "json_extract_string"
    )


def make_spark_engine(session: Any) -> Engine:
    """On one machine or on many, which all see the files."""
    return Engine(lambda statement: session.sql(statement).collect(), "size", "get_json_object")


def sum_top(
    database_dir: Path, by: str, since_unix_s: float, until_unix_s: float,
    engine: str = "duckdb", master: str | None = None,
) -> Top:  # fmt: skip
    """Jobs that had nodes and ended in [since, until), by a key of BY; in no order.

    `engine`: duckdb, or spark, which `master` is the address of (spark.started).
    """
    span = since_unix_s, until_unix_s
    if engine == "spark":
        return sum_with_spark(database_dir, by, span, master)
    return sum_with_duckdb(database_dir, by, span)


def sum_with_duckdb(database_dir: Path, by: str, span: day_files.Span) -> Top:
    """As top()."""
    return day_files.query_jobs(
        database_dir,
        lambda found, mark: build_top(make_duckdb_engine(found), by, span, mark),
        span=span,
    )


def sum_with_spark(database_dir: Path, by: str, span: day_files.Span, master: str | None) -> Top:
    """As top()."""
    with spark.open_session(master) as session:
        from pyspark.errors import PySparkException

        def attempt(files: Sequence[Path], mark: Mapping[str, Any]) -> Top:
            if not files:  # of nothing Spark knows no columns
                return sum_with_duckdb(database_dir, by, span)
            session.read.parquet(*map(spark.escape_hadoop_path, files)).createOrReplaceTempView(
                "jobs"
            )
            return build_top(make_spark_engine(session), by, span, mark)

        return day_files.read_consistently(database_dir, attempt, PySparkException, span=span)


def build_top(engine: Engine, by: str, span: day_files.Span, mark: Mapping[str, Any]) -> Top:
    """As top(), of the jobs that an engine has."""
    sums = compute_sums(engine, [by], span)
    why = find_reasons(engine, span)
    return Top(*span, sums.lines[by], sums.total, why, mark)


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of all jobs of a time, by each of several keys of BY; and all together."""

    lines: Mapping[str, list[Line]]
    total: Line


def compute_sums(engine: Engine, by: Sequence[str], span: day_files.Span) -> Sums:
    """One look at the jobs, whatever they are summed by, and at no column that is not needed."""
    groups = [f"g{place}" for place in range(len(by))]
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
    # A bit for each key that a set leaves out, the first key's the highest.
    every = (1 << len(by)) - 1
    of_set = {every - (1 << (len(by) - 1 - place)): key for place, key in enumerate(by)}
    lines: dict[str, list[Line]] = {key: [] for key in by}
    total = build_line(("all", 0, 0, *(None, 0) * len(NAMES)))
    for left_out, *row in rows:
        if left_out == every:
            total = build_line(row)
        else:
            lines[of_set[left_out]].append(build_line(row))
    return Sums(lines, total)


def make_ended_condition(span: day_files.Span) -> str:
    """Jobs that had nodes and ended in a span."""
    since, until = (f"CAST('{moment!r}' AS DOUBLE)" for moment in map(float, span))
    return f"j.start_unix_s IS NOT NULL AND j.end_unix_s >= {since} AND j.end_unix_s < {until}"


def build_line(row: Sequence[Any]) -> Line:
    """Of a row of sums: who, jobs, marked ones; of each quantity the sum and of how many."""
    values = dict(zip(NAMES, row[3::2], strict=True))
    return Line(row[0], row[1], row[2], values, dict(zip(NAMES, row[4::2], strict=True)))


def find_reasons(engine: Engine, span: day_files.Span) -> dict[str, list[tuple[str, int]]]:
    """By quantity why it is not known of jobs, the commonest first; words after a colon are each
    job's own."""
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
