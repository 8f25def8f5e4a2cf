"""docs/spark.sbatch, handed to a throwaway cluster as a user would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.summary import parquet_summary
from steelyard.wrappers.cluster import cluster as throwaway
from steelyard.wrappers.cluster.cluster_config import ClusterConfig

pytest.importorskip("pyspark", reason="the extra spark is not installed")
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore")]
TEMPLATE = Path(__file__).parents[2] / "docs" / "spark.sbatch"
LIMIT_S = 1800.0  # three JVMs start and a fourth computes, on whatever machine this is
OPEN = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")


@pytest.fixture(scope="module")
def cluster() -> Iterator[throwaway.Cluster]:
    """Two nodes; without Slurm the tests are skipped, in CI they fail."""
    try:
        with (
            tempfile.TemporaryDirectory(prefix="sy-spark-", dir="/tmp") as name,
            throwaway.start_cluster(
                ClusterConfig(dir=Path(name) / "c", virtual_nodes=0)
            ) as running,
        ):
            yield running
    except MissingError as error:
        if os.environ.get("CI"):
            pytest.fail(f"the template must not be skipped in CI: {error}")
        pytest.skip(str(error))


def job(
    cluster: throwaway.Cluster, work: Path, *words: str, **variables: str
) -> tuple[str, str, str]:
    """Submit the template with these words and let it end: exit code as sacct has it, out, err."""
    env = cluster.environment() | {"VENV": sys.prefix} | variables
    options = ("--parsable", "--nodes=2", "--output=out", "--error=err")
    argv = ["sbatch", *options, str(TEMPLATE), *words]
    done = subprocess.run(argv, cwd=work, env=env, capture_output=True, text=True, check=True)
    job_id = done.stdout.strip()
    end = time.monotonic() + LIMIT_S
    while (found := state(cluster, job_id))["JobState"] in OPEN:
        if time.monotonic() > end:
            subprocess.run(["scancel", job_id], env=env, check=True)
            pytest.fail(f"the job did not end in {LIMIT_S:.0f} s: {(work / 'err').read_text()}")
        time.sleep(0.2)
    return found["ExitCode"], (work / "out").read_text(), (work / "err").read_text()


def state(cluster: throwaway.Cluster, job_id: str) -> dict[str, str]:
    """Return a job as scontrol shows it."""
    argv = ["scontrol", "--oneliner", "show", "job", job_id]
    env = cluster.environment()
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
    return dict(word.split("=", 1) for word in done.stdout.split() if "=" in word)


def test_a_job_of_two_nodes_gives_the_answers_of_duckdb(
    cluster: throwaway.Cluster, folder: Path, tmp_path: Path
) -> None:
    code, out, err = job(cluster, tmp_path, str(folder), "--json")
    assert code == "0:0", err
    expected = [rounded(asdict(line)) for line in parquet_summary.summarize(folder, "duckdb")]
    assert len(expected) > 10
    assert [rounded(line) for line in json.loads(out)] == expected
    assert sorted(path.name for path in tmp_path.iterdir()) == ["err", "out"]


def rounded(line: dict[str, Any]) -> dict[str, Any]:
    """Sums depend on the order: nine digits of a number."""
    numbers = {key: f"{value:.9g}" for key, value in line.items() if isinstance(value, float)}
    return line | numbers


def test_what_is_missing_is_one_line_and_exit_code_3(
    cluster: throwaway.Cluster, folder: Path, tmp_path: Path
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    nowhere = tmp_path / "nowhere.study"
    for words, variables, expected in (
        ((str(folder),), {"VENV": str(bare)}, f"no pyspark in {bare}/bin/python3: pip install"),
        ((str(folder),), {"JAVA_HOME": str(bare)}, "no Java on n1: install 17 or later"),
        ((str(nowhere),), {}, f"{nowhere}/parquet is not there: run steelyard collect"),
    ):
        code, out, err = job(cluster, tmp_path, *words, **variables)
        assert (code, out) == ("3:0", "")
        assert err.startswith(f"spark.sbatch: {expected}")
        assert err.count("\n") == 1


def test_without_a_study_it_says_how_it_is_called(
    cluster: throwaway.Cluster, tmp_path: Path
) -> None:
    code, _, err = job(cluster, tmp_path)
    assert code == "2:0"
    assert err.startswith("usage: VENV=DIR sbatch spark.sbatch STUDY.study")
