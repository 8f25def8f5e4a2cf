"""The summary on DuckDB and on a local Spark: the same answers, and the report's."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.analysis import engines, summary

pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
STUDY = Path(__file__).parents[1] / "unit" / "merging" / "study.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A collected study: recorded jobs, several runs under one condition."""
    study = SimpleNamespace(**runpy.run_path(str(STUDY))).Study(tmp_path_factory.mktemp("spark"))
    study.everything()
    study.collect()
    path: Path = study.dir
    return path


@pytest.fixture(scope="module")
def answers(folder: Path) -> dict[str, list[engines.Line]]:
    return {engine: engines.summarize(folder, engine) for engine in engines.ENGINES}


def numbers(line: engines.Line) -> list[float | None]:
    return [line.mean, line.sd, line.median, line.low, line.high]


def test_both_engines_say_the_same(answers: dict[str, list[engines.Line]]) -> None:
    duck, spark = answers["duckdb"], answers["spark"]
    assert len(duck) > 10
    for ours, theirs in zip(duck, spark, strict=True):
        key = (ours.variant, ours.condition, ours.metric, ours.n)
        assert key == (theirs.variant, theirs.condition, theirs.metric, theirs.n)
        for one, other in zip(numbers(ours), numbers(theirs), strict=True):
            assert one == (other if other is None else pytest.approx(other, rel=1e-12))


def test_the_report_says_so_too(folder: Path, answers: dict[str, list[engines.Line]]) -> None:
    rows = {
        (r.group.variant, r.group.label, r.metric.name): r for r in summary.summarize(folder).rows
    }
    compared = 0
    for line in answers["spark"]:
        row: Any = rows.get((line.variant, line.condition, line.metric.removeprefix("samples.")))
        if row is None or not row.n or row.n != line.n:
            continue
        assert (row.interval.mean, row.median) == pytest.approx((line.mean, line.median))
        assert (row.interval.low, row.interval.high) == pytest.approx((line.low, line.high))
        compared += 1
    assert compared >= 8


def test_a_run_that_failed_is_in_no_mean(answers: dict[str, list[engines.Line]]) -> None:
    for lines in answers.values():
        assert sum(line.n for line in lines if line.metric == "elapsed_s") == 4
