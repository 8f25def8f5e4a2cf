"""How far a factor may go: which levels count, the sentences, page, JSON and figure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from steelyard.analysis.report.figures import list_factor_draws
from steelyard.analysis.report.page import write_report
from steelyard.analysis.report.tolerated_levels import (
    build_tolerance_section,
    build_tolerance_sentences,
)
from steelyard.analysis.stats.margin_crossing import State
from steelyard.analysis.summary.summary import Summary, summarize
from steelyard.analysis.summary.tolerated_levels import find_numeric_axes, find_tolerances
from steelyard.wrappers.commands import cli

DELAYS = ("none", "delay=10ms", "delay=20ms", "delay=50ms", "delay=100ms")
RATES = ("none", *(f"rate={rate}mbit" for rate in (1000, 500, 100, 50, 10)))


def delay(level: object) -> float:
    return 0.0 if level == "none" else float(str(level)[6:-2])


def rate(level: object) -> float:
    return float(str(level)[5:-4])


def study(
    synthetic: ModuleType,
    folder: Path,
    seconds: Callable[[object], float | None],
    levels: Sequence[object] = DELAYS,
    factor: str = "network",
    baseline: object = "none",
    repeats: int = 10,
    figure: tuple[str, str, str] = ("seconds", "s", "lower"),
) -> Path:
    """Make runs with a noise of 1 %; None: all runs of the level failed."""
    maker = synthetic.StudyMaker("far", {factor: levels}, {factor: baseline})
    chance = np.random.default_rng(3)
    for repeat in range(1, repeats + 1):
        for level in levels:
            value = seconds(level)
            state = "failed" if value is None else "completed"
            run = maker.run("app", {}, {factor: level}, repeat, state=state)
            if value is not None:
                name, unit, better = figure
                noise = 1 + 0.01 * float(chance.standard_normal())
                maker.result(run, name, value * noise, unit, better)
    path: Path = maker.write(folder)
    return path


def told(folder: Path) -> str:
    (sentence,) = build_tolerance_sentences(summarize(folder, tolerate=0.1))
    return sentence


def test_a_delay_is_placed_between_two_levels(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = study(synthetic, tmp_path, lambda level: 10 * (1 + 0.003 * delay(level)))
    words = told(folder)
    assert words.startswith(
        "app: seconds is 10 % worse than at the baseline (0 ms of delay) from 3"
    )
    assert words.endswith("; interpolated between the levels 20 and 50).")
    (one,) = [one for one in find_tolerances(summarize(folder, tolerate=0.1)) if one.is_primary]
    low, value, high = one.crossing.low, one.crossing.value, one.crossing.high
    assert low is not None and value is not None and high is not None
    assert 20 < low < 100 / 3 < high < 50 and low < value < high
    assert (one.blocks, one.runs, one.levels) == (10, (10, 10), 5)


def test_nothing_is_told_unless_it_is_asked_for(synthetic: ModuleType, tmp_path: Path) -> None:
    summary = summarize(study(synthetic, tmp_path, lambda level: 10 + delay(level)))
    assert find_tolerances(summary) == [] and build_tolerance_section(summary) is None


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (
            lambda level: 10 * (1 + 5e-4 * delay(level)),
            ("app: seconds is less than 10 % worse than at the baseline (0 ms of delay) up to 100 ms of "
            "delay, the farthest level: the limit is more than 100 ms of delay."),
        ),
        (
            lambda level: 10 - delay(level) / 50,
            ("app: seconds is less than 10 % worse than at the baseline (0 ms of delay) up to 100 ms of "
            "delay, the farthest level: the limit is more than 100 ms of delay."),
        ),
        (
            lambda level: 10 + 3 * (level != "none"),
            ("app: seconds is more than 10 % worse at 10 ms of delay, the first level above the baseline "
            "(0 ms of delay): the limit is less than that."),
        ),
        (  # failed at 20 and 50 ms
            lambda level: None if 10 < delay(level) < 100 else 10 + delay(level) / 50,
            "interpolated between the levels 10 and 100).",
        ),
        (
            lambda level: 13 if level == "delay=20ms" else 10,
            "At 50 ms of delay it is less than 10 % worse again.",
        ),
        (lambda level: None if level == "none" else 10, "there are no runs at the baseline's level"),
    ],
)  # fmt: skip
def test_what_is_told_of_other_shapes(
    synthetic: ModuleType, tmp_path: Path, seconds: Callable[[object], float | None], words: str
) -> None:
    found = told(study(synthetic, tmp_path, seconds))
    assert found == words if words.startswith("app") else words in found


def test_two_runs_a_level_have_no_interval(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = study(synthetic, tmp_path, lambda level: 10 + delay(level) / 30, repeats=2)
    assert told(folder) == (
        "app: seconds is 10 % worse than at the baseline (0 ms of delay) somewhere between 20 and 50 ms "
        "of delay, by the means alone: a level has fewer than 3 independent runs."
    )


def test_a_rate_counts_down_from_no_limit(synthetic: ModuleType, tmp_path: Path) -> None:
    """8 / rate more: 10 % at 80 Mbit/s, exactly on a line in the time for a bit."""
    folder = study(
        synthetic, tmp_path, lambda level: 10 * (1 + (8 / rate(level) if level != "none" else 0)), RATES
    )  # fmt: skip
    words = told(folder)
    assert words.startswith(
        "app: seconds is 10 % worse than at the baseline (no limit of rate) from "
    )
    assert " Mbit/s of rate down (" in words and "between the levels 100 and 50)" in words
    (one,) = [one for one in find_tolerances(summarize(folder, tolerate=0.1)) if one.is_primary]
    low, high = one.crossing.low, one.crossing.high
    assert low is not None and high is not None and low > 80 > high >= 50
    assert one.crossing.value == pytest.approx(80, rel=0.1)


def test_a_rate_as_figure_is_worse_when_lower(synthetic: ModuleType, tmp_path: Path) -> None:
    """Throughput of 1 / (1 + 0.003 x): 10 % lower at x = 1 / 0.027."""
    folder = study(
        synthetic, tmp_path, lambda level: 100 / (1 + 0.003 * delay(level)),
        figure=("rate", "MB/s", "higher"),
    )  # fmt: skip
    (one,) = [one for one in find_tolerances(summarize(folder, tolerate=0.1)) if one.is_primary]
    assert one.crossing.value == pytest.approx(1 / 0.027, rel=0.1)


def test_a_baseline_in_the_middle_has_a_limit_on_each_side(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    folder = study(
        synthetic, tmp_path, lambda level: 10 + 0.5 * abs(float(str(level)) - 8),
        levels=[1, 4, 8, 12, 16], factor="threads", baseline=8,
    )  # fmt: skip
    above, below = build_tolerance_sentences(summarize(folder, tolerate=0.1))
    assert "from threads = 10.07 on" in above and "between the levels 8 and 12)" in above
    assert "from threads = 5.95 down" in below and "between the levels 8 and 4)" in below
    found = [one for one in find_tolerances(summarize(folder, tolerate=0.1)) if one.is_primary]
    assert [one.side for one in found] == ["above", "below"]


def test_levels_are_printed_as_the_study_has_them(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = study(
        synthetic, tmp_path, lambda level: 10 + float(str(level)) / 1e6,
        levels=[1048576, 2097152, 4194304], factor="size", baseline=1048576,
    )  # fmt: skip
    words = told(folder)
    assert "at the baseline (size = 1048576) from size = " in words
    assert "interpolated between the levels 2097152 and 4194304)" in words


def test_two_levels_are_enough_to_say_more_or_less(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = study(
        synthetic, tmp_path, lambda level: 10 + delay(level) / 25, levels=["none", "delay=50ms"]
    )
    assert told(folder).endswith(
        "at 50 ms of delay, the first level above the baseline (0 ms of delay): the limit is less than "
        "that."
    )


@pytest.mark.parametrize(
    ("factors", "count"),
    [
        ({"network": ["none", "delay=50ms"]}, 1),
        ({"network": ["none", "rate=5mbit"]}, 1),
        ({"network": ["none", "delay=5ms,rate=1mbit"], "cache": ["cold", "warm"]}, 0),
        ({"clients": [1, 2], "threads": [4]}, 1),
        ({"input": ["2026_01", "2026_02"]}, 0),  # names, though Python's float() reads them
    ],
)
def test_which_factors_have_numbers(factors: dict[str, list[object]], count: int) -> None:
    assert len(find_numeric_axes(factors)) == count


@pytest.fixture
def line(synthetic: ModuleType, tmp_path: Path) -> Path:
    return study(synthetic, tmp_path, lambda level: 10 * (1 + 0.003 * delay(level)))


def test_page_figure_and_json_have_the_same_limit(
    line: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["report", str(line), "--tolerate", "10%", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["tolerate"] == 0.1
    (one,) = [one for one in document["tolerances"] if one["metric"] == "seconds"]
    assert one["state"] == State.CROSSED.value and 20 < one["low"] < one["limit"] < one["high"] < 50
    summary: Summary = summarize(line, tolerate=0.1)
    page = tmp_path / "far.html"
    write_report(summary, page)
    text = page.read_text(encoding="utf-8")
    assert '<h2 id="tolerance">' in text.replace(' tabindex="-1"', "") or 'id="tolerance"' in text
    assert "interpolated between the levels 20 and 50" in text
    drawn = [d for draw in list_factor_draws(summary, "app") if (d := draw()) is not None]
    (lines,) = [d for d in drawn if d.name.startswith("lines-") and "seconds" in d.name]
    assert "Vertical lines are where it is as much worse" in lines.caption
    (axes,) = lines.figure.axes
    assert any(list(mark.get_xdata()) == [one["limit"]] * 2 for mark in axes.get_lines())  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["0%", "abc", "-1", "100%"])
def test_no_share_is_refused(line: Path, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", str(line), f"--tolerate={text}"]) == 2
    assert f"--tolerate '{text}' is no share: expected percent above 0" in capsys.readouterr().err


def test_published_data_have_no_tolerance(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["report", "--preset", "jungels2012", "--tolerate", "10%"]) == 2
    assert "--tolerate is for a study of yours" in capsys.readouterr().err
