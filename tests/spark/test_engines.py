"""The summary on DuckDB and on a local Spark: the same answers, the report's, and the docs' own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.base import spark
from steelyard.analysis.summary import parquet_summary, summary

pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
QUERY = Path(__file__).parents[2] / "docs" / "summary.sql"


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, list[parquet_summary.Line]]:
    return {engine: parquet_summary.summarize(folder, engine) for engine in ("duckdb", "spark")}


def numbers(line: parquet_summary.Line) -> list[float | None]:
    return [line.mean, line.sd, line.median, line.low, line.high]


def test_both_engines_say_the_same(answers: dict[str, list[parquet_summary.Line]]) -> None:
    duck, spark = answers["duckdb"], answers["spark"]
    assert len(duck) > 10
    for ours, theirs in zip(duck, spark, strict=True):
        key = (ours.variant, ours.condition, ours.metric, ours.n)
        assert key == (theirs.variant, theirs.condition, theirs.metric, theirs.n)
        for one, other in zip(numbers(ours), numbers(theirs), strict=True):
            assert one == (other if other is None else pytest.approx(other, rel=1e-12))


def test_the_report_says_so_too(
    folder: Path, answers: dict[str, list[parquet_summary.Line]]
) -> None:
    rows = {
        (r.group.variant, r.group.label, r.metric.name): r for r in summary.summarize(folder).rows
    }
    compared = 0
    for line in answers["spark"]:
        row: Any = rows.get((line.variant, line.condition, line.metric.removeprefix("samples.")))
        if row is None or not row.n or row.n != line.n:
            continue
        assert (row.interval.mean, row.median) == pytest.approx((line.mean, line.median))
        if line.reason is None:
            assert (row.interval.low, row.interval.high) == pytest.approx((line.low, line.high))
        compared += 1
    assert compared >= 8


def test_a_run_that_failed_is_in_no_mean(answers: dict[str, list[parquet_summary.Line]]) -> None:
    for lines in answers.values():
        assert sum(line.n for line in lines if line.metric == "elapsed_s") == 4


def plain_duckdb(parquet: Path) -> list[tuple[Any, ...]]:
    """Return the query's rows from DuckDB alone."""
    with duckdb.connect() as base:
        for name, files in (("runs", "runs"), ("results", "results"), ("samples", "samples/*/*")):
            base.read_parquet(str(parquet / f"{files}.parquet")).create_view(name)
        return base.execute(QUERY.read_text("utf-8")).fetchall()


def plain_spark(parquet: Path) -> list[tuple[Any, ...]]:
    """Return the query's rows from PySpark alone."""
    names = (("runs", "runs.parquet"), ("results", "results.parquet"), ("samples",) * 2)
    with spark.open_session(None) as session:
        for name, file in names:
            session.read.parquet(str(parquet / file)).createOrReplaceTempView(name)
        return [tuple(row) for row in session.sql(QUERY.read_text("utf-8")).collect()]


@pytest.mark.parametrize("engine", [plain_duckdb, plain_spark])
def test_the_documented_files_and_query_are_enough_for_any_engine(
    folder: Path,
    answers: dict[str, list[parquet_summary.Line]],
    engine: Callable[[Path], list[tuple[Any, ...]]],
) -> None:
    lines = answers["duckdb"]
    wanted = [
        (line.variant, line.condition, line.metric, line.n, pytest.approx(line.mean, rel=1e-12))
        for line in lines
        if line.metric != "elapsed_s" and line.metric in ("samples.cpu_s", *measured(lines))
    ]
    assert len(wanted) > 3
    assert any(line[2] == "samples.cpu_s" for line in wanted)
    assert engine(folder / "parquet") == wanted


def measured(lines: list[parquet_summary.Line]) -> set[str]:
    """Return the metrics that benchmarks gave."""
    return {line.metric for line in lines if not line.metric.startswith("samples.")}
