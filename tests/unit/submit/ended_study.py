"""A small study whose runs have all ended; `status` caches the results that it has read."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from steelyard.analysis.base import file_changes
from steelyard.analysis.sources import study_files
from steelyard.wrappers.submit import run_state, status

RUNS = 6
FIRST = "b-00000000-001"
Finish = Callable[..., None]


@pytest.fixture
def ended_study(tmp_path: Path, finish_run: Finish, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a study whose runs have ended: the second failed, the third had a second attempt."""
    monkeypatch.setattr(run_state, "FEWEST", 1)
    # A spare second: a query that waited for a processor may record an earlier begin.
    monkeypatch.setattr(file_changes, "RACE_NS", -(10**9))
    runs = [planned(number) for number in range(1, RUNS + 1)]
    plan = {"format": "steelyard-plan", "version": 1, "study": {"name": "s"}, "runs": runs}
    folder = tmp_path / "s.study"
    folder.mkdir()
    (folder / "plan.json").write_text(json.dumps(plan))
    for number, run in enumerate(runs, 1):
        finish_run(folder / "runs" / run["run_id"], "1.0", "failed" if number == 2 else "completed")
    again = {"start_unix_s": 2000.0, "end_unix_s": 2003.5, "elapsed_s": 3.5}
    finish_run(folder / "runs" / runs[2]["run_id"], "1.1", "failed", reason="exit code 3", **again)
    settle()
    return folder


def planned(number: int) -> dict[str, Any]:
    """Return a run of plan.json."""
    return {
        "run_id": f"b-00000000-{number:03}", "block": 1, "position": number, "benchmark": "b",
        "parameters": {}, "variant": "b", "condition": {}, "condition_label": "no factors",
        "is_baseline": True, "repeat": number,
    }  # fmt: skip


def settle() -> None:
    """Advance the disk's clock, so that files are older than the next query."""
    time.sleep(0.03)


def told(study: Path) -> dict[str, Any]:
    """Return everything that `status` reports, except its own time."""
    found = asdict(status.read_progress(study))
    del found["unix_s"]
    return found


@pytest.fixture
def results_read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the runs whose result.json is read from now on."""
    found: list[str] = []
    read = study_files.read_run_folder

    def noted(run_id: str, path: Path) -> study_files.RunFolder:
        found.append(run_id)
        return read(run_id, path)

    monkeypatch.setattr(study_files, "read_run_folder", noted)
    return found
