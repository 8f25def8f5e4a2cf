"""The answer where nothing, or little, can be compared: true words for each case."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.history.session_extracts import read_extract
from steelyard.analysis.report.answer import describe_answer, describe_elapsed_times, is_noisy
from steelyard.analysis.report.export import row_document
from steelyard.analysis.report.links import run_anchors
from steelyard.analysis.report.phrases import describe_between
from steelyard.analysis.report.tables import build_metric_table, build_request_table
from steelyard.analysis.report.terminal_text import format_summary
from steelyard.analysis.stats.overhead import Overhead
from steelyard.analysis.summary.scaling import build_scaling_curves
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands.cli import main

RUNS = 6


def made(synthetic: ModuleType, levels: list[int], **run: Any) -> Any:
    """Six runs a level, with energy."""
    factors = {"clients": levels} if levels else {}
    maker = synthetic.StudyMaker("few", factors, {"clients": levels[0]} if levels else {})
    for number in range(RUNS):
        for level in levels or [0]:
            condition = {"clients": level} if levels else {}
            key = maker.run("app", {}, condition, number + 1, **run)
            if not run:
                maker.result(key, "seconds", 3 + level + number / 100, "s")
                maker.record(key, "n1", 10.0, energy_j=900.0 + number)
    return maker


def test_one_condition_has_its_mean_and_its_energy_told(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    words = describe_answer(summarize(made(synthetic, []).write(tmp_path)))
    assert words == [
        (
            "Nothing was compared: only one condition has values. "
            "app: seconds 3.025 ± 0.020 s, n = 6."
        ),
        "6 of 6 runs gave a result.",
        "Energy, compared with nothing: app: energy_j 902.5 ± 2.0 J, n = 6.",
    ]


@pytest.mark.parametrize("state", ["failed", "planned"])
def test_without_results_nobody_speaks_of_a_missing_condition(
    state: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    summary = summarize(made(synthetic, [1, 2], state=state).write(tmp_path))
    assert describe_answer(summary)[:2] == [
        "No run has given a result that counts: there is nothing to compare.",
        "0 of 12 runs gave a result.",
    ]
    assert "app\n  no values\n" in format_summary(summary, [])


def test_without_factors_nothing_is_called_a_baseline(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    page = tmp_path / "r.html"
    assert main(["report", str(made(synthetic, []).write(tmp_path)), "-o", str(page)]) == 0
    text = page.read_text("utf-8")
    assert ">all runs</a>" in text
    assert "all runs (baseline)" not in text


def test_of_few_runs_outliers_are_not_said_to_be_none(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = synthetic.StudyMaker("two", {"clients": [1, 2]}, {"clients": 1})
    for level in (1, 2):
        maker.result(maker.run("app", {}, {"clients": level}, 1), "seconds", 3.0, "s")
    page = tmp_path / "r.html"
    assert main(["report", str(maker.write(tmp_path)), "-o", str(page)]) == 0
    text = page.read_text("utf-8")
    assert "Outliers are looked for from 5 runs on." in text
    assert "No outliers" not in text
    table = text[text.index("<caption>app: seconds (s)</caption>") :]
    row = table[table.index(">clients=2</a>") :]
    cells = re.findall(r"<td>([^<]*)</td>", row[: row.index("</tr>")])
    assert cells == [
        "1",
        "3.00",
        "–",
        "&lt; 95 %",
        "3.00",
        "–",
        "–",
        "3.00",
        "3.00",
        "–",
        "0",
        "0",
        "0",
    ]


def test_cancelled_runs_are_told_apart_from_failed_ones(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = synthetic.StudyMaker("stopped", {"clients": [1, 2]}, {"clients": 1})
    for clients in (1, 2):
        for number, state in enumerate(("completed",) * 3 + ("failed", "cancelled", "cancelled")):
            key = maker.run("x", {}, {"clients": clients}, number + 1, state=state)
            if state == "completed":
                maker.result(key, "seconds", 3.0 + number * clients / 100, "s")
    folder, page = maker.write(tmp_path), tmp_path / "r.html"
    summary = summarize(folder)
    assert [(g.counts.failed, g.counts.cancelled) for g in summary.groups] == [(1, 2), (1, 2)]
    assert format_summary(summary, []).startswith(
        "stopped: 6 of 12 runs completed, 2 failed, 4 cancelled\n"
    )
    assert dict(build_request_table(summary).rows)["… cancelled"] == "4"
    rows = [row for row in summary.rows if row.metric.name == "seconds"]
    _, table = build_metric_table(rows, run_anchors(summary))
    assert table.headings[-4:] == ("Failed", "Invalid", "No value", "Cancelled")
    assert [row[-4:] for row in table.rows] == [("1", "0", "0", "2")] * 2
    assert row_document(rows[0])["failed"] == 1 and row_document(rows[0])["cancelled"] == 2
    (finding,) = (one for one in find_all(summary) if one.kind.code == "SY01")
    assert finding.text == "6 of 12 runs gave no result: 4 cancelled, 2 failed."
    assert main(["report", str(folder), "-o", str(page)]) == 0
    assert "cancelled: " in page.read_text("utf-8")


# Figures of six runs each; metric with unit, the better direction; the reported text.
SPREAD = (-0.05, -0.03, -0.01, 0.01, 0.03, 0.05)


@pytest.mark.parametrize(
    ("metric", "unit", "better", "factor", "spread", "words"),
    [
        ("seconds", "s", "lower", 20, 1, "takes 20.0 times as long (19.1 to 21.0 times)"),
        ("mops", "Mop/s", "higher", 20, 1, "computes 20.0 times as fast (19.1 to 21.0 times)"),
        ("mops", "Mop/s", "higher", 0.5, 1, "computes 50.0 % slower (47.5 to 52.4 %)"),
        ("rate", "bytes_per_s", "higher", 0.5, 1, "transfers data 50.0 % slower (47.5 to 52.4 %)"),
        ("rate", "files_per_s", "higher", 0.5, 1, "reaches 50.0 % fewer files/s (47.5 to 52.4 %)"),
        ("size", "bytes", "lower", 0.5, 1,
         "has 50.0 % lower size (47.5 to 52.4 %), which is better"),
        ("seconds", "s", "lower", 0.97, 1, "differs little: at most 1.8 % worse or 7.6 % better"),
        ("mops", "Mop/s", "higher", 0.97, 1, "differs little: at most 7.6 % worse or 1.8 % better"),
        ("count", "1", None, 0.97, 1, "differs little: at most 7.6 % to either side"),
        ("mops", "Mop/s", "higher", 0.9, 4,
         "varies too much to tell: it computes 26 % slower to 10 % faster"),
        ("seconds", "s", "lower", 1.2, 14,
         "varies too much to tell: it takes 0.6 to 2.5 times as long"),
    ],
)  # fmt: skip
def test_the_answer_names_figure_and_side(
    metric: str,
    unit: str,
    better: str | None,
    factor: float,
    spread: float,
    words: str,
    synthetic: ModuleType,
    tmp_path: Path,
) -> None:
    """A possible gain is not reported as a cost; twice as much and more is reported as a factor."""
    maker = synthetic.StudyMaker("one", {"clients": [1, 2]}, {"clients": 1})
    for clients, mean in ((1, 100.0), (2, 100.0 * factor)):
        for number, part in enumerate(SPREAD):
            key = maker.run("app", {}, {"clients": clients}, number + 1)
            turn = SPREAD[(number + 3) % len(SPREAD)] if clients == 2 else part
            maker.result(key, metric, mean * (1 + spread * turn), unit, better)
    assert (
        describe_answer(summarize(maker.write(tmp_path)))[0]
        == f"With 2 clients instead of 1, app {words}."
    )


def test_whole_runs_are_told_beside_the_main_figure(synthetic: ModuleType, tmp_path: Path) -> None:
    """As of a guest that computes as fast as its host, and starts programs slowly."""
    maker = synthetic.StudyMaker("start", {"clients": [1, 2]}, {"clients": 1})
    for clients, start_s in ((1, 10.0), (2, 30.0)):
        for number, part in enumerate(SPREAD):
            key = maker.run(
                "app", {}, {"clients": clients}, number + 1, elapsed_s=start_s * (1 + part)
            )
            maker.result(key, "mops", 100 * (1 - part), "Mop/s", "higher")
    summary = summarize(maker.write(tmp_path))
    assert describe_answer(summary)[0] == (
        "With 2 clients instead of 1, app differs little: at most 4.8 % worse or 5 % better."
    )
    assert describe_elapsed_times(summary) == [
        "With 2 clients instead of 1, app takes 3.00 times as long (2.86 to 3.15 times)."
    ]


@pytest.mark.parametrize(
    ("base", "ours", "words"),
    [
        (1000.0, 980.0, "instead of 1, app has exactly 2.00 % lower size, which is better."),
        (1000.0, 1000.0, "instead of 1, app has exactly the same size."),
    ],
)
def test_the_answer_says_that_a_count_did_not_vary(
    base: float, ours: float, words: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = synthetic.StudyMaker("counts", {"clients": [1, 2]}, {"clients": 1})
    for number in range(RUNS):
        for level, value in ((1, base), (2, ours)):
            run = maker.run("app", {}, {"clients": level}, number + 1, block=number + 1)
            maker.result(run, "size", value, "bytes", "lower")
    text = " ".join(describe_answer(summarize(maker.write(tmp_path))))
    assert words in text


def test_an_interval_of_slower_runs_has_no_faster_end(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Among many comparisons one misses 0 by chance: 15 to 45 % longer is not 15 % less.

    From p = 0.5 on it is no "perhaps", as in the verdict of the table.
    """
    rows = summarize(made(synthetic, [1, 2]).write(tmp_path)).compared_rows(primary=True)
    (row,) = (row for row in rows if row.metric.name == "seconds")
    overhead = Overhead(0.3, 0.15, 0.45, RUNS, RUNS, "Fieller")
    words = is_noisy(replace(row, overhead=overhead, p=0.7))
    assert words == "is not shown to differ (15 to 45 %), p = 0.7"


@pytest.mark.parametrize(
    ("low", "high", "words"),
    [
        (-0.3, 0.99, "takes 30 % less to 99 % more time"),
        (-0.997, 15.0, "takes 0.003 to 16 times as long"),
        (-1.0, 15.0, "takes at most 16 times as long"),
        (-1.2, 15.0, "takes at most 16 times as long"),
    ],
)
def test_both_ends_of_an_interval_are_percent_or_factors(
    low: float, high: float, words: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    """It was `takes 100 % less time to 16 times as long`."""
    rows = summarize(made(synthetic, [1, 2]).write(tmp_path)).compared_rows(primary=True)
    (row,) = (row for row in rows if row.metric.name == "seconds")
    assert (
        describe_between(replace(row, overhead=Overhead(0.3, low, high, 6, 6, "Fieller"))) == words
    )


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (1, "No energy can be compared: 1 run each."),
        (2, "No energy can be compared: 2 runs each."),
    ],
)
def test_energy_of_few_runs_cannot_be_compared(
    runs: int, words: str, synthetic: ModuleType, tmp_path: Path
) -> None:
    """Without intervals no bounds can be reported: the report ended with a traceback."""
    maker = synthetic.StudyMaker("few", {"clients": [1, 2]}, {"clients": 1})
    for level in (1, 2):
        for number in range(runs):
            key = maker.run("app", {}, {"clients": level}, number + 1)
            maker.result(key, "seconds", 3.0 * level + number, "s")
            maker.record(key, "n1", 10.0, energy_j=900.0 * level + number)
    assert describe_answer(summarize(maker.write(tmp_path)))[-1] == words


def test_what_a_program_says_itself_comes_before_its_time(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    """Although its time differs more, and its name is first by the alphabet."""
    maker = synthetic.StudyMaker("own", {"nodes": [1, 2]}, {"nodes": 1})
    maker.scaling = {"kind": "strong", "over": ["nodes"]}
    for nodes in (1, 2):
        for number, part in enumerate(SPREAD):
            key = maker.run("app", {}, {"nodes": nodes}, number + 1, block=number + 1)
            maker.result(key, "seconds", 10.0 * nodes**2 * (1 + part / 10), "s", "lower")
            maker.result(key, "steps", 10.0 * nodes * (1 + part / 10), "1/s", "higher")
    folder = maker.write(tmp_path)
    summary = summarize(folder)
    (variant,) = summary.variants
    shown = [one.name for one in summary.data.metrics[variant] if one.is_primary]
    assert shown == ["steps", "seconds"]
    (text, *_) = describe_answer(summary)
    assert text.index("app (steps)") < text.index("app (seconds)")
    assert [one.metric for one in read_extract(folder).figures[:2]] == ["steps", "seconds"]
    assert [one.metric.name for one in build_scaling_curves(summary)] == ["steps", "seconds"]
