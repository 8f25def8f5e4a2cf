"""Numbers of a study from its database, against an own calculation."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import duckdb
import pytest

from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.findings import registry as summary_findings
from steelyard.analysis.report import terminal_text as report_words
from steelyard.analysis.stats.overhead_verdict import Direction
from steelyard.analysis.store.database import SCHEMA_VERSION
from steelyard.analysis.summary.rows import Row
from steelyard.analysis.summary.summary import Summary, summarize

COPY = "filesystem test=large_file_copy"


def row(summary: Summary, variant: str, label: str, metric: str) -> Row:
    found = summary.row(variant, label, metric)
    assert found is not None
    return found


def test_a_run_is_one_sample_and_its_repetitions_are_averaged_first(
    demo_folder: Path, demo_summary: Summary
) -> None:
    with duckdb.connect(str(demo_folder / "study.duckdb"), read_only=True) as connection:
        figures = connection.execute(
            "SELECT run_id, value FROM results JOIN runs USING (run_id) "
            "WHERE variant = ? AND condition_label = 'clients=2' AND metric = 'seconds'",
            [COPY],
        ).fetchall()
    by_run = defaultdict(list)
    for run_id, value in figures:
        by_run[run_id].append(value)
    assert {len(values) for values in by_run.values()} == {10}  # 5 iterations x 2 clients
    means = {run_id: statistics.fmean(values) for run_id, values in by_run.items()}
    found = row(demo_summary, COPY, "clients=2", "seconds")
    assert found.n == 5
    assert dict(zip(found.run_ids, found.values, strict=True)) == pytest.approx(means)
    assert found.interval is not None
    assert found.interval.mean == pytest.approx(statistics.fmean(means.values()))
    assert demo_summary.data.repeated[COPY] == 10


def test_overhead_is_of_the_means_against_the_baseline_of_the_same_variant(
    demo_summary: Summary,
) -> None:
    found = row(demo_summary, COPY, "clients=2", "seconds")
    base = row(demo_summary, COPY, "clients=1", "seconds")
    assert base.verdict is None
    assert found.overhead is not None and found.verdict is not None
    expected = statistics.fmean(found.values) / statistics.fmean(base.values) - 1
    assert found.overhead.value == pytest.approx(expected)
    assert found.verdict.direction is Direction.WORSE
    assert found.verdict.text.startswith("slower by 37 % (")
    hpl = row(demo_summary, "hpl N=4000", "clients=2", "gflops")
    assert hpl.verdict is not None
    assert hpl.verdict.direction is Direction.NOT_SHOWN


def test_a_failed_run_is_counted_and_in_no_mean(demo_summary: Summary) -> None:
    found = row(demo_summary, "filesystem test=small_file_copy", "clients=2", "seconds")
    counts = found.group.counts
    assert (counts.planned, counts.completed, counts.failed, counts.waiting) == (5, 4, 1, 0)
    assert found.n == 4
    elapsed = row(demo_summary, "filesystem test=small_file_copy", "clients=2", "elapsed_s")
    assert elapsed.n == 4  # the failed run has an elapsed time, which is none of the benchmark's


def test_what_was_not_measured_is_missing_and_never_0(demo_summary: Summary) -> None:
    found = row(demo_summary, COPY, "clients=1", "energy_j")
    assert (found.n, found.missing) == (0, 5)
    assert found.interval is None and found.median is None and found.minimum is None
    other = row(demo_summary, COPY, "clients=2", "energy_j")
    assert other.verdict is not None
    assert other.verdict.text == "cannot be judged: no values"


def test_an_outlier_is_marked_and_stays_in_the_mean(demo_summary: Summary) -> None:
    found = row(demo_summary, "filesystem test=small_file_write", "clients=1", "seconds")
    assert [found.run_ids[i][-3:] for i in found.outliers.indices] == ["004"]
    assert found.interval is not None
    assert found.interval.mean == pytest.approx(statistics.fmean(found.values))
    assert found.n == 5


def test_a_study_without_factors_tells_its_means(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("plain", {}, {})
    for number, seconds in enumerate((1.0, 2.0, 3.0), start=1):
        maker.result(maker.run("x", {}, {}, number), "seconds", seconds, "s")
    summary = summarize(maker.write(tmp_path))
    text = report_words.format_summary(summary, [])
    assert "baseline: none, since there are no factors" in text
    assert "seconds    2.0 (0.0 … 6.9) s, n = 3" in text
    assert "cannot be judged" not in text and "(baseline)" not in text
    assert not [f for f in summary_findings.find_all(summary) if f.kind.code == "SY14"]


def test_invalid_runs_and_nan_are_left_out_and_counted(
    synthetic: ModuleType, tmp_path: Path
) -> None:
    maker = synthetic.StudyMaker("invalid", {"clients": [1]}, {"clients": 1})
    for number in range(1, 5):
        more = {"valid": False, "invalid_reason": "packets dropped"} if number == 4 else {}
        run = maker.run("x", {}, {"clients": 1}, number, **more)
        maker.result(run, "seconds", [1.0, 2.0, None, 4.0][number - 1], "s")
    found = row(summarize(maker.write(tmp_path)), "x", "clients=1", "seconds")
    assert found.values == (1.0, 2.0)
    assert (found.missing, found.group.counts.invalid) == (1, 1)


def test_a_baseline_of_some_factors_is_met_level_by_level(thesis_folder: Path) -> None:
    summary = summarize(thesis_folder)
    label = "node_type=virtual, filesystem=NFS, concurrent_nodes=3"
    found = row(summary, COPY, label, "seconds")
    assert found.group.baseline_label == "node_type=physical, filesystem=NFS, concurrent_nodes=3"
    assert found.verdict is not None
    assert (
        found.verdict.text == "2.59 times as long (2.55 … 2.63), n = 35 + 35, paired in 35 blocks "
        "(the two sides did not take turns)"
    )
    place = summary.labels.index(label)
    assert summary.labels[place - 1] == found.group.baseline_label


def test_npb_and_xhpl_of_the_thesis(synthetic: ModuleType, tmp_path: Path) -> None:
    summary = summarize(synthetic.thesis_hpc().write(tmp_path))
    words = {
        row.group.variant.split("=")[1]: (row.verdict.text, row.verdict.direction)
        for row in summary.compared_rows(primary=True)
        if row.verdict is not None
    }
    assert words["XHPL"] == (
        "lower by 53.26 % (53.19 … 53.32), n = 35 + 35, paired in 35 blocks",
        Direction.WORSE,
    )
    assert words["EP"][1] is Direction.BETTER  # the thesis: virtual nodes had newer processors


def test_a_study_without_values_has_a_summary(synthetic: ModuleType, tmp_path: Path) -> None:
    maker = synthetic.StudyMaker("waiting", {"clients": [1, 2]}, {"clients": 1})
    for clients in (1, 2):
        maker.run("x", {}, {"clients": clients}, 1, state="planned")
    summary = summarize(maker.write(tmp_path))
    assert summary.rows == []
    assert [group.counts.waiting for group in summary.groups] == [1, 1]


def test_a_missing_database_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="run `steelyard collect` first"):
        summarize(tmp_path)


def test_another_schema_version_is_refused(synthetic: ModuleType, tmp_path: Path) -> None:
    folder = synthetic.demo("newer").write(tmp_path)
    with duckdb.connect(str(folder / "study.duckdb")) as connection:
        connection.execute("UPDATE meta SET schema_version = 99")
    with pytest.raises(
        UsageError, match=f"schema version 99, this Steelyard knows {SCHEMA_VERSION}:"
    ):
        summarize(folder)


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "study.duckdb").write_text("not a database", encoding="utf-8")
    with pytest.raises(
        MissingError, match="is damaged, or no database of a study: .* Move it away and run"
    ):
        summarize(tmp_path)
