"""Joules of the jobs' own GPUs as a metric of runs, and the administrator's idle power in a
study."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from steelyard.analysis.store.energy_shares import IdlePower
from steelyard.analysis.summary.gpu_and_pressure import GPU_ENERGY
from steelyard.analysis.summary.summary import summarize

from .study_maker import StudyMaker
from .test_shared_node_energy import LOW, VARIANT, shared_samples, values


def told(gpus: int | None = None, idle_w: float | None = None) -> str:
    energy = {"gpus": {"of_node": gpus}, "idle_w": idle_w}
    return json.dumps({"missing": {}, "energy": energy})


def study(tmp_path: Path, joules: dict[str, float | None], gpus: dict[str, int | None]) -> Path:
    """Make two runs under each of two conditions, on two nodes."""
    maker = StudyMaker("gpus", {"cpus": [1, 4]}, {"cpus": 1})
    for repeat in (1, 2):
        for cpus in (1, 4):
            run = maker.run("app", {}, {"cpus": cpus}, repeat, nodes=("n1", "n2"))
            for node in ("n1", "n2"):
                record = told(gpus[node] if cpus == 4 else 0)
                energy = joules[node] if cpus == 4 else None
                maker.record(run, node, 10.0, gpu_energy_j=energy, record=record)
    return maker.write(tmp_path)


@pytest.mark.parametrize(
    ("joules", "gpus", "sums"),
    [
        ({"n1": 100.0, "n2": 23.5}, {"n1": 2, "n2": 4}, [123.5, 123.5]),
        ({"n1": 100.0, "n2": None}, {"n1": 2, "n2": 0}, [100.0, 100.0]),
        ({"n1": 0.0, "n2": None}, {"n1": 2, "n2": 0}, [0.0, 0.0]),
        ({"n1": 100.0, "n2": None}, {"n1": 2, "n2": 4}, []),  # not known of one
        ({"n1": 100.0, "n2": None}, {"n1": 2, "n2": None}, []),
    ],
)
def test_a_sum_over_the_nodes_that_have_gpus(
    tmp_path: Path,
    joules: dict[str, float | None],
    gpus: dict[str, int | None],
    sums: list[float],
) -> None:
    summary = summarize(study(tmp_path, joules, gpus))
    assert values(summary, "cpus=4", GPU_ENERGY) == sums
    assert values(summary, "cpus=1", GPU_ENERGY) == []  # no node had one


def test_no_metric_where_nobody_has_gpus(tmp_path: Path) -> None:
    nothing: dict[str, float | None] = {"n1": None, "n2": None}
    summary = summarize(study(tmp_path, nothing, {"n1": 0, "n2": 0}))
    assert summary.row(VARIANT, "cpus=4", GPU_ENERGY) is None


@pytest.mark.parametrize(
    ("idle", "watts"),
    [(IdlePower(), 60.0), (IdlePower({"n1": 80.0}), 80.0), (IdlePower(elsewhere_w=70.0), 70.0)],
)
def test_idle_power_is_the_newest_word_and_an_option_wins(
    tmp_path: Path, idle: IdlePower, watts: float
) -> None:
    """160 W, 4 of 8 CPUs busy are the run's, 10 s."""
    maker = StudyMaker("idle", {"cpus": [4]}, {"cpus": 4})
    for repeat, said in ((1, 10.0), (2, 60.0)):
        run = maker.run("app", {}, {"cpus": 4}, repeat)
        more = {"start_unix_s": maker.clock, "record": told(idle_w=said)}
        maker.record(run, "n1", 10.0, energy_j=1600.0, exclusive=False, **more)
        shared_samples(maker, run, "n1", 4)
    above = (160 - watts) * 10
    low = above * 4 / (4 + 3 * 4.18)
    found = values(summarize(maker.write(tmp_path), idle=idle), "cpus=4", LOW)
    assert found == [pytest.approx(low), pytest.approx(low)]
