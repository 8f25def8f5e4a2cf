"""What earlier runs took, from a study's database."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.summary import earlier_runs


def test_a_runs_jobs_are_all_its_attempts_without_their_steps(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Two attempts of one run, a step of the first, and a run whose accounting is not whole."""
    maker = synthetic.StudyMaker("x", {"clients": [1]}, {"clients": 1})
    first, _ = maker.run("x", {}, {"clients": 1}, 1)
    other, _ = maker.run("x", {}, {"clients": 1}, 2)
    rows = [
        (first, "10", None, "600"),
        (first, "10", "batch", "590"),
        (first, "11", None, "100"),
        (other, "12", None, ""),
    ]
    maker.rows["accounting"] = [
        {
            "submission_id": "b001",
            "run_id": run,
            "step": step,
            "JobID": job,
            "JobIDRaw": job,
            "ElapsedRaw": seconds,
        }
        for run, job, step, seconds in rows
    ]
    folder = maker.write(tmp_path)
    assert earlier_runs.job_seconds(folder) == {first: 700.0}
    assert earlier_runs.job_seconds(tmp_path) == {}


def test_main_figures_are_read_by_name_and_condition(synthetic: ModuleType, tmp_path: Path) -> None:
    """Two figures of different units: 2 % and 10 % inside each condition."""
    maker = synthetic.StudyMaker("x", {"clients": [1, 2]}, {"clients": 1})
    for clients in (1, 2):
        for number, sign in enumerate((-1, 1, -1, 1)):
            run = maker.run("app", {}, {"clients": clients}, number + 1)
            maker.result(run, "seconds", 10 * clients * (1 + 0.02 * sign), "s")
            maker.result(run, "files", 1e6 * clients * (1 + 0.1 * sign), "1")
    found = earlier_runs.read_earlier_runs([maker.write(tmp_path)])
    seen, near = found.of("app", {}, {"clients": 3})
    assert seen is not None and near == "the same parameters"
    spreads = {name: seen.spread(name) for name in seen.figures}
    # Two values of each sign: the sample deviation is the root of 4 / 3 times the amplitude.
    shares = {name: one.share for name, one in spreads.items() if one is not None}
    assert shares == pytest.approx(
        {"seconds": 0.02 * (4 / 3) ** 0.5, "files": 0.1 * (4 / 3) ** 0.5}
    )
