"""bench/record_life_cycle.py and million_record_files.py agree with the files of a small month."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCH = Path(__file__).parents[3] / "bench" / "record_life_cycle.py"


def test_a_small_month(tmp_path: Path) -> None:
    words = ["--jobs", "60", "--samples", "0.5", "--shows", "1", "--dir", str(tmp_path), "--keep"]
    done = subprocess.run(
        [sys.executable, "-P", str(BENCH), *words],
        capture_output=True, text=True, timeout=1200, check=False,
        env={"PYTHONPATH": str(BENCH.parent), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["agrees"] is True and told["jobs"] == 60
    (base,) = tmp_path.iterdir()
    for name in ("loose", "packs", "thin"):
        assert told[f"{name}_names"] == len(list((base / name).rglob("*")))
    assert not list((base / "packs").rglob("*.csv")) and list((base / "loose").rglob("*.csv"))
    assert told["thin_bytes"] < told["packs_bytes"] < told["loose_bytes"]
    kinds = told["bytes_a_job"]
    assert set(kinds) == {"samples", "thinned", "no_samples"}
    assert kinds["samples"] > 5 * kinds["thinned"] > 5 * kinds["no_samples"]
    assert told["month_gb"] == {kind: round(size / 1000, 2) for kind, size in kinds.items()}


def test_a_small_folder_of_records(tmp_path: Path) -> None:
    """bench/million_record_files.py: shown, collected during a sweep that is killed."""
    bench = BENCH.with_name("million_record_files.py")
    done = subprocess.run(
        [sys.executable, "-P", str(bench), "--files", "600", "--once", "--dir", str(tmp_path)],
        capture_output=True, text=True, timeout=1200, check=False,
        env={"PYTHONPATH": str(BENCH.parent), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["holds"] is True and told["files"] > 500
    assert told["names"] > told["files"] > 4 * told["names_packed"]
    assert list(tmp_path.iterdir()) == []
