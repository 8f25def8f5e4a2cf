"""Slopes over numeric factors: which levels are numbers, what the table says."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from steelyard.analysis.report import write_report
from steelyard.analysis.report_slopes import slope_table
from steelyard.analysis.summary import summarize
from steelyard.analysis.summary_slopes import factor_lines, number_of

DELAYS = (0, 25, 50, 75, 100)


@pytest.mark.parametrize(
    ("factor", "level", "number"),
    [
        ("clients", 4, 4.0),
        ("clients", "2.5", 2.5),
        ("clients", "many", None),
        ("clients", True, None),
        ("clients", "nan", None),
        ("network", "none", 0.0),
        ("network", "delay=50ms", 50.0),
        ("network", "delay=0.05s", 50.0),
        ("network", "delay=250us", 0.25),
        ("network", "delay=50ms~5ms", None),
        ("network", "delay=50ms,loss=1%", None),
        ("network", "rate=10mbit", None),
    ],
)
def test_levels_as_numbers(factor: str, level: object, number: float | None) -> None:
    assert number_of(factor, level) == number


def study(synthetic: ModuleType, bend: float = 0.0) -> Any:
    """12 ms a ms of delay, from 50 ms on `bend` more; two caches with the same line."""
    levels = ["none", *(f"delay={d}ms" for d in DELAYS[1:]), "loss=1%"]
    maker = synthetic.StudyMaker("line", {"network": levels, "cache": ["cold", "warm"]}, {})
    chance = np.random.default_rng(4)
    for number in range(5):
        for level in levels:
            delay = number_of("network", level)
            for cache in ("cold", "warm"):
                run = maker.run("x", {}, {"network": level, "cache": cache}, number + 1)
                seconds = 10 + 0.012 * (delay or 0) + bend * max((delay or 0) - 50, 0)
                maker.result(run, "seconds", seconds + float(chance.normal(0, 0.005)), "s")
    return maker


def test_the_table_tells_the_slope_per_ms(synthetic: ModuleType, tmp_path: Path) -> None:
    table = slope_table(summarize(study(synthetic).write(tmp_path)))
    assert table is not None
    rows = {row[:3]: row[3:] for row in table.rows}
    assert ("x", "elapsed_s", "cache=cold") in rows  # of every run
    slope, words, broken, n = rows["x", "seconds", "cache=cold"]
    assert slope.startswith(("11.9", "12.0", "12.1")) and slope.endswith(" per ms of delay")
    assert (words, broken, n) == ("rises", "none shown", "25 over 5 levels")
    assert rows["x", "elapsed_s", "cache=warm"][1] == "not shown to rise or fall"


def test_a_break_stands_beside_it(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = study(synthetic, bend=0.08).write(tmp_path)
    lines = [line for line in factor_lines(summarize(folder)) if line.metric == "seconds"]
    assert len(lines) == 2
    for line in lines:
        assert line.line.broken is not None and line.line.broken.place == 50.0
    path = tmp_path / "report.html"
    write_report(summarize(folder), path)
    page = path.read_text(encoding="utf-8")
    assert "Over a numeric factor" in page and "at 50: 12" in page and "ms after it" in page


def test_two_levels_are_no_line(demo_folder: Path) -> None:
    assert slope_table(summarize(demo_folder)) is None
