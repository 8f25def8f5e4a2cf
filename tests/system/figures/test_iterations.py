"""Iterations of each node with their averages: whose they are, and what is drawn of many."""

from __future__ import annotations

import statistics
from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.figures.drawing import Drawing, inline_svg
from steelyard.analysis.figures.iterations import (
    MAX_NODES,
    MAX_PANELS,
    draw_iterations,
    separate_labels,
)
from steelyard.analysis.report.figures import metric_rows
from steelyard.analysis.summary.summary import Summary, summarize

ITERATIONS, REPEATS = 4, 3
FACTORS = {"node_type": ["physical", "virtual"], "clients": [1, 2]}


def seconds(node: str, clients: int, iteration: int, repeat: int) -> float:
    """Return seconds that all differ."""
    slow = {"p1": 0.0, "p2": 3.0, "v1": 10.0, "v2": 14.0}[node]
    return 20 + slow + 5 * clients + 1 / iteration + 0.01 * repeat


@pytest.fixture(scope="module")
def summary(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """With one client on p1 or v1, with two on p1, p2 or v1, v2, counted node by node."""
    maker = synthetic.StudyMaker("nodes", FACTORS, {"node_type": "physical"})
    for repeat in range(1, REPEATS + 1):
        for node_type in FACTORS["node_type"]:
            for clients in (1, 2):
                nodes = [f"{node_type[0]}{number + 1}" for number in range(clients)]
                condition = {"node_type": node_type, "clients": clients}
                run = maker.run("filesystem", {}, condition, repeat, nodes=nodes)
                maker.rows["attempts"][-1]["clients"] = clients
                for client, node in enumerate(nodes):
                    for iteration in range(1, ITERATIONS + 1):
                        value = seconds(node, clients, iteration, repeat)
                        maker.result(run, "seconds", value, "s", client=client, iteration=iteration)
    return summarize(maker.write(tmp_path_factory.mktemp("nodes")))


def drawing_of(summary: Summary, variant: str) -> Drawing | None:
    (rows,) = metric_rows(summary, variant, primary=True)
    return draw_iterations(summary, rows)


@pytest.fixture(scope="module")
def drawing(summary: Summary) -> Drawing:
    found = drawing_of(summary, "filesystem")
    assert found is not None
    return found


def test_each_node_has_the_mean_of_its_runs_at_each_iteration(drawing: Drawing) -> None:
    lines = [dict(zip(drawing.columns, row, strict=True)) for row in drawing.rows]
    assert len(lines) == 6 * ITERATIONS  # 1 + 2 nodes of each type
    for line in lines:
        clients = int(str(line["condition"])[-1])
        means = [
            seconds(str(line["node"]), clients, int(str(line["iteration"])), repeat)
            for repeat in range(1, REPEATS + 1)
        ]
        assert line["value"] == pytest.approx(statistics.fmean(means))
        assert line["runs"] == REPEATS


def test_the_averages_are_those_of_the_report(drawing: Drawing, summary: Summary) -> None:
    for row in drawing.rows:
        line = dict(zip(drawing.columns, row, strict=True))
        interval = summary.by_key["filesystem", str(line["condition"]), "seconds"].interval
        assert interval is not None
        told = tuple(line[f"average{end}"] for end in ("_n", "_low", "_high", ""))
        assert told == (interval.n, interval.low, interval.high, interval.mean)


def test_the_figure_names_nodes_levels_units_and_n(drawing: Drawing) -> None:
    svg = inline_svg(drawing)
    for words in ("seconds (s), lower is better", "iteration", "clients=2", "p2 / v2",
                  "node_type=virtual", "25.54"):  # fmt: skip
        assert f">{words}<" in svg
    assert f"Up to {ITERATIONS} iterations" in drawing.caption
    assert f"(n = {REPEATS} runs)" in drawing.caption


def test_runs_without_iterations_have_no_such_figure(demo_summary: Summary) -> None:
    assert drawing_of(demo_summary, "hpl N=4000") is None


def test_one_program_on_two_nodes_stands_for_both(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("mpi", {}, {})
    run = maker.run("mpi", {}, {}, 1, nodes=["n1", "n2"])
    for iteration in (1, 2, 3):
        maker.result(run, "seconds", 1.0 + iteration, "s", client=0, iteration=iteration)
    drawing = drawing_of(summarize(maker.write(tmp_path)), "mpi")
    assert drawing is not None
    assert [row[4:8] for row in drawing.rows] == [
        ("n1+n2", 1, 1, 2.0), ("n1+n2", 2, 1, 3.0), ("n1+n2", 3, 1, 4.0),
    ]  # fmt: skip


def test_of_many_nodes_and_conditions_the_csv_has_all(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    levels = list(range(MAX_PANELS + 2))
    maker = synthetic.StudyMaker("many", {"load": levels}, {"load": 0})
    nodes = [f"n{number}" for number in range(1, MAX_NODES + 6)]
    for level in levels:
        for repeat, node in enumerate(nodes, start=1):
            run = maker.run("x", {}, {"load": level}, repeat, nodes=[node])
            for iteration in (1, 2, 3):
                maker.result(run, "seconds", 1.0 + level, "s", client=0, iteration=iteration)
    drawing = drawing_of(summarize(maker.write(tmp_path)), "x")
    assert drawing is not None
    assert len(drawing.rows) == 3 * len(nodes) * len(levels)
    assert f"The first {MAX_NODES} of {len(nodes)} nodes" in drawing.caption
    assert f"The first {MAX_PANELS} of {len(levels)} panels" in drawing.caption
    svg = inline_svg(drawing)
    assert ">n6<" in svg and ">n7<" not in svg and f">load={MAX_PANELS}<" not in svg


def test_numbers_of_averages_do_not_hide_each_other() -> None:
    assert separate_labels([3.0, 1.0], 0.5) == [3.0, 1.0]
    assert separate_labels([1.0, 1.2], 1.0) == pytest.approx([0.6, 1.6])
    assert separate_labels([1.2, 1.0], 1.0) == pytest.approx([1.6, 0.6])
    places = separate_labels([5.0, 1.0, 1.1, 1.2, 9.0], 1.0)
    assert places == pytest.approx([5.0, 0.1, 1.1, 2.1, 9.0])
    assert separate_labels([], 1.0) == []
