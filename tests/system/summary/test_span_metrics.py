"""Joules and bytes of parts of a run, and above its idle: against laws that are known."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.summary.study_maker import StudyMaker

from steelyard.analysis.summary.span_metrics import ABOVE_IDLE, ABOVE_TOLD, IDLE_POWER
from steelyard.analysis.summary.summary import Summary, summarize

IDLE_W, BUSY_W = 60.0, 160.0
# Idle for 30 s, two iterations of 20 s at full power, of which the first clients end after 12 s and
# 8 s, idle for 30 s: seconds since the first sample.
SPANS = [
    ("idle_before", 1, 0.0, 30.0),
    ("iteration", 1, 30.0, 50.0),
    ("until_first", 1, 30.0, 42.0),
    ("iteration", 2, 50.0, 70.0),
    ("until_first", 2, 50.0, 58.0),
    ("idle_after", 1, 70.0, 100.0),
]
Law = Callable[[float], float]


def joules(at_s: float) -> float:
    """What the node has used since it began."""
    return IDLE_W * at_s + (BUSY_W - IDLE_W) * min(max(at_s - 30.0, 0.0), 40.0)


def study(
    folder: Path,
    *,
    period_s: float = 1.0,
    first_s: float = 0.0,
    energy: Law = joules,
    nodes: tuple[str, ...] = ("n1",),
    told_w: float | None = None,
    spans: list[tuple[str, int, float, float]] = SPANS,
    **record: object,
) -> Summary:
    """One run; its second node, if it has one, uses twice as much."""
    maker = StudyMaker("spans", {}, {})
    start = maker.clock
    run = maker.run("app", {}, {}, 1, elapsed_s=40.0, nodes=nodes)
    for factor, node in enumerate(nodes, 1):
        document = json.dumps({"missing": {}, "energy": {"idle_w": told_w}})
        used = factor * energy(100.0)
        maker.record(run, node, 100.0, energy_j=used, **{"record": document, **record})
        for number in range(int((100.0 - first_s) / period_s) + 2):
            at_s = first_s + number * period_s
            maker.rows["samples"].append(
                {
                    **dict(zip(("run_id", "attempt"), run, strict=True)),
                    "node": node,
                    "unix_s": start + at_s,
                    "elapsed_s": at_s,
                    "energy_j": factor * energy(at_s),
                    "rx_bytes": int(1e6 * factor * max(at_s - 30.0, 0.0)),
                    "tx_bytes": 0,
                    "cpu_s": at_s,
                }
            )
    for span, iteration, begin, end in spans:
        names = ("run_id", "attempt", "span", "iteration", "begin_unix_s", "end_unix_s")
        row = (*run, span, iteration, start + begin, start + end)
        maker.rows["spans"].append(dict(zip(names, row, strict=True)))
    return summarize(maker.write(folder))


def value(summary: Summary, metric: str) -> float | None:
    """None: there is no such metric, or no value."""
    row = summary.row("app", "", metric)
    return row.values[0] if row is not None and row.values else None


def test_parts_of_a_run_and_joules_above_idle(tmp_path: Path) -> None:
    summary = study(tmp_path)
    assert value(summary, "iteration_energy_j") == 20 * BUSY_W
    assert value(summary, "until_first_energy_j") == 10 * BUSY_W  # mean of 12 s and 8 s
    assert value(summary, "until_first_rx_bytes") == 10e6
    assert value(summary, "iteration_tx_bytes") == 0
    assert value(summary, "iteration_cpu_s") == pytest.approx(20.0)
    assert value(summary, IDLE_POWER) == IDLE_W
    assert value(summary, ABOVE_IDLE) == 40 * (BUSY_W - IDLE_W)
    assert value(summary, ABOVE_TOLD) is None  # no administrator has said anything


def test_two_nodes_are_summed(tmp_path: Path) -> None:
    summary = study(tmp_path, nodes=("n1", "n2"), told_w=50.0)
    assert value(summary, ABOVE_IDLE) == 3 * 40 * (BUSY_W - IDLE_W)
    assert value(summary, IDLE_POWER) == 3 * IDLE_W
    assert value(summary, ABOVE_TOLD) == 3 * joules(100.0) - 2 * 50.0 * 100.0


def test_between_samples_a_counter_grows_evenly(tmp_path: Path) -> None:
    """A step of power between two samples is off by a quarter of it, times their distance."""
    summary = study(tmp_path, first_s=-0.63)
    edge_j = (BUSY_W - IDLE_W) / 4
    found = value(summary, ABOVE_IDLE)
    assert found is not None
    most = 2 * edge_j * (1 + 40 / 60)
    assert 4000 - most < found < 4000 + most
    assert value(summary, "iteration_energy_j") == pytest.approx(20 * BUSY_W, abs=2 * edge_j)


def test_joules_that_change_once_a_second_in_ten_samples(tmp_path: Path) -> None:
    """Else up to a second of power were missing at each edge: 320 J of 1600."""
    stepped = study(tmp_path, period_s=0.1, energy=lambda at_s: joules(float(int(at_s + 1e-6))))
    assert value(stepped, "until_first_energy_j") == pytest.approx(10 * BUSY_W)
    assert value(stepped, ABOVE_IDLE) == pytest.approx(4000)


@pytest.mark.parametrize(
    ("change", "metrics"),
    [
        ({"period_s": 20.0}, ("until_first_energy_j", "until_first_rx_bytes")),  # too far apart
        ({"exclusive": False}, ("iteration_energy_j", "iteration_rx_bytes", ABOVE_IDLE)),
        ({"complete": False}, ("iteration_energy_j", "iteration_cpu_s", ABOVE_IDLE)),
        ({"spans": SPANS[1:]}, (ABOVE_IDLE, IDLE_POWER)),
        ({"spans": SPANS[:-1]}, (ABOVE_IDLE,)),
        ({"first_s": 5.0}, (ABOVE_IDLE, IDLE_POWER)),  # no sample before the idle began
    ],
)
def test_what_the_samples_do_not_tell_is_not_told(
    tmp_path: Path, change: dict[str, object], metrics: tuple[str, ...]
) -> None:
    summary = study(tmp_path, **change)  # type: ignore[arg-type]
    assert {metric: value(summary, metric) for metric in metrics} == dict.fromkeys(metrics)


def test_a_shared_nodes_processor_time_is_the_jobs_all_the_same(tmp_path: Path) -> None:
    assert value(study(tmp_path, exclusive=False), "iteration_cpu_s") == pytest.approx(20.0)
