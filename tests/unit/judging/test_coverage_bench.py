"""bench/coverage.py runs, and its promises can be broken."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np

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


def test_an_interval_beside_the_truth_is_no_hit() -> None:
    bench = SimpleNamespace(**runpy.run_path(str(BENCH.with_name("coverage_studies.py"))))
    assert bench.held(0.9, 1.1, 1.0)
    assert not bench.held(1.05, 1.1, 1.0)
    assert not bench.held(None, None, 1.0)
    shifted = bench.mean_study(lambda chance, n: bench.normal(chance, n, mean=11.0), 35)
    chance = np.random.default_rng(1)
    assert not any(shifted(chance, False)[0] for _ in range(50))
