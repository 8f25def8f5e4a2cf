"""Figures over factors: boxes and lines over a number, heat map, stack of shares."""

from __future__ import annotations

import itertools
import random
import statistics
from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.figures.box_plot import compute_box
from steelyard.analysis.figures.drawing import Drawing, inline_svg
from steelyard.analysis.figures.heat_map import draw_heat
from steelyard.analysis.report.figures import draw_figures, list_factor_draws
from steelyard.analysis.summary.summary import Summary, summarize

DELAYS = (0, 10, 25, 50, 100)


@pytest.fixture(scope="module")
def summary(synthetic: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Summary:
    """Five delays, two launchers, ten runs each, profiled."""
    levels = ["none", *(f"delay={delay}ms" for delay in DELAYS[1:])]
    factors = {"network": levels, "launcher": ["bare", "podman"]}
    maker = synthetic.StudyMaker("wan", factors, {"network": "none", "launcher": "bare"})
    chance = random.Random(3)
    for number in range(1, 11):
        for delay, level in zip(DELAYS, levels, strict=True):
            for launcher in ("bare", "podman"):
                condition = {"network": level, "launcher": launcher}
                seconds = (20 + 0.3 * delay) * chance.gauss(1, 0.02)
                run = maker.run("xrootd", {}, condition, number, elapsed_s=seconds)
                maker.result(run, "seconds", seconds, "s")
                maker.result(run, "throughput", 1e9 / seconds, "bytes_per_s", "higher", False)
                computing = 0.7 - delay / 400
                shares = (computing, 0.95 - computing, 0.05)
                names = ("compute_share", "communication_share", "init_share")
                for name, share in zip(names, shares, strict=True):
                    maker.result(run, name, share, "1", None, False)
                maker.record(run, "n1", seconds, energy_j=90 * seconds)
    return summarize(maker.write(tmp_path_factory.mktemp("wan")))


@pytest.fixture(scope="module")
def drawings(summary: Summary) -> dict[str, Drawing]:
    return {drawing.name: drawing for drawing in draw_figures(list_factor_draws(summary, "xrootd"))}


def cells(drawing: Drawing) -> list[dict[str, object]]:
    return [dict(zip(drawing.columns, row, strict=True)) for row in drawing.rows]


def test_which_figures_there_are(drawings: dict[str, Drawing]) -> None:
    assert list(drawings) == [
        "boxes-xrootd-network-seconds-energy-j",
        "lines-xrootd-network-seconds",
        "lines-xrootd-network-throughput",
        "heat-xrootd-seconds",
        "stack-xrootd",
    ]
    assert all("n = 10 runs" in drawing.caption for drawing in drawings.values())


def test_boxes_of_time_and_energy_over_delay(drawings: dict[str, Drawing]) -> None:
    drawing = drawings["boxes-xrootd-network-seconds-energy-j"]
    svg = inline_svg(drawing)
    assert all(words in svg for words in ("seconds (s)", "energy_j (kJ)", "delay (ms)"))
    rows = [c for c in cells(drawing) if (c["metric"], c["others"]) == ("seconds", "launcher=bare")]
    assert [row["level"] for row in rows] == list(DELAYS)
    assert all(row["p25"] <= row["median"] <= row["p75"] for row in rows)  # type: ignore[operator]


def test_quartiles_and_whiskers_are_tukeys() -> None:
    box = compute_box((1.0, 2.0, 3.0, 4.0, 5.0, 20.0), 1.0)
    low, _, high = statistics.quantiles([1, 2, 3, 4, 5, 20], n=4, method="inclusive")
    assert (box["q1"], box["med"], box["q3"]) == (low, 3.5, high)
    assert (box["whislo"], box["whishi"], box["fliers"]) == (1.0, 5.0, [20.0])


def test_lines_have_bands_of_the_intervals(drawings: dict[str, Drawing], summary: Summary) -> None:
    drawing = drawings["lines-xrootd-network-throughput"]
    words = drawing.figure.axes[0].get_ylabel().replace("\n", " ")
    assert words == "throughput (MB/s), higher is better"
    row = summary.row("xrootd", "network=delay=50ms, launcher=podman", "throughput")
    assert row is not None and row.interval is not None
    (cell,) = [c for c in cells(drawing) if (c["level"], c["others"]) == (50, "launcher=podman")]
    assert (cell["mean"], cell["low"], cell["high"]) == (
        row.interval.mean,
        row.interval.low,
        row.interval.high,
    )
    bands = [c for c in drawing.figure.axes[0].collections if "Poly" in type(c).__name__]
    assert len(bands) == 2


def test_the_heat_map_says_what_is_not_shown(drawings: dict[str, Drawing]) -> None:
    drawing = drawings["heat-xrootd-seconds"]
    words = [text.get_text() for text in drawing.figure.axes[0].texts]
    assert words.count("baseline") == 1
    assert sum(word.startswith("(") for word in words) == 1  # podman without delay
    assert sum(word.startswith("+") for word in words) == 8
    assert "overhead (%)" in inline_svg(drawing)


def test_one_factor_gives_no_heat_map(demo_summary: Summary) -> None:
    rows = [row for row in demo_summary.rows if row.group.variant == "hpl N=4000"]
    assert draw_heat(demo_summary, rows) is None
    assert draw_figures(list_factor_draws(demo_summary, "hpl N=4000")) == []


def test_a_heat_map_of_no_differences_at_all(synthetic: ModuleType, tmp_path: Path) -> None:
    factors = {"network": ["none", "delay=1ms"], "launcher": ["bare", "podman"]}
    maker = synthetic.StudyMaker("same", factors, {"network": "none", "launcher": "bare"})
    for number, network, launcher in itertools.product(range(1, 6), *factors.values()):
        run = maker.run("x", {}, {"network": network, "launcher": launcher}, number)
        maker.result(run, "seconds", 10.0 + number, "s")
    summary = summarize(maker.write(tmp_path))
    rows = [row for row in summary.rows if row.metric.name == "seconds"]
    drawing = draw_heat(summary, rows)
    assert drawing is not None and "<svg" in inline_svg(drawing)


def test_no_heat_map_of_overheads_that_do_not_exist(synthetic: ModuleType, tmp_path: Path) -> None:
    factors = {"network": ["none", "delay=1ms"], "launcher": ["bare", "podman"]}
    maker = synthetic.StudyMaker("coarse", factors, {"network": "none", "launcher": "bare"})
    for number, network, launcher in itertools.product(range(1, 6), *factors.values()):
        run = maker.run("x", {}, {"network": network, "launcher": launcher}, number)
        maker.result(run, "seconds", 10.0, "s")
    summary = summarize(maker.write(tmp_path))
    rows = [row for row in summary.rows if row.metric.name == "seconds"]
    assert all(row.overhead and row.overhead.value is None for row in rows if row.verdict)
    assert draw_heat(summary, rows) is None


def test_the_stack_is_the_mean_shares(drawings: dict[str, Drawing]) -> None:
    drawing = drawings["stack-xrootd"]
    shares: dict[object, float] = {}
    for cell in cells(drawing):
        shares[cell["condition"]] = shares.get(cell["condition"], 0) + float(
            str(cell["share_mean"])
        )
    assert len(shares) == 10
    assert list(shares.values()) == pytest.approx([1.0] * 10)
    svg = inline_svg(drawing)
    assert all(word in svg for word in ("computation", "communication", "initialization", "(%)"))


def test_many_levels_are_thinned_and_the_caption_says_so(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    large = summarize(synthetic.large(runs=300, conditions=60).write(tmp_path))
    drawing = draw_figures(list_factor_draws(large, "xrootd"))[0]
    assert "Of more than 24 levels every few are shown." in drawing.caption
    assert len(drawing.rows) == 120  # two metrics
