"""Multiple comparisons are corrected, and reported as such."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.figures.forest_plot import draw_forest
from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.export import row_document
from steelyard.analysis.report.links import run_anchors
from steelyard.analysis.report.tables import build_overhead_groups, format_p
from steelyard.analysis.stats.overhead_verdict import Direction
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands import cli

LEVELS = list(range(1, 13))


@pytest.fixture
def folder(synthetic: ModuleType, tmp_path: Path) -> Path:
    """Make eleven conditions: one far from the baseline, one near it, the others equal to it."""
    maker = synthetic.StudyMaker("many", {"clients": LEVELS}, {"clients": 1})
    steady = scipy.stats.norm.ppf((np.arange(10) + 0.5) / 10)
    for number, place in enumerate(steady):
        for level in LEVELS:
            mean = {2: 10.5, 3: 10.12}.get(level, 10.0)
            run = maker.run("x", {}, {"clients": level}, number + 1)
            maker.rows["runs"][-1]["block"] = 1  # one block: no pairs
            maker.result(run, "seconds", mean + 0.1 * float(place), "s")
    return maker.write(tmp_path)


def test_a_small_difference_among_many_is_not_told(folder: Path) -> None:
    summary = summarize(folder)
    rows = {level: summary.row("x", f"clients={level}", "seconds") for level in LEVELS}
    base, far, near = rows[1], rows[2], rows[3]
    assert base is not None and far is not None and near is not None
    assert base.verdict is None and base.p is None and base.effect is None
    assert far.verdict is not None and near.verdict is not None and near.overhead is not None
    assert far.verdict.direction is Direction.WORSE and far.p is not None and far.p < 1e-6
    alone = scipy.stats.ttest_ind(near.values, base.values, equal_var=False).pvalue
    assert alone < 0.05 < alone * 10 == pytest.approx(near.p)
    assert near.overhead.low is not None and near.overhead.low > 0
    assert near.verdict.direction is Direction.PERHAPS
    assert re.fullmatch(
        r"perhaps slower by 1\.2 % \(0\.\d+ … 2\.\d+\), not significant after correction for 11 "
        r"comparisons \(p = 0\.1\d?\), n = 10 \+ 10",
        near.verdict.text,
    )


def test_alone_the_same_difference_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["compare", str(folder), "clients=1", "clients=3", "--json"]
    assert cli.main(argv) == 0
    (row,) = (r for r in json.loads(capsys.readouterr().out)["rows"] if r["metric"] == "seconds")
    assert row["meaning"] == "worse" and row["p_holm"] < 0.05
    assert row["effect_size"] == pytest.approx(1.2, abs=0.1)
    assert row["p_equivalent"] is None
    assert cli.main([*argv, "--equivalent", "5%"]) == 0
    (row,) = (r for r in json.loads(capsys.readouterr().out)["rows"] if r["metric"] == "seconds")
    assert (row["meaning"], row["equivalent_within"]) == ("equivalent", 0.05)
    assert row["verdict"].startswith("within ± 5 %: slower by 1.2 %")
    assert cli.main([*argv, "--equivalent", "much"]) == 2
    assert "--equivalent 'much' is no share" in capsys.readouterr().err


def test_what_is_called_equivalent_is_corrected_too(folder: Path) -> None:
    """Eleven tests at ± 2 %: their p are those of scipy times Holm's factors."""
    summary = summarize(folder, equivalent=0.02)
    base = summary.row("x", "clients=1", "seconds")
    assert base is not None and summarize(folder).rows[0].margin is None
    alone = {}
    for row in summary.compared_rows(primary=True):
        sides = ((0.98, "greater"), (1.02, "less"))
        alone[row.group.label] = max(
            scipy.stats.ttest_ind(
                row.values, np.multiply(r, base.values), equal_var=False, alternative=side
            ).pvalue
            for r, side in sides
        )
    ranked = sorted(alone, key=lambda label: alone[label])
    highest = 0.0
    for rank, label in enumerate(ranked):
        highest = max(highest, min((11 - rank) * alone[label], 1.0))
        row = summary.row("x", label, "seconds")
        assert row is not None and row.p_equivalent == pytest.approx(highest)
    directions = {
        row.group.label: row.verdict.direction
        for row in summary.compared_rows(primary=True)
        if row.verdict
    }
    assert directions["clients=2"] is Direction.WORSE
    assert directions["clients=3"] is Direction.PERHAPS
    assert directions["clients=4"] is Direction.EQUIVALENT


def test_what_is_called_no_slower_is_corrected_and_told_everywhere(
    synthetic: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Faster by 5 %, too noisy to say so: in JSON, CSV, the answer, the picture and the table."""
    maker = synthetic.StudyMaker("faster", {"clients": [1, 2, 3]}, {"clients": 1})
    steady = scipy.stats.norm.ppf((np.arange(8) + 0.5) / 8)
    for number, place in enumerate(steady):
        for level, mean in ((1, 10.0), (2, 9.5), (3, 10.3)):
            run = maker.run("x", {}, {"clients": level}, number + 1)
            maker.rows["runs"][-1]["block"] = 1
            maker.result(run, "seconds", mean + 0.55 * float(place), "s")
    summary = summarize(maker.write(tmp_path), equivalent=0.02)
    rows = {level: summary.row("x", f"clients={level}", "seconds") for level in (1, 2, 3)}
    base, ours, other = rows[1], rows[2], rows[3]
    assert base is not None and ours is not None and other is not None
    assert ours.verdict is not None and other.verdict is not None
    alone = scipy.stats.ttest_ind(
        ours.values, np.multiply(1.02, base.values), equal_var=False, alternative="less"
    ).pvalue
    assert alone < 0.025 and ours.p_non_inferior == pytest.approx(2 * alone)
    assert ours.verdict.direction is Direction.NON_INFERIOR
    assert ours.verdict.text == "no slower than 2 % (−11 … 1 %), n = 8 + 8"
    assert other.verdict.direction is Direction.NOT_SHOWN
    assert any(
        text.startswith("With 2 clients instead of 1, x takes at most 2 % longer (−11 to 1 %).")
        for text in describe_answer(summary)
    )
    picture = draw_forest(summary)
    assert picture is not None and "non-inferior" in [row[-1] for row in picture.rows]
    (table,) = build_overhead_groups(summary, run_anchors(summary))
    assert table.rows[0][3] == "non-inferior"
    assert row_document(ours)["p_non_inferior"] == ours.p_non_inferior
    argv = ["compare", str(tmp_path / "faster.study"), "clients=1", "clients=2", "--json"]
    assert cli.main([*argv, "--equivalent", "2%"]) == 0
    (row,) = (r for r in json.loads(capsys.readouterr().out)["rows"] if r["metric"] == "seconds")
    assert row["meaning"] == "non-inferior" and row["p_non_inferior"] == pytest.approx(alone)


def test_both_families_are_corrected_apart(synthetic: ModuleType, tmp_path: Path) -> None:
    """One main figure: its p stays, however many other metrics there are."""
    maker: Any = synthetic.demo("families", energy=True)
    summary = summarize(maker.write(tmp_path))
    main = [row for row in summary.compared_rows(primary=True) if row.p is not None]
    for row in main:
        base = summary.row(row.group.variant, row.group.baseline_label or "", row.metric.name)
        assert base is not None and row.p is not None
        alone = scipy.stats.ttest_ind(row.values, base.values, equal_var=False).pvalue
        assert alone <= row.p * (1 + 1e-9) <= len(main) * alone * (1 + 1e-9)


def test_p_is_never_told_as_nothing() -> None:
    assert [format_p(p) for p in (None, 1e-9, 0.0123, 1.0)] == ["–", "< 0.0001", "0.012", "1"]
