"""Shares of shared nodes' joules as metrics of every run: only on request."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.analysis.report.answer import describe_energy
from steelyard.analysis.stats.basics import Interval
from steelyard.analysis.stats.overhead_verdict import Direction
from steelyard.analysis.store.energy_shares import NOT_KNOWN, IdlePower
from steelyard.analysis.summary.shared_node_energy import Bounds, make_bounds_verdict
from steelyard.analysis.summary.summary import Summary, summarize
from steelyard.wrappers.base.errors import UsageError
from steelyard.wrappers.base.options import idle_power
from steelyard.wrappers.commands import cli

from .study_maker import StudyMaker

VARIANT = "app"
LOW, HIGH = "energy_low_j", "energy_high_j"


def shared_samples(maker: StudyMaker, run: tuple[str, str], node: str, own: float) -> None:
    """10 s at 160 W, 8 CPUs busy, `own` of them the run's."""
    for second in range(11):
        maker.rows["samples"].append(
            {
                "run_id": run[0],
                "attempt": run[1],
                "node": node,
                "unix_s": maker.clock + second,
                "elapsed_s": second,
                "cpu_s": own * second,
                "energy_j": 160.0 * second,
                "node_cpu_s": 8.0 * second,
            }
        )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One CPU against four, two nodes each; the last run's second node left no whole record."""
    maker = StudyMaker("shared", {"cpus": [1, 4]}, {"cpus": 1})
    for repeat in (1, 2, 3):
        for cpus in (1, 4):
            run = maker.run("app", {}, {"cpus": cpus}, repeat, nodes=("n1", "n2"))
            for node in ("n1", "n2"):
                whole = (repeat, cpus, node) != (3, 4, "n2")
                maker.record(run, node, 10.0, energy_j=1600.0, exclusive=False, complete=whole)
                shared_samples(maker, run, node, cpus)
    return maker.write(tmp_path)


def values(summary: Summary, label: str, metric: str) -> list[float]:
    row = summary.row(VARIANT, label, metric)
    return [] if row is None else list(row.values)


def test_nobody_is_told_who_has_not_asked(folder: Path) -> None:
    summary = summarize(folder)
    assert summary.row(VARIANT, "cpus=1", LOW) is None
    assert values(summary, "cpus=1", "energy_j") == []


def test_the_sum_over_nodes_of_runs_whose_records_are_whole(folder: Path) -> None:
    summary = summarize(folder, idle=IdlePower(elsewhere_w=60.0))
    # Of 1,000 J above idle on each of two nodes; 2 % and 20 ms of the CPU time are unsure.
    low, high = (2 * 1000 * 4 / (4 + 3 * 4.18), 2 * 1000 * 12 / (12 + 3.82))
    assert values(summary, "cpus=4", LOW) == pytest.approx([low] * 2)
    assert values(summary, "cpus=4", HIGH) == pytest.approx([high] * 2)
    assert len(values(summary, "cpus=1", LOW)) == 3
    assert values(summary, "cpus=4", "energy_j") == []  # as it was: nobody had a node alone


def test_they_are_compared_like_any_metric(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["compare", str(folder), "cpus=1", "cpus=4", "--energy-shares"]
    assert cli.main([*asked, "--idle-power", "60"]) == 0
    text = capsys.readouterr().out
    assert LOW in text and HIGH in text
    assert cli.main(["compare", str(folder), "cpus=1", "cpus=4", "--idle-power", "60"]) != 0
    assert "add --energy-shares" in capsys.readouterr().err


def verdict_words(folder: Path, idle_w: float, label: str = "cpus=4") -> tuple[Direction, str]:
    row = summarize(folder, idle=IdlePower(elsewhere_w=idle_w)).row(VARIANT, label, LOW)
    assert row is not None and row.verdict is not None
    return row.verdict.direction, row.verdict.text


def test_bounds_that_overlap_show_no_difference(folder: Path) -> None:
    """At least 484 J against at most 611: though the lows differ by far, the jobs' need not."""
    direction, text = verdict_words(folder, 60.0)
    low = 2 * 4 / (4 + 3 * 4.18) / (2 * 3 / (3 + 6.82))
    high = 2 * 12 / (12 + 3.82) / (2 * 1 / (1 + 3 * 7.18))
    assert direction is Direction.NOT_SHOWN
    assert f"bounds: {low:.1f} … {high:.0f} times" in text


def interval(mean: float, half: float = 1.0) -> Interval:
    return Interval(mean, mean - half, mean + half, 5)


@pytest.mark.parametrize(
    ("ours", "base", "direction", "text"),
    [
        ((300, 400), (100, 200), Direction.WORSE, "higher: bounds: 1.5 … 4.1 times, n = 5 + 5"),
        ((100, 200), (300, 400), Direction.BETTER, "lower: bounds: −75 … −33 %, n = 5 + 5"),
        ((100, 201), (200, 400), Direction.NOT_SHOWN, "not shown to differ (bounds: −75 … 2 %)"),
        ((100, 200), (0, 50), Direction.WORSE, "higher: bounds: 94.1 % and more, n = 5 + 5"),
        ((0, 0), (0, 0), Direction.NOT_SHOWN, "not shown to differ (bounds: −100.0 % and more)"),
    ],
)
def test_a_difference_is_shown_where_a_low_is_above_the_others_high(
    ours: tuple[float, float], base: tuple[float, float], direction: Direction, text: str
) -> None:
    bounds = [Bounds(interval(low), interval(high)) for low, high in (ours, base)]
    found = make_bounds_verdict(*bounds)
    assert found.direction is direction and text in found.text


def test_one_run_alone_has_no_verdict() -> None:
    once = Interval(5.0, None, None, 1)
    assert (
        make_bounds_verdict(Bounds(once, once), Bounds(once, once)).direction is Direction.UNKNOWN
    )
    assert (
        make_bounds_verdict(Bounds(None, None), Bounds(once, once)).direction is Direction.UNKNOWN
    )


def test_the_answer_tells_the_jobs_own(folder: Path) -> None:
    told = describe_energy(summarize(folder, idle=IdlePower(elsewhere_w=60.0)))
    assert told.startswith(
        f"Energy of the jobs alone, above idle: {VARIANT} with cpus=4 instead of 1: not shown"
    )


def test_idle_power_of_some_nodes_and_of_all_others() -> None:
    assert idle_power(None) == NOT_KNOWN
    assert idle_power("62") == IdlePower({}, 62.0)
    assert idle_power("c1=62,c2=70.5,80") == IdlePower({"c1": 62.0, "c2": 70.5}, 80.0)


@pytest.mark.parametrize("text", ["", "x", "c1=", "=5", "nan", "-1", "1e9", "c1=1,c1=2", "1,2"])
def test_what_is_no_power_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(UsageError, match="--idle-power"):
        idle_power(text)
