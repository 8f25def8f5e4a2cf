"""`steelyard top` on a local Spark: the answers of DuckDB, of a cluster's Parquet files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.analysis.cluster import top as sums
from steelyard.analysis.cluster.collect import collect
from steelyard.analysis.cluster.top import BY, Top, sum_top
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
from steelyard.wrappers.commands import cli

from ..unit.cluster.sacct_lab import DAY_S, NOW, Lab, lab

__all__ = ["lab"]
pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]


def fill(lab: Lab) -> None:
    """Jobs of two days, of users and accounts that are NULL, too; some without records or memory."""
    lab.record("1", lab.job("1", 2.5 * DAY_S))
    lab.record("2", lab.job("2", 3000, JobName="md", Partition="gpu", Account=""))
    lab.record("3", lab.job("3", 2000, User="o'neil", AllocTRES="cpu=4,mem=1G,node=1"))
    lab.job("4", 1900, User="bob", TotalCPU="", AllocTRES="cpu=1,node=1")
    shared = {"scheduler": "slurm", "job_id": "5", "exclusive": False}
    lab.record("5", lab.job("5", 1000, User="eve", Account="chem"), job=shared)
    lab.record("6", lab.job("6", 900, TotalCPU="00:30.000"))  # contradicts: marked
    begin = NOW - 5 * DAY_S
    collect(lab.dir, ClusterSacct(), [lab.records], now=lambda: NOW, since_unix_s=begin)


def comparable(found: Top) -> tuple[object, ...]:
    return sorted(found.lines, key=lambda line: line.name), found.total, found.why, found.mark


@pytest.mark.parametrize("by", BY)
def test_spark_says_what_duckdb_says(lab: Lab, by: str) -> None:
    """Every figure is a small multiple of 1/8 or a whole number: sums of them are exact."""
    fill(lab)
    for since in (0.0, NOW - DAY_S):
        duckdb = sum_top(lab.dir, by, since, NOW)
        assert duckdb.total.jobs == (6 if since == 0.0 else 5) and duckdb.total.marked == 1
        assert duckdb.why["energy_j"] and duckdb.total.values["cpu_unused_s"]
        assert comparable(sum_top(lab.dir, by, since, NOW, "spark")) == comparable(duckdb)


def test_the_command_takes_it_and_no_job_is_no_sum(
    lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(lab)
    asked = ["top", "--database", str(lab.dir), "--engine", "spark", "--json"]
    assert cli.main([*asked, "--since", "2026-11-20", "--until", "2026-11-30"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["jobs"] == 6
    assert cli.main([*asked, "--since", "2026-01-20", "--until", "2026-01-30"]) == 0
    assert json.loads(capsys.readouterr().out)["total"]["energy_j"] == {
        "sum": None,
        "jobs_known": 0,
    }
    monkeypatch.setattr(sums, "sum_with_duckdb", None)  # not requested with Spark
    assert sum_top(lab.dir, "user", 0.0, NOW, "spark").total.jobs == 6


def test_a_folder_with_a_patterns_letters(lab: Lab, tmp_path: Path) -> None:
    fill(lab)
    odd = tmp_path / "c[1]{2}*"
    lab.dir.rename(odd)
    for engine in ("duckdb", "spark"):
        assert sum_top(odd, "user", 0.0, NOW, engine).total.jobs == 6
