"""Time in which processes waited (PSI) as metrics of runs."""

from __future__ import annotations

import json
from pathlib import Path

from steelyard.analysis.summary.summary import summarize

from .study_maker import StudyMaker
from .test_shared_node_energy import VARIANT, values


def study(tmp_path: Path, waited: dict[str, float | None]) -> Path:
    """Make a run of 40 s on two nodes under each of two conditions; n2 of the second is given."""
    maker = StudyMaker("crowd", {"cpus": [1, 4]}, {"cpus": 1})
    for cpus in (1, 4):
        run = maker.run("app", {}, {"cpus": cpus}, 1, nodes=("n1", "n2"))
        told: dict[str, float | None] = {"n1": 0.0, "n2": 0.0} if cpus == 1 else waited
        for node, s in told.items():
            pressure = {"cpu_some_s": s, "io_some_s": 10.0, "memory_some_s": None}
            cpu = {"node_steal_s": None if s is None else 2 * s}
            probe = {"cpu": {"cpus_online": 4}}
            record = json.dumps({"pressure": pressure, "cpu": cpu, "probe": probe, "missing": {}})
            maker.record(run, node, 40.0, record=record)
    return maker.write(tmp_path)


def test_the_share_of_the_node_that_waited_longest(tmp_path: Path) -> None:
    summary = summarize(study(tmp_path, {"n1": 4.0, "n2": 39.6}))
    assert values(summary, "cpus=1", "waited_for_cpu") == [0.0]
    assert values(summary, "cpus=4", "waited_for_cpu") == [99.0]
    assert values(summary, "cpus=4", "waited_for_io") == [25.0]
    assert summary.row(VARIANT, "cpus=4", "waited_for_memory") is None
    assert values(summary, "cpus=4", "stolen_by_host") == [49.5]  # 79.2 s of 4 CPUs in 40 s
    row = summary.row(VARIANT, "cpus=4", "waited_for_cpu")
    assert row is not None and (row.metric.unit, row.metric.better) == ("%", "lower")


def test_not_known_of_one_node_is_not_known(tmp_path: Path) -> None:
    assert (
        values(summarize(study(tmp_path, {"n1": 4.0, "n2": None})), "cpus=4", "waited_for_cpu")
        == []
    )
