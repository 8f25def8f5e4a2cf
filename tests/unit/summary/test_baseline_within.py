"""[baseline] within: each level of a factor is compared with the baseline at that level."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.summary.study_maker import StudyMaker

from steelyard.analysis.report.answer import describe_answer
from steelyard.analysis.report.phrases import describe_level
from steelyard.analysis.report.tables import format_baseline
from steelyard.analysis.report.terminal_text import format_summary
from steelyard.analysis.summary.summary import Summary, summarize

SIZES, THREADS = (200, 400), (1, 2)
# Seconds of a run: twice as fast with two threads at 200, 1.6 times at 400.
SECONDS = {(200, 1): 10.0, (200, 2): 5.0, (400, 1): 40.0, (400, 2): 25.0}


def made(folder: Path, baseline: dict[str, object]) -> Summary:
    maker = StudyMaker("sizes", {"size": SIZES, "threads": THREADS}, baseline)
    for repeat in range(1, 11):
        for size in SIZES:
            for threads in THREADS:
                run = maker.run("app", {}, {"size": size, "threads": threads}, repeat)
                noise = 1 + 0.001 * ((7 * repeat + size + threads) % 5 - 2)
                maker.result(run, "seconds", SECONDS[size, threads] * noise, "s")
    return summarize(maker.write(folder))


@pytest.fixture
def within(tmp_path: Path) -> Summary:
    """Its baseline names no size, as the plan of a study with within = ["size"] does."""
    return made(tmp_path, {"threads": 1})


def test_each_size_has_its_own_baseline(within: Summary) -> None:
    assert {group.label: group.baseline_label for group in within.groups} == {
        "size=200, threads=1": "size=200, threads=1",
        "size=200, threads=2": "size=200, threads=1",
        "size=400, threads=1": "size=400, threads=1",
        "size=400, threads=2": "size=400, threads=1",
    }
    found = {r.group.label: r.overhead for r in within.compared_rows(primary=True)}
    assert found.keys() == {"size=200, threads=2", "size=400, threads=2"}
    shares = [found[label].value for label in sorted(found) if found[label] is not None]
    assert shares == pytest.approx([-0.5, -0.375], abs=0.002)


def test_without_it_all_sizes_have_one_baseline(tmp_path: Path) -> None:
    summary = made(tmp_path, {"size": 200, "threads": 1})
    found = {r.group.label: r.overhead for r in summary.compared_rows(primary=True)}
    worse = found["size=400, threads=2"]
    assert len(found) == 3
    assert worse is not None and worse.value == pytest.approx(1.5, abs=0.01)


def test_the_tests_are_corrected_for_all_comparisons(within: Summary) -> None:
    families = [row for row in within.compared_rows(primary=True) if row.p is not None]
    assert len(families) == 2  # Holm's correction is over both sizes


def test_a_sentence_names_the_size_at_which_both_were_measured(within: Summary) -> None:
    first, second = describe_answer(within)[:2]
    assert first.startswith("With threads=2 instead of 1 at size=200, app takes 50.00 % less time")
    assert second.startswith("With threads=2 instead of 1 at size=400, app takes 37.50 % less time")
    assert format_baseline(within.data.meta) == "threads=1 at each level of size"
    text = format_summary(within, [])
    assert "baseline: threads=1 at each level of size\n" in text
    assert text.count("(baseline)") == 2


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        ("nodes", "on 4 nodes instead of 1"),
        ("tasks_per_node", "with 4 tasks per node instead of 1"),
        ("cpus_per_task", "with 4 processors per task instead of 1"),
        ("clients", "with 4 clients instead of 1"),
    ],
)
def test_sizes_of_a_job_have_words(factor: str, words: str) -> None:
    assert describe_level(factor, "4", "1") == words
    assert describe_level(factor, "1").split()[1:3] == ["1", words.split()[2].removesuffix("s")]
