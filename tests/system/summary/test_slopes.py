"""Slopes over numeric factors: the levels that are numbers, and the text of the table."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from steelyard.analysis.report.figures import list_factor_draws
from steelyard.analysis.report.page import write_report
from steelyard.analysis.report.slopes import build_slope_table, format_judgement, table_row
from steelyard.analysis.stats.hypothesis_tests import holm
from steelyard.analysis.stats.slope import COARSE, Break, Line, Slope, fit_slope
from steelyard.analysis.summary.numeric_factors import find_axes, parse_level_number
from steelyard.analysis.summary.slopes import FactorLine, correct_p, fit_factor_lines
from steelyard.analysis.summary.summary import summarize

DELAYS = (0, 25, 50, 75, 100)


@pytest.mark.parametrize(
    ("level", "number"), [(4, 4.0), ("2.5", 2.5), ("many", None), (True, None), ("nan", None)]
)
def test_levels_as_numbers(level: object, number: float | None) -> None:
    assert parse_level_number(level) == number


TO = "to=10.0.0.0/24"
KOMMERI = ["loss=0%", "delay=5ms", "delay=12500us", "delay=0.025s", "loss=0.1%", "loss=1%"]


@pytest.mark.parametrize(
    ("levels", "found"),
    [
        (["none", "delay=25ms", "delay=50ms"], {("ms of delay", ""): [0, 25, 50]}),
        (["none", "delay=25ms"], {}),
        # The example study's own baseline, and its losses.
        (KOMMERI, {("ms of delay", ""): [0, 5, 12.5, 25], ("% of loss", ""): [0, 0.1, 1]}),
        (
            ["none", *(f"delay={d}ms,rate=100mbit" for d in (0, 25, 50))],
            {("ms of delay", "rate=100mbit"): [0, 25, 50]},
        ),
        (["none", f"delay=25ms,{TO}", f"delay=50ms,{TO}"], {("ms of delay", TO): [0, 25, 50]}),
        (
            [f"rate={r}mbit,delay=5ms" for r in (5, 10, 100)],
            {("Mbit/s of rate", "delay=5ms"): [5, 10, 100]},
        ),
        # No number, another rate, another address, jitter.
        (["none", "delay=25ms~5ms", "delay=50ms,loss=1%", "rate=5mbit", f"delay=9ms,{TO}"], {}),
    ],
)
def test_network_levels_that_differ_in_one_number_lie_on_an_axis(
    levels: list[str], found: dict[tuple[str, str], list[float]]
) -> None:
    told = {(a.unit, a.fixed): sorted(a.places.values()) for a in find_axes({"network": levels})}
    assert told == found


@pytest.mark.parametrize("beside", ["", ",rate=100mbit", f",{TO}"])
def test_slopes_and_lines_are_told_over_delays_with_the_same_beside_them(
    synthetic: ModuleType, tmp_path: Path, beside: str
) -> None:
    levels = ["loss=0%" if not beside else f"delay=0ms{beside}"]
    levels += [f"delay={d}ms{beside}" for d in (25, 50)]
    maker = synthetic.StudyMaker("beside", {"network": levels}, {"network": levels[0]})
    for number in range(5):
        for place, level in enumerate(levels):
            run = maker.run("x", {}, {"network": level}, number + 1)
            maker.result(run, "seconds", 10 + 3 * place + number / 50, "s")
    summary = summarize(maker.write(tmp_path))
    (line,) = [one for one in fit_factor_lines(summary) if one.metric == "seconds"]
    assert line.line.slope.value == pytest.approx(0.12) and line.factor_unit == "ms of delay"
    assert (line.line.slope.n, line.others) == (15, beside.lstrip(","))
    drawn = [d for draw in list_factor_draws(summary, "x") if (d := draw()) is not None]
    assert any(d.title == "x: seconds over delay (ms)" for d in drawn)


def study(synthetic: ModuleType, bend: float = 0.0) -> Any:
    """12 ms a ms of delay, from 50 ms on `bend` more; two caches with the same line."""
    levels = ["none", *(f"delay={d}ms" for d in DELAYS[1:]), "loss=1%"]
    maker = synthetic.StudyMaker("line", {"network": levels, "cache": ["cold", "warm"]}, {})
    chance = np.random.default_rng(4)
    for number in range(5):
        for level in levels:
            delay = 0 if level in ("none", "loss=1%") else int(level[6:-2])
            for cache in ("cold", "warm"):
                run = maker.run("x", {}, {"network": level, "cache": cache}, number + 1)
                seconds = 10 + 0.012 * (delay or 0) + bend * max((delay or 0) - 50, 0)
                maker.result(run, "seconds", seconds + float(chance.normal(0, 0.005)), "s")
    return maker


def test_the_table_tells_the_slope_per_ms(synthetic: ModuleType, tmp_path: Path) -> None:
    table = build_slope_table(summarize(study(synthetic).write(tmp_path)))
    assert table is not None
    assert list(table.anchors) == ["runs-of-1"] * len(table.rows)
    rows = {row[:3]: row[3:] for row in table.rows}
    assert ("x", "elapsed_s", "cache=cold") in rows  # of every run
    slope, words, broken, n = rows["x", "seconds", "cache=cold"]
    assert slope.startswith(("11.9", "12.0", "12.1")) and slope.endswith(" per ms of delay")
    assert (words, broken, n) == ("rises", "none shown", "25 over 5 levels")
    assert rows["x", "elapsed_s", "cache=warm"][1].startswith("cannot be judged: coarse: ")


def test_a_break_stands_beside_it(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = study(synthetic, bend=0.08).write(tmp_path)
    lines = [line for line in fit_factor_lines(summarize(folder)) if line.metric == "seconds"]
    assert len(lines) == 2
    for line in lines:
        assert line.line.break_point is not None and line.line.break_point.position == 50.0
    path = tmp_path / "report.html"
    write_report(summarize(folder), path)
    page = path.read_text(encoding="utf-8")
    assert "Over a numeric factor" in page and "at 50: 12" in page and "ms after it" in page


def test_two_levels_are_no_line(demo_folder: Path) -> None:
    assert build_slope_table(summarize(demo_folder)) is None


def flat_study(
    synthetic: ModuleType, folder: Path, variants: int, blocks: int, slope: float
) -> Any:
    """Variants over 1, 2 and 3 clients: a block's luck on all runs in it, the first with a slope."""
    maker = synthetic.StudyMaker("flat", {"clients": [1, 2, 3]}, {})
    chance = np.random.default_rng(11)
    for number in range(1, blocks + 1):
        luck = chance.normal(0, 1)
        for variant in range(variants):
            for clients in (1, 2, 3):
                run = maker.run("x", {"v": variant}, {"clients": clients}, number)
                value = (
                    10 + luck + float(chance.normal(0, 0.1)) + (0 if variant else slope * clients)
                )
                maker.result(run, "figure", value, "s")
    found = fit_factor_lines(summarize(maker.write(folder)))
    return [line for line in found if line.metric == "figure"]


def test_what_hits_a_block_is_not_in_its_slopes(synthetic: ModuleType, tmp_path: Path) -> None:
    (few,) = flat_study(synthetic, tmp_path / "few", 1, 9, 0.2)
    (many,) = flat_study(synthetic, tmp_path / "many", 1, 10, 0.2)
    assert few.line.slope.blocks is None and not few.is_significant
    assert many.line.slope.blocks == 10 and many.is_significant
    assert (
        format_judgement(many) == "rises"
        and table_row(many)[-1] == "30 over 3 levels, by 10 blocks"
    )


def test_among_many_lines_one_is_steep_by_chance(synthetic: ModuleType, tmp_path: Path) -> None:
    lines = flat_study(synthetic, tmp_path, 40, 10, 0.0)
    alone = [line for line in lines if not line.line.slope.low <= 0 <= line.line.slope.high]
    assert alone and not any(line.is_significant for line in lines)
    assert format_judgement(alone[0]).startswith("not shown to rise or fall (among all lines p = ")
    alone_p = [line.line.slope.p for line in lines]
    assert [line.p for line in lines] == pytest.approx(holm([*alone_p, *[1.0] * 40])[:40])


def test_runs_of_one_job_are_one_value(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("jobs", {"clients": [1, 2, 3]}, {})
    chance = np.random.default_rng(12)
    for clients in (1, 2, 3):
        for job in range(4):
            luck = float(chance.normal(0, 1))
            for number in range(5):
                run = maker.run("x", {}, {"clients": clients}, 5 * job + number + 1)
                maker.rows["attempts"][-1]["job_id"] = f"{clients}{job}"
                maker.result(run, "figure", 10 + luck + float(chance.normal(0, 0.01)), "s")
    (line,) = [
        line
        for line in fit_factor_lines(summarize(maker.write(tmp_path)))
        if line.metric == "figure"
    ]
    assert line.line.slope.n == 12


def test_a_break_by_chance_is_none_among_many() -> None:
    slope = Slope(1.0, 0.5, 1.5, 0.0, 20, 4, 1e-6)
    lines = [
        FactorLine("v", "m", "s", "clients", "clients", "", True, Line(slope, broken), 1.0)
        for broken in [Break(2.0, 1.0, 2.0, 0.03), Break(2.0, 1.0, 9.0, 1e-4), *[None] * 8]
    ]
    found = list(correct_p(lines))
    assert [one.line.break_point is not None for one in found] == [False, True, *[False] * 8]
    assert found[1].line.break_point is not None and found[1].line.break_point.p == pytest.approx(
        2e-3
    )


@pytest.mark.parametrize("value", [33.6, 60.48, 0.1, 1e9 + 0.7])
@pytest.mark.parametrize("by_block", [True, False])
def test_equal_values_are_not_judged(value: float, by_block: bool) -> None:
    """Rounding alone gives a slope of 1e-23 s a ms, without a spread."""
    places, blocks = [0.0, 10.0, 25.0, 100.0] * 12, [number // 4 for number in range(48)]
    line = fit_slope(places, [value] * 48, blocks if by_block else None)
    assert line is not None
    assert line.slope.reason == COARSE and line.slope.low is None
    assert line.slope.p > 0.05
    assert line.break_point is None
