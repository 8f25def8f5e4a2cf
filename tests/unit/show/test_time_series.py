"""Samples over time: all counts are included, at their times."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from steelyard.analysis.job import time_series
from steelyard.analysis.sources.records import read_record
from steelyard.wrappers.show.time_series import average_neighbors, format_sparkline

from ..collect.study import write_record

START = 1_700_000_000.0
HEAD = "unix_s,elapsed_s,cpu_s,memory_bytes,energy_j"


def told(
    folder: Path, nodes: dict[str, list[tuple[float, str, str, str]]], pieces: int = 10
) -> time_series.JobTimeSeries | None:
    """Make samples of nodes: seconds, CPU, memory, joules."""
    records = {}
    for node, lines in nodes.items():
        path = write_record(folder, node, START, "1")
        text = [HEAD, *(f"{START + s},{s},{cpu},{mem},{j}" for s, cpu, mem, j in lines), ""]
        path.with_suffix(".csv").write_text("\n".join(text))
        records[node] = read_record(path)
    return time_series.read_time_series(records, pieces)


def test_a_job_that_was_busy_in_its_second_half(tmp_path: Path) -> None:
    lines = [(float(s), str(max(0, 2 * (s - 50))), "1000", str(60 * s)) for s in range(101)]
    found = told(tmp_path, {"n1": lines})
    assert found is not None
    assert found.series["cpus_busy"] == pytest.approx([0.0] * 5 + [2.0] * 5)
    assert found.series["power_w"] == pytest.approx([60.0] * 10)
    assert found.series["memory_bytes"] == [1000.0] * 10
    assert (found.piece_s, found.end_s, found.period_s) == pytest.approx((10, 100, 1))
    assert found.most_cpus == pytest.approx(2.0)


@pytest.mark.parametrize("seed", range(5))
def test_all_pieces_add_up_to_what_was_counted(tmp_path: Path, seed: int) -> None:
    """Whatever the samples' distances, of two nodes whose clocks and samples differ."""
    rng = random.Random(seed)
    nodes, total = {}, 0.0
    for node in ("n1", "n2"):
        at, cpu, last, lines = rng.uniform(0, 0.5), 0.0, 0.0, []
        for _ in range(200):
            empty = not lines or rng.random() < 0.1
            lines.append((at, "" if empty else f"{cpu:.6f}", "", ""))
            last = last if empty else round(cpu, 6)
            step = rng.choice([0.001, 0.5, 1.0, 3.0])
            at, cpu = at + step, cpu + step * rng.uniform(0, 4)
        nodes[node], total = lines, total + last
    found = told(tmp_path, nodes, pieces=7)
    assert found is not None
    busy = [value or 0.0 for value in found.series["cpus_busy"]]
    assert sum(busy) * found.piece_s == pytest.approx(total, rel=1e-6)


def test_two_nodes_add_up_and_one_that_ended_adds_nothing(tmp_path: Path) -> None:
    short = [(float(s), str(s), "500", "") for s in range(51)]
    long = [(float(s), str(s), "1000", "") for s in range(101)]
    found = told(tmp_path, {"n1": short, "n2": long})
    assert found is not None
    assert found.series["cpus_busy"] == pytest.approx([2.0] * 5 + [1.0] * 5)
    assert found.series["power_w"] == [None] * 10
    memory = found.series["memory_bytes"]
    assert (memory[0], memory[-1]) == (1500.0, 1000.0)


def test_a_meter_that_changes_seldom_is_no_power_that_comes_and_goes(tmp_path: Path) -> None:
    """With ten samples per second of a meter that changes each 0.25 s, 0 and 150 W were shown for
    60.
    """
    lines = [(n / 10, "", "", str(15 * int(n / 10 / 0.25))) for n in range(101)]
    found = told(tmp_path, {"n1": lines}, pieces=50)
    assert found is not None
    assert all(50 <= (value or 0) <= 75 for value in found.series["power_w"])
    assert sum(value or 0 for value in found.series["power_w"]) * found.piece_s == pytest.approx(
        600
    )


@pytest.mark.parametrize("by_timer", [True, False])
def test_what_is_read_once_a_second_beside_a_timer_is_spread_over_it(
    tmp_path: Path, by_timer: bool
) -> None:
    """4 kB/s for five seconds, none for three, 4 kB/s again; samples between repeat what was read."""
    sent = [min(4000 * s, 20_000) if s < 8 else 20_000 + 4000 * (s - 8) for s in range(12)]
    lines = [f"{START + n / 10},{n / 10},{sent[n // 10]}" for n in range(111)]
    path = write_record(tmp_path, "n1", START, "1")
    document = json.loads(path.read_text()) | {"bpf": {"ticks": 110 if by_timer else 0}}
    path.write_text(json.dumps(document))
    path.with_suffix(".csv").write_text("\n".join(["unix_s,elapsed_s,tx_bytes", *lines, ""]))
    found = time_series.read_time_series({"n1": read_record(path)}, pieces=110)
    assert found is not None
    series = [value or 0.0 for value in found.series["tx_bytes_per_s"]]
    assert sum(series) * found.piece_s == pytest.approx(32_000)
    assert max(series) == pytest.approx(4000 if by_timer else 40_000, rel=0.01)
    assert sum(value > 1 for value in series) == (80 if by_timer else 8)


def test_several_jobs_have_the_courses_that_each_has_alone(tmp_path: Path) -> None:
    """On the same nodes at other rates, with samples taken by a timer in one; few in another."""
    jobs = []
    for n, count in enumerate([101, 3, 40]):
        path = write_record(tmp_path / str(n), "n1", START, str(n))
        document = json.loads(path.read_text()) | {"bpf": {"ticks": count * (n == 2)}}
        path.write_text(json.dumps(document))
        lines = [f"{START + s},{s},{(n + 1) * s},1000,{60 * s}" for s in range(count)]
        path.with_suffix(".csv").write_text("\n".join([HEAD, *lines, ""]))
        jobs.append({"n1": read_record(path)})
    together = time_series.read_all_time_series(jobs)
    assert together == [time_series.read_time_series(job) for job in jobs]
    assert [one is None for one in together] == [False, True, False]
    assert [one and one.most_cpus for one in together] == [1.0, None, 3.0]


def test_too_few_samples_are_no_course(tmp_path: Path) -> None:
    assert told(tmp_path, {"n1": [(float(s), "0", "1", "") for s in range(4)]}) is None


def test_a_last_sample_1_ms_after_another_is_no_time_for_a_rate(tmp_path: Path) -> None:
    lines = [(float(s), str(s), "1", "") for s in range(20)] + [(19.001, "19.5", "1", "")]
    found = told(tmp_path, {"n1": lines})
    assert found is not None and found.most_cpus == pytest.approx(1.0)


def test_a_sparkline_has_a_letter_for_each_value() -> None:
    assert format_sparkline([0.0, None, 5.0, 10.0]) in ("▁·▅█", ". +@")
    assert format_sparkline([0.0, 0.0]) in ("▁▁", "..")
    assert format_sparkline([5.0], 10.0) in ("▅", "+")
    assert average_neighbors([1.0, 3.0, None, None, 5.0, 7.0], 3) == [2.0, None, 6.0]
    assert average_neighbors([1.0], 3) == [1.0]
