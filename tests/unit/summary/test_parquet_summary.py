"""`steelyard summary` where something is missing; the engines themselves: tests/spark."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import duckdb
import pytest
import scipy.stats

from steelyard.analysis.base import spark
from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.store import export
from steelyard.analysis.summary import parquet_summary, summary
from steelyard.wrappers.commands import cli

from ..collect import study as HELP


def test_duckdb_alone_will_do_and_says_what_the_report_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = HELP.Study(tmp_path)
    study.everything()
    study.collect()
    assert cli.main(["summary", str(study.dir), "--json"]) == 0
    lines = [SimpleNamespace(**row) for row in json.loads(capsys.readouterr().out)]
    found = {(line.variant, line.condition, line.metric): line for line in lines}
    rows = {
        (r.group.variant, r.group.label, r.metric.name): r
        for r in summary.summarize(study.dir).rows
        if r.n
    }
    compared = 0
    for key, line in found.items():
        row: Any = rows.get((*key[:2], key[2].removeprefix("samples.")))
        if row is not None:
            assert line.n == row.n
            assert (line.mean, line.median) == pytest.approx((row.interval.mean, row.median))
            compared += 1
    assert compared >= 8
    # Three samples of two nodes, the last of which read 5 s of CPU and 100 bytes.
    (both,) = [line for key, line in found.items() if key[1:] == ("clients=8", "samples.cpu_s")]
    assert (both.n, both.mean) == (1, 10.0)
    (read,) = [l for key, l in found.items() if key[1:] == ("clients=8", "samples.rchar_bytes")]
    assert (read.n, read.mean) == (1, 200.0)


@pytest.mark.parametrize("stop", ["", '[study]\nstop = { half_width = "1%" }\n'])
def test_intervals_are_the_reports_after_a_stopping_rule_too(
    synthetic: ModuleType, tmp_path: Path, stop: str
) -> None:
    maker = synthetic.StudyMaker("x", {"clients": [1]}, {"clients": 1})
    for number in range(20):
        run = maker.run("x", {}, {"clients": 1}, number + 1)
        maker.result(run, "figure", 10 + number * 7 % 5, "s")
    folder = maker.write(tmp_path)
    with duckdb.connect(str(folder / "study.duckdb")) as connection:
        connection.execute("UPDATE meta SET toml = ?", [stop])
        mark = export.compute_mark(connection)
        assert mark is not None
        export.export(connection, folder / "parquet", mark, lambda *_: None)
    row = summary.summarize(folder).row("x", "clients=1", "figure")
    assert row is not None and row.interval is not None and row.interval.low is not None
    (line,) = [one for one in parquet_summary.summarize(folder, "duckdb") if one.metric == "figure"]
    assert (line.low, line.high) == pytest.approx((row.interval.low, row.interval.high), rel=1e-12)
    half = scipy.stats.t.ppf(0.98 if stop else 0.975, 19) * scipy.stats.sem(row.values)
    assert line.low == pytest.approx(line.mean - half)


def test_a_study_without_samples_has_a_summary(tmp_path: Path) -> None:
    study = HELP.Study(tmp_path)
    study.everything()
    study.collect(record_dirs=[])
    metrics = {line.metric for line in parquet_summary.summarize(study.dir, "duckdb")}
    assert "elapsed_s" in metrics and not any(name.startswith("samples.") for name in metrics)


def test_without_the_extra_spark_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    study = HELP.Study(tmp_path)
    study.everything()
    study.collect()
    assert cli.main(["summary", str(study.dir), "--engine", "spark"]) == 3
    assert "pip install 'steelyard[spark]'" in capsys.readouterr().err


def test_without_java_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(MissingError, match=r"bin/java is missing.* openjdk-17-jre-headless"):
        spark.check_java()


def test_a_master_that_is_not_there_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        spark.check_master(f"spark://127.0.0.1:{port}")
    for wrong in (f"spark://127.0.0.1:{port}", "spark://127.0.0.1", "spark://"):
        with pytest.raises(MissingError, match=f"no Spark master listens at {wrong} "):
            spark.check_master(wrong)
    spark.check_master("local[1]")


def test_before_a_collect(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match=r"runs\.parquet is missing: run `steelyard collect`"):
        parquet_summary.summarize(tmp_path, "duckdb")


ALONE = {"unit": "s", "better": "lower", "minimum": 2.0, "blocks": 1, "jobs": 1}


@pytest.mark.parametrize(("blocks", "jobs"), [(5, 10), (10, 5)])
def test_runs_that_share_blocks_or_jobs_have_no_interval_here(blocks: int, jobs: int) -> None:
    row = {"variant": "v", "condition_label": "c", "metric": "m", "n": 10, "mean": 2.0, "sd": 1.0}
    row |= {"median": 2.0, "unit": "s", "better": "lower", "minimum": 0.5}
    found = parquet_summary.build_line(row | {"blocks": blocks, "jobs": jobs})
    assert (found.low, found.high, found.reason) == (None, None, parquet_summary.SHARED)
    alone = parquet_summary.build_line(row | {"blocks": 1, "jobs": 10})
    assert alone.low is not None and alone.reason is None


def test_one_run_has_no_interval() -> None:
    row = {"variant": "v", "condition_label": "c", "metric": "m", "n": 1, "mean": 2.0, **ALONE}
    for sd in (None, float("nan"), 0.0):
        found = parquet_summary.build_line(row | {"sd": sd, "median": 2.0})
        assert (found.sd, found.low, found.high) == (None, None, None)
