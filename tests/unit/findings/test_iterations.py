"""Warm-up inside runs: found with its length, and not where iterations only resemble each other."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.stats.drift_and_warm_up import find_inner_warm_up, student_p
from steelyard.analysis.summary.summary import summarize


def test_a_slow_start_is_found_to_its_end() -> None:
    chance = np.random.default_rng(5)
    runs = 10 + 0.1 * chance.standard_normal((8, 20))
    runs[:, :4] += [3.0, 2.5, 2.5, 2.0]
    found = find_inner_warm_up({job: [run] for job, run in enumerate(runs.tolist())})
    assert found is not None and (found.length, found.iterations, found.runs) == (4, 20, 8)
    assert found.p < 1e-6 and found.excess == pytest.approx(0.25, abs=0.01)


def test_students_p_is_scipys() -> None:
    values = [0.3, -0.1, 0.4, 0.2, 0.1]
    assert student_p(values) == pytest.approx(scipy.stats.ttest_1samp(values, 0).pvalue)
    assert (student_p([0.0] * 5), student_p([0.1] * 5)) == (1.0, 0.0)


def test_runs_of_one_job_are_one_sample() -> None:
    steep = [[3.0, 2.0, 1.0]] * 10
    assert find_inner_warm_up({"a": steep}) is None
    assert find_inner_warm_up({job: steep for job in range(4)}) is None
    found = find_inner_warm_up({job: steep for job in range(5)})
    assert found is not None and (found.runs, found.jobs) == (50, 5)


def test_too_few_iterations_are_not_judged_and_odd_runs_left_out() -> None:
    assert find_inner_warm_up({job: [[2.0, 1.0]] for job in range(9)}) is None
    assert find_inner_warm_up({}) is None
    jobs = {job: [[2.0 + job, 1.0, 1.0]] for job in range(6)}
    found = find_inner_warm_up(jobs | {9: [[1.0] * 7]})
    assert found is not None and found.runs == 6


def test_the_finding_gives_both_means(synthetic: ModuleType, tmp_path: Path) -> None:
    """Of pairs of nodes, which iperf3 counts as iterations, nothing is said."""
    chance = np.random.default_rng(9)
    maker = synthetic.StudyMaker("slow-start", {"clients": [1]}, {"clients": 1})
    for benchmark in ("xrootd", "iperf3"):
        for number in range(6):
            run = maker.run(benchmark, {}, {"clients": 1}, number + 1)
            for iteration, value in enumerate([12.0, 10.0, 10.0, 10.0], start=1):
                for client in (0, 1):
                    noisy = value * (1 + 0.005 * chance.standard_normal())
                    maker.result(run, "seconds", noisy, "s", client=client, iteration=iteration)
    found = {f.kind.code: f for f in find_all(summarize(maker.write(tmp_path)))}["SY28"]
    (place,) = found.places
    assert place == (
        "xrootd · clients=1 · seconds: the first 1 of 4 iterations is 20 % above the rest in 6 runs: "
        "mean 10.499 ± 0.014 s with it, 10.003 ± 0.014 s without"
    )
