"""Small runs of the benchmarks, and the line of JSON at their end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[3] / "bench"


@pytest.mark.parametrize(
    ("name", "runs", "told"),
    [
        ("report", 1000, {"conditions", "seconds", "cpu_s", "mb", "ratio_pandas"}),
        ("pbs_accounting", 5000, {"ratio", "scan_lines_per_s"}),
        ("cli", 20, {"help_ms", "python_ms", "pip_ms", "ratio_pip", "status_s", "ratio_script"}),
    ],
)
def test_a_small_one_ends_with_a_line_of_json(name: str, runs: int, told: set[str]) -> None:
    done = subprocess.run(
        [sys.executable, BENCH / f"{name}.py", "--runs", str(runs), "--repeat", "1"],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert told < set(figures) and figures["runs"] == runs
    assert all(figures[key] > 0 for key in told)


def test_a_months_rows_and_records_are_what_its_maker_says() -> None:
    done = subprocess.run(
        [sys.executable, BENCH / "million_job_readers.py", "--jobs", "200", "--shows", "1"],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    assert figures["sums_agree"] is True
    assert figures["top_agrees"] is True
    assert figures["jobs"] == 200
    assert figures["rows"] > figures["records"] > 200
    assert all(value > 0 for name, value in figures.items() if name.startswith("ratio_"))


LINES = 200  # bytes: what the storm's parent reads and writes itself


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts, and a cgroup")
def test_a_storm_is_in_the_record_or_its_lack_is_told() -> None:
    done = subprocess.run(
        [sys.executable, BENCH / "process_storm.py", "--seconds", "1"],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])["rows"]
    for row in rows:
        bytes_all = row["count"] * 10_000
        if row["way"] == "kernel":
            assert row["complete"], row["why"]
            assert bytes_all <= row["written_bytes"] <= bytes_all + LINES
            assert bytes_all // 2 <= row["read_bytes"] <= bytes_all // 2 + LINES
        else:
            assert not row["complete"]
            assert row["written_bytes"] is None or row["written_bytes"] <= bytes_all + LINES
        if row["way"] == "cgroup":  # the same counter is the truth, read a moment before
            assert 1 <= row["cpu"] < 1.05
