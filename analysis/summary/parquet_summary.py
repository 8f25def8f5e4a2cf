"""Computes the summary of a study from its Parquet files, by DuckDB or Spark.

One SQL statement serves both. It computes from `parquet/` alone (docs/collect.md) what the report
computes from the database, so that a cluster can do it if one machine is not enough. DuckDB is
always installed; Spark comes with the extra `spark`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from steelyard.analysis.base import spark
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.stats.basics import (
    CONFIDENCE,
    Interval,
    compute_ends,
    is_rate,
    rate_interval,
    student_quantile,
)
from steelyard.analysis.stats.number_format import is_never_negative
from steelyard.analysis.stats.planning import STOPPING_CONFIDENCE
from steelyard.analysis.store import export
from steelyard.analysis.store.row_files import escape_pattern, quote_path, quote_text
from steelyard.analysis.store.sample_store import is_complete
from steelyard.analysis.summary.study_data import has_stop_table
from steelyard.facts.quantities import COUNTERS

PARTS = "sample_parts"
READ_BY_NAME = ("meta", PARTS)  # read by DuckDB, whatever the engine
NEEDED = ("runs", "attempts", "results", "records", *READ_BY_NAME)


# One value per run and metric, of completed and valid runs only, then the values that Student's
# interval and the report's table need. NULL, infinity and NaN, which sorts above all numbers, are
# excluded.
SUMMARY = """
WITH good AS (
    SELECT r.run_id, r.attempt, r.variant, r.condition_label, r.block, a.elapsed_s,
        coalesce(a.job_id, r.run_id) AS job
    FROM runs AS r JOIN attempts AS a ON a.run_id = r.run_id AND a.attempt = r.attempt
    WHERE r.state = 'completed' AND coalesce(r.valid, true)
), measured AS (
    SELECT run_id, attempt, metric, max(unit) AS unit, max(better) AS better,
        CASE
            WHEN max(better) = 'higher' AND (max(unit) LIKE '%/s' OR max(unit) LIKE '%_per_s')
                AND min(value) > 0 AND max(value) <= 1.7976931348623157e308
                THEN 1 / avg(1 / nullif(value, 0))
            ELSE avg(value)
        END AS value
    FROM results GROUP BY run_id, attempt, metric
    UNION ALL
    SELECT run_id, attempt, 'elapsed_s' AS metric, 's' AS unit, 'lower' AS better,
        elapsed_s AS value
    FROM good
    {totals}
)
SELECT variant, condition_label, metric, count(*) AS n, avg(value) AS mean,
    stddev_samp(value) AS sd, median(value) AS median, min(value) AS minimum, max(unit) AS unit,
    max(better) AS better, avg(1 / nullif(value, 0)) AS cost_mean,
    stddev_samp(1 / nullif(value, 0)) AS cost_sd,
    count(DISTINCT block) AS blocks, count(DISTINCT job) AS jobs
FROM measured AS m JOIN good AS g ON g.run_id = m.run_id AND g.attempt = m.attempt
WHERE abs(value) <= 1.7976931348623157e308
GROUP BY variant, condition_label, metric
"""
# The last reading of each counter, summed over the nodes of a run. All are amounts: the unit `s`
# marks them as never negative.
OF_SAMPLES = """
    UNION ALL
    SELECT run_id, attempt, concat('samples.', metric) AS metric, 's' AS unit, 'lower' AS better,
        value
    FROM (
        SELECT run_id, attempt, {summed} FROM (
            SELECT run_id, attempt, node, {readings} FROM samples GROUP BY run_id, attempt, node
        ) AS of_node GROUP BY run_id, attempt
    ) AS of_run UNPIVOT (value FOR metric IN ({names}))
"""


@dataclass(frozen=True, slots=True)
class Line:
    """One metric of one condition; sd, low and high (95 %, Student) are None for n = 1.

    low and high are also None if runs share blocks or jobs; `reason` states this.
    """

    variant: str
    condition: str
    metric: str
    n: int
    mean: float
    sd: float | None
    median: float
    low: float | None
    high: float | None
    reason: str | None = None  # why there is no interval


SHARED = "runs share blocks or jobs: `steelyard report` has the interval that allows for it"


def summarize(study_dir: Path, engine: str, master: str | None = None) -> list[Line]:
    """Return every metric of every condition, sorted, from completed and valid runs only.

    `master` is the address of a Spark cluster (`spark://HOST:7077`); None starts Spark in this
    process. The totals of the sampled counters have the names `samples.NAME` and are summed over
    the nodes of a run. Raises MissingError for missing files, and UsageError for damaged or
    changing files.
    """
    folder = study_dir / "parquet"
    lacking = [name for name in NEEDED if not (folder / f"{name}.parquet").is_file()]
    if lacking:
        raise MissingError(
            f"{folder / lacking[0]}.parquet is missing: run `steelyard collect` first"
        )
    collected = export.read_mark(folder)
    cut = [path for path in folder.rglob("*.parquet") if not is_complete(path)]
    if cut:
        raise UsageError(
            f"{cut[0]} is no whole Parquet file: `steelyard collect` writes it anew", str(cut[0])
        )
    check_parts(folder)
    confidence = read_confidence(folder)
    rows = (
        summarize_with_spark(folder, master) if engine == "spark" else summarize_with_duckdb(folder)
    )
    if export.read_mark(folder) != collected:
        raise UsageError(f"{folder} was written anew while it was read: try again", str(folder))
    lines = (build_line(row, confidence) for row in rows)
    return sorted(lines, key=lambda r: (r.variant, r.condition, r.metric))


def read_confidence(folder: Path) -> float:
    """Return the confidence for intervals that hold 95 %; larger if a rule stopped the study."""
    with duckdb.connect() as connection:
        path = quote_path(folder / "meta.parquet")
        (toml,) = connection.execute(f"SELECT toml FROM read_parquet({path})").fetchall()[0]
    return STOPPING_CONFIDENCE if has_stop_table(toml or "") else CONFIDENCE


def summarize_with_duckdb(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of SUMMARY, computed in this process."""
    samples = has_samples(folder)
    with duckdb.connect() as connection:
        connection.execute(f"SET temp_directory = {quote_text(str(folder / '.summary.spill'))}")
        for name in list_views(samples):
            files = "samples/*/*.parquet" if name == "samples" else f"{name}.parquet"
            connection.read_parquet(f"{escape_pattern(folder)}/{files}").create_view(name)
        cursor = connection.execute(build_statement(samples))
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def summarize_with_spark(folder: Path, master: str | None) -> list[dict[str, Any]]:
    """Return the rows of SUMMARY, computed by Spark."""
    samples = has_samples(folder)
    with spark.open_session(master) as session:
        for name in list_views(samples):
            files = "samples" if name == "samples" else f"{name}.parquet"
            path = f"{spark.escape_hadoop_path(folder)}/{files}"
            session.read.parquet(path).createOrReplaceTempView(name)
        return [row.asDict() for row in session.sql(build_statement(samples)).collect()]


def has_samples(folder: Path) -> bool:
    """Return whether the folder has sample files."""
    return any(folder.glob("samples/*/*.parquet"))


def list_views(samples: bool) -> list[str]:
    """Return the tables that the statement reads."""
    names = [name for name in NEEDED if name not in READ_BY_NAME]
    return [*names, "samples"] if samples else names


def check_parts(folder: Path) -> None:
    """Check that the sample files are those of the last collect; raises UsageError otherwise."""
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT path FROM read_parquet({quote_path(folder / f'{PARTS}.parquet')})"
        ).fetchall()
    named = {path for (path,) in rows}
    there = {str(p.relative_to(folder / "samples")) for p in folder.glob("samples/*/*.parquet")}
    if named != there:
        other = folder / "samples" / min(named - there or there - named)
        problem = "is missing" if named - there else "is not of the last collect"
        raise UsageError(f"{other} {problem}: `steelyard collect` mends that", str(other))


def build_statement(samples: bool) -> str:
    """Return SUMMARY, with the totals of the samples if there are any."""
    if not samples:
        return SUMMARY.format(totals="")
    names = ", ".join(COUNTERS)
    readings = ", ".join(f"max({name}) AS {name}" for name in COUNTERS)
    summed = ", ".join(f"CAST(sum({name}) AS DOUBLE) AS {name}" for name in COUNTERS)
    return SUMMARY.format(totals=OF_SAMPLES.format(names=names, readings=readings, summed=summed))


def build_line(row: Mapping[str, Any], confidence: float = CONFIDENCE) -> Line:
    """Return a line with its interval; engines give different deviations for one value."""
    n, mean, sd = row["n"], row["mean"], row["sd"]
    rate = is_rate(row["unit"], row["better"]) and row["minimum"] > 0
    cost_mean = row["cost_mean"] if rate else 0.0
    mean = 1 / cost_mean if rate else mean
    low = high = reason = None
    if n < 2 or sd is None or math.isnan(sd):
        sd = None
    elif row["jobs"] < n or 2 <= row["blocks"] < n:
        reason = SHARED
    else:
        t = student_quantile((1 + confidence) / 2, n - 1) / math.sqrt(n)
        cut = is_never_negative(row["variant"], row["unit"], row["minimum"])
        low, high = compute_ends(mean, t * sd, n, cut)
        if rate:
            cost = Interval(cost_mean, *compute_ends(cost_mean, t * row["cost_sd"], n, True), n)
            low, high = rate_interval(cost).low, rate_interval(cost).high
    names = (row["variant"], row["condition_label"], row["metric"])
    return Line(*names, n, mean, sd, row["median"], low, high, reason)
