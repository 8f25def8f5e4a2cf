"""Many comparisons at once: corrected, and told in words that say so."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import scipy.stats

from steelyard.analysis.report.tables import p_text
from steelyard.analysis.stats.overhead import Direction
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands import cli

LEVELS = list(range(1, 13))


@pytest.fixture
def folder(synthetic: ModuleType, tmp_path: Path) -> Path:
    """Eleven conditions beside the baseline: one far from it, one a little, the others like it."""
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
    assert near.verdict.direction is Direction.NOT_SHOWN
    assert "among all comparisons p = 0.1" in near.verdict.text


def test_alone_the_same_difference_is_told(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["compare", str(folder), "clients=1", "clients=3", "--json"]
    assert cli.main(argv) == 0
    (row,) = (r for r in json.loads(capsys.readouterr().out)["rows"] if r["metric"] == "seconds")
    assert row["meaning"] == "worse" and row["p_holm"] < 0.05
    assert row["effect_size"] == pytest.approx(1.2, abs=0.1)


def test_both_families_are_corrected_apart(synthetic: ModuleType, tmp_path: Path) -> None:
    """One main figure: its p stays, however many other metrics there are."""
    maker: Any = synthetic.demo("families", energy=True)
    summary = summarize(maker.write(tmp_path))
    main = [row for row in summary.compared(primary=True) if row.p is not None]
    for row in main:
        base = summary.row(row.group.variant, row.group.baseline_label or "", row.metric.name)
        assert base is not None and row.p is not None
        alone = scipy.stats.ttest_ind(row.values, base.values, equal_var=False).pvalue
        assert alone <= row.p * (1 + 1e-9) <= len(main) * alone * (1 + 1e-9)


def test_p_is_never_told_as_nothing() -> None:
    assert [p_text(p) for p in (None, 1e-9, 0.0123, 1.0)] == ["–", "< 0.0001", "0.012", "1"]
