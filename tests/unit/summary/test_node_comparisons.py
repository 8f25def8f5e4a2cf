"""The factor node: the sentence, the page, the figure, and that no node is a baseline."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from steelyard.analysis.figures.node_plot import draw_nodes
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.node_comparisons import build_node_section
from steelyard.analysis.report.page import write_report
from steelyard.analysis.report.terminal_text import format_summary
from steelyard.analysis.summary.node_comparisons import build_node_comparisons
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands import cli


def study(
    synthetic: ModuleType,
    folder: Path,
    nodes: int = 12,
    slow: float = 1.082,
    failed: str = "",
    figure: tuple[str, str, str] = ("seconds", "s", "lower"),
    repeats: int = 10,
    spread: float = 0.01,
) -> Path:
    """Make a study whose last node takes `slow` times as long; blocks vary by 5 %."""
    names = [f"n{number}" for number in range(1, nodes + 1)]
    maker = synthetic.StudyMaker("nodes", {"node": names}, {})
    chance = np.random.default_rng(4)
    for repeat in range(1, repeats + 1):
        luck = 1 + 0.05 * float(chance.standard_normal())
        for name in names:
            state = "failed" if name == failed else "completed"
            run = maker.run("app", {}, {"node": name}, repeat, nodes=(name,), state=state)
            if state == "completed":
                own = slow if name == names[-1] else 1.0
                value = 10 * luck * own * (1 + spread * float(chance.standard_normal()))
                metric, unit, better = figure
                maker.result(run, metric, value if unit == "s" else 1 / value, unit, better)
    path: Path = maker.write(folder)
    return path


def test_the_slow_node_is_named(synthetic: ModuleType, tmp_path: Path) -> None:
    summary = summarize(study(synthetic, tmp_path))
    first, *_ = describe_answer(summary)
    assert first.startswith(
        "app: seconds: n12 is 7.7 % slower (6.6 to 8.8 %) than the median of 12 nodes (9.8"
    )
    assert first.endswith("; the others do not differ by more than 1.9 %.")
    (one,) = [one for one in build_node_comparisons(summary) if one.metric.is_primary]
    assert list(one.nodes)[-1] == "n12" and one.blocks == 10
    assert [name for name, found in one.nodes.items() if found.differs] == ["n12"]
    assert one.nodes["n12"].low < 0.082 < one.nodes["n12"].high


def test_no_node_is_a_baseline(synthetic: ModuleType, tmp_path: Path) -> None:
    summary = summarize(study(synthetic, tmp_path))
    assert summary.compared_rows() == []
    text = format_summary(summary, [])
    assert "baseline: none: nodes are compared with their median" in text
    assert "(baseline)" not in text and "Nothing was compared" not in text


def test_alike_nodes_are_told_with_a_bound(synthetic: ModuleType, tmp_path: Path) -> None:
    first, *_ = describe_answer(summarize(study(synthetic, tmp_path, slow=1.0)))
    assert first.startswith(
        "app: seconds: no node is shown to differ from the median of 12 nodes ("
    )
    assert first.endswith(", and none does by more than 1.8 %.")


def test_a_wide_bound_is_a_plain_number(synthetic: ModuleType, tmp_path: Path) -> None:
    found = study(synthetic, tmp_path, nodes=3, slow=3.0, repeats=3, spread=0.6)
    first, *_ = describe_answer(summarize(found))
    bound = re.search(r"and none does by more than (\d+) %\.$", first)
    assert bound and int(bound[1]) >= 100


def test_a_node_without_results_is_not_judged(synthetic: ModuleType, tmp_path: Path) -> None:
    first, *_ = describe_answer(summarize(study(synthetic, tmp_path, failed="n5")))
    assert "the median of 11 nodes" in first
    assert first.endswith(" Fewer than 3 blocks: n5 is not judged.")


def test_few_blocks_are_not_called_few_runs(synthetic: ModuleType, tmp_path: Path) -> None:
    """n4 has 6 runs, all of them in 2 blocks."""
    maker = synthetic.StudyMaker("blocks", {"node": ["n1", "n2", "n3", "n4"]}, {})
    chance = np.random.default_rng(4)
    for number in range(12):
        for name in maker.factors["node"]:
            if name != "n4" or number < 6:
                run = maker.run("app", {}, {"node": name}, number + 1, block=number // 3 + 1)
                maker.result(run, "seconds", float(chance.normal(10, 0.1)), "s")
    first, *_ = describe_answer(summarize(maker.write(tmp_path)))
    assert first.endswith(" Fewer than 3 blocks: n4 is not judged.")


@pytest.mark.parametrize(("nodes", "repeats"), [(2, 10), (5, 2)])
def test_too_little_is_said(
    synthetic: ModuleType, tmp_path: Path, nodes: int, repeats: int
) -> None:
    first, *_ = describe_answer(summarize(study(synthetic, tmp_path, nodes=nodes, repeats=repeats)))
    assert "nodes cannot be compared: fewer than 3 nodes have 3 runs." in first


def test_a_rate_says_the_same_as_its_seconds(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = study(synthetic, tmp_path, figure=("rate", "MB/s", "higher"))
    (one,) = [one for one in build_node_comparisons(summarize(folder)) if one.metric.is_primary]
    slowest = one.nodes["n12"]
    assert next(iter(one.nodes)) == "n12" and slowest.differs
    assert slowest.low < 1 / 1.082 - 1 < slowest.high < 0


def test_page_json_and_figures(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = study(synthetic, tmp_path, failed="n5")
    summary = summarize(folder)
    page = tmp_path / "nodes.html"
    write_report(summary, page)
    text = page.read_text(encoding="utf-8")
    assert 'id="compared-nodes"' in text and "8." in text
    assert cli.main(["report", str(folder), "--json"]) == 0
    rows = [
        one for one in json.loads(capsys.readouterr().out)["nodes"] if one["metric"] == "seconds"
    ]
    assert {one["node"] for one in rows} == {f"n{number}" for number in range(1, 13)}
    (lost,) = [one for one in rows if one["node"] == "n5"]
    assert lost["difference"] is lost["differs"] is None and lost["reason"]
    (one,) = [one for one in build_node_comparisons(summary) if one.metric.is_primary]
    drawing = draw_nodes(one)
    assert drawing is not None and len(drawing.rows) == 11
    assert [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()][-1] == "n12"


def test_many_nodes_have_points_and_a_short_table(synthetic: ModuleType, tmp_path: Path) -> None:
    summary = summarize(study(synthetic, tmp_path, nodes=100, repeats=4))
    (one,) = [one for one in build_node_comparisons(summary) if one.metric.is_primary]
    drawing = draw_nodes(one)
    assert drawing is not None and len(drawing.rows) == 100
    assert [text.get_text() for text in drawing.figure.axes[0].texts] == ["n100"]
    part = build_node_section(summary)
    assert part is not None
    rows = [row for row in part["table"].rows if row[1] == "seconds"]
    assert len(rows) == 60 and rows[-1][0] == "n100"
