"""A small run of bench/coverage.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.bench.test_coverage import bench as bench  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[3] / "bench" / "coverage.py"


def test_a_few_studies_of_every_setting_and_one_line_of_json() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "8"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode in (0, 1), done.stderr  # of so few studies nothing is to be held
    figures = json.loads(done.stdout.splitlines()[-1])
    assert set(figures) == {
        "coverage_min", "coverage_max", "false_alarm_max", "settings", "studies", "seconds",
    }  # fmt: skip
    assert figures["studies"] == 8 and 0 <= figures["coverage_min"] <= figures["coverage_max"] <= 1
