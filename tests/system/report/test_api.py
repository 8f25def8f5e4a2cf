"""`steelyard.analysis.load`, and the example in docs/analysis.md, line by line."""

from __future__ import annotations

import doctest
import importlib.util
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

import steelyard.analysis
from steelyard.analysis.base.errors import MissingError, UsageError
from steelyard.analysis.report.export import document, row_document
from steelyard.analysis.summary.summary import Summary

PAGE = Path(__file__).resolve().parents[3] / "docs" / "analysis.md"


def test_the_worked_example_gives_what_the_page_says(
    energy_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(energy_folder.parent)
    result = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted >= 15


@pytest.mark.parametrize("end", [".study", "", ".toml"])
def test_a_study_is_found_by_folder_name_and_file(demo_folder: Path, end: str) -> None:
    with steelyard.analysis.load(demo_folder.with_suffix(end)) as study:
        assert study.folder == demo_folder
        assert len(study.table("runs").fetchall()) == 40


def test_means_are_those_of_the_report(demo_folder: Path, demo_summary: Summary) -> None:
    with steelyard.analysis.load(demo_folder) as study:
        relation = study.means
        found = [dict(zip(relation.columns, row, strict=True)) for row in relation.fetchall()]
    key = ("variant", "condition", "metric")
    wanted = sorted(map(row_document, demo_summary.rows), key=lambda row: [row[k] for k in key])
    assert sorted(found, key=lambda row: [row[k] for k in key]) == wanted
    assert document(demo_summary, [])["rows"] == list(map(row_document, demo_summary.rows))


def test_values_name_their_runs_and_mark_outliers(demo_folder: Path) -> None:
    with steelyard.analysis.load(demo_folder) as study:
        marked = study.values.filter("outlier AND metric = 'seconds'").fetchall()
        runs = {run for (run,) in study.table("runs").project("run_id").fetchall()}
        assert {row[0] for row in study.values.fetchall()} <= runs
    assert [row[0] for row in marked] == ["filesystem-d00f3584-004"]


def test_what_is_not_there_is_said_with_what_is(demo_folder: Path, tmp_path: Path) -> None:
    with steelyard.analysis.load(demo_folder) as study:
        with pytest.raises(UsageError, match="no table 'run'; there are .*runs"):
            study.table("run")
        with pytest.raises(
            UsageError, match="'clients=3'; the study has:\n  clients=1\n  clients=2"
        ):
            study.row("hpl N=4000", "clients=3", "gflops")
        with pytest.raises(UsageError, match="no speed of 'hpl N=4000' .* conditions: clients=1;"):
            study.row("hpl N=4000", "clients=1", "speed")
        with pytest.raises(UsageError, match="no variant 'hpl'; there are .*hpl N=4000"):
            study.figures("hpl")
    with pytest.raises(UsageError, match=r"no study's folder there, nor .*absent\.study"):
        steelyard.analysis.load(tmp_path / "absent")
    (tmp_path / "new.study").mkdir()
    with pytest.raises(MissingError, match="run `steelyard collect` first"):
        steelyard.analysis.load(tmp_path / "new")


def test_without_pandas_the_relations_are_left(
    demo_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with steelyard.analysis.load(demo_folder) as study:
        with pytest.raises(MissingError, match="pip install pandas"):
            study.frame("means")
        assert study.means.limit(1).fetchall()


def test_computed_tables_are_in_sql_and_in_the_list(demo_folder: Path) -> None:
    with steelyard.analysis.load(demo_folder) as study:
        names = study.tables
        assert {"means", "values", "slopes", "shares", "findings", "runs", "samples"} <= set(names)
        joined = study.sql("SELECT count(*) FROM means AS m JOIN values USING (variant, metric)")
        assert joined.fetchall()[0][0] > 0
        before = study.means
        assert study.table("means").fetchall() == before.fetchall()
        codes = study.table("findings").project("code").fetchall()
        assert [code for (code,) in codes] == [f.kind.code for f in study.findings]
        assert study.tables == names  # nothing of ours shows up beside them
        assert study.conditions == ["clients=1", "clients=2"]
        assert repr(study) == f"<study {demo_folder}>"


def test_a_notebook_shows_a_figure_and_not_its_numbers(demo_folder: Path) -> None:
    with steelyard.analysis.load(demo_folder) as study:
        drawing = study.figures("hpl N=4000")[0]
        assert drawing._repr_png_().startswith(b"\x89PNG")
        assert len(repr(drawing)) < 400


def test_a_condition_is_named_as_compare_takes_it(demo_folder: Path) -> None:
    with steelyard.analysis.load(demo_folder) as study:
        named = study.row("hpl N=4000", "clients=2", "gflops")
        assert study.row("hpl N=4000", {"clients": 2}, "gflops") is named
        assert named.group.condition == {"clients": 2}


def test_a_notebooks_last_line_is_short_as_text_and_a_table_as_html(demo_folder: Path) -> None:
    with steelyard.analysis.load(demo_folder) as study:
        summary = study.summary
        assert repr(summary) == (
            f"<summary of {summary.data.meta.study}: benchmarks: {len(study.variants)}, "
            f"conditions: {len(study.conditions)}, rows: {len(summary.rows)}>"
        )
        for one in (summary.data, summary.groups[0], *summary.rows):
            assert len(repr(one)) < 400
        page = ElementTree.fromstring(summary._repr_html_())
    rows = [[cell.text or "" for cell in row] for row in page]
    assert rows[0] == ["benchmark", "condition", "metric", "n", "mean", "against the baseline"]
    assert len(rows) == 1 + len(summary.rows)
    row = summary.row("hpl N=4000", "clients=2", "gflops")
    assert row is not None and row.verdict is not None and row.interval is not None
    (shown,) = (r for r in rows if r[:3] == ["hpl N=4000", "clients=2", "gflops"])
    assert (shown[3], shown[5]) == (row.format_n, row.verdict.text)
    assert float(shown[4].split()[0]) == pytest.approx(row.interval.mean, rel=0.01)


def test_text_of_a_user_is_no_html(demo_summary: Summary) -> None:
    row = demo_summary.rows[0]
    odd = replace(row, metric=replace(row.metric, name="<b>&"))
    page = replace(demo_summary, rows=[odd] * 101)._repr_html_()
    assert "&lt;b&gt;&amp;" in page and "<b>" not in page
    assert "1 more row:" in page
