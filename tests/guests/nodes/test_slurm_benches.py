"""bench/soak.py and bench/slurmctld.py on a real Slurm: nothing is harmed; no time is judged."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).parents[3] / "bench"


def figures_of(name: str, *options: str) -> dict[str, Any]:
    """The last line of a benchmark that ended well."""
    done = subprocess.run(
        [sys.executable, BENCH / name, *options],
        capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_few_jobs_of_every_kind_in_a_row() -> None:
    figures = figures_of("soak.py", "--jobs", "32")
    assert (figures["jobs"], figures["records"]) == (32, 40), "8 rounds of 4, one on two nodes"
    assert figures["slurmctld_log_bytes"] > figures["plain_slurmctld_log_bytes"] > 0
    assert {"slurmctld_kb", "slurmctld_files", "slurmd.n1_kb"} < figures["daemons"].keys()


def test_a_night_of_several_nodes_beside_what_cron_runs() -> None:
    figures = figures_of("soak.py", "--jobs", "32", "--nodes", "3", "--services", "1")
    assert (figures["jobs"], figures["services_wrong"]) == (32, [])
    assert all(of["passes"] > 1 for of in figures["services"].values())
    assert figures["packed_files"] >= 2 * figures["records"], "a record and its samples"
    assert {"slurmd_kb", "slurmd_files"} < figures["daemons"].keys()


def test_an_update_a_job_is_two_lines_of_slurmctlds_log() -> None:
    figures = figures_of("slurmctld.py", "--repeat", "1", "--jobs", "2")
    assert figures["batch_plugin_updates"] == 1
    lines = figures["batch_plugin_log_lines"] - figures["batch_plain_log_lines"]
    assert lines == pytest.approx(2, abs=1), "slurmctld may tell its scheduler's start besides"
    assert figures["batch_plain_updates"] == figures["srun_plain_errors"] == 0
    assert min(figures["batch_plain_cpu_ms"], figures["ratio"]) > 0
