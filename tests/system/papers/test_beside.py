"""`report STUDY --beside PAPER`: claims with verdicts, printed numbers with ours, figures."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import fmean
from typing import Any

import duckdb
import pytest

from steelyard.analysis.figures.drawing import inline_svg
from steelyard.analysis.papers.claims_figure import draw_arrow
from steelyard.analysis.papers.conditions import kernel_facts
from steelyard.analysis.papers.jungels2012.thesis_study import FOLDER, read_measurements
from steelyard.analysis.papers.report import PAPERS, ComparisonReport
from steelyard.analysis.papers.verdicts import FAILS, HOLDS, KINDS, ORDER, UNKNOWN, WORDS
from steelyard.analysis.report.figures import draw_figures
from steelyard.jobscripts.example_studies import examples
from steelyard.wrappers.commands.cli import main
from steelyard.wrappers.commands.report import PAPERS as PAPERS_OF_COMMAND

from ..report.test_page import Checker
from . import paper_studies
from .paper_studies import beside, outcomes


@pytest.fixture(scope="module")
def q3(tmp_path_factory: pytest.TempPathFactory) -> ComparisonReport:
    return beside(paper_studies.ruiz_q3(), "ruiz2015", tmp_path_factory.mktemp("q3"))


@pytest.mark.parametrize("name", PAPERS)
def test_what_a_paper_claims_and_prints_is_whole(name: str) -> None:
    paper = PAPERS[name]
    assert len({one.words for one in paper.claims}) == len(paper.claims)
    studies = {one.name for one in examples()}
    for claim in paper.claims:
        assert claim.kind in {*KINDS, *paper.kinds, WORDS} and claim.words and claim.place
        assert {*claim.studies} <= studies
        assert claim.kind == WORDS or claim.metrics or claim.kind == "throughput_share"
        assert claim.kind in (WORDS, ORDER) or (claim.low, claim.high) != (None, None)
        assert claim.kind != WORDS or claim.reading
    assert {value.study for value in paper.values} <= studies
    assert paper.contradictions


def test_the_command_knows_every_paper() -> None:
    assert list(PAPERS_OF_COMMAND) == list(PAPERS)


def test_claims_of_which_the_truth_is_known(q3: ComparisonReport) -> None:
    """By construction: CG +80 % (with 2 ms +20 %), LU +50 %, FT +2 %, EP and IS unchanged."""
    found = {words: outcome for words, (outcome, _) in outcomes(q3).items()}
    told = {words for words, outcome in found.items() if outcome == HOLDS}
    assert told == {
        "One container a machine with all its cores costs FT, EP and IS at most 5.97 %",
        "LU takes at least 30 % longer in containers",
        "CG takes longer in containers with TCP's usual least time-out",
        "With a least time-out of 2 ms CG still takes longer in containers",
        "A least time-out of 2 ms in place of 200 ms makes CG in containers faster",
        "CG loses more to containers than EP",
        "MPI_Init takes about 1,040 ms everywhere",  # of 10 s a tenth, without containers
    }
    assert sum(outcome == UNKNOWN for outcome in found.values()) == len(found) - len(told)


def test_what_is_missing_is_named(q3: ComparisonReport) -> None:
    found = outcomes(q3)
    reason = "no runs with kernel_release=3.16* or 3.2*; ruiz2015-q1.toml asks it"
    words = "From kernel 3.2 to 3.16 programs in containers become faster"
    assert found[words] == (UNKNOWN, reason)


def test_a_claim_of_several_needs_all_of_them(tmp_path: Path) -> None:
    maker = paper_studies.ruiz_q3(kernels=("ep", "is"))
    words = "One container a machine with all its cores costs FT, EP and IS at most 5.97 %"
    outcome, reason = outcomes(beside(maker, "ruiz2015", tmp_path))[words]
    assert outcome == UNKNOWN
    assert reason.startswith("no runs with kernel=ft; ruiz2015-q3.toml asks it; what is there: npb")


def test_an_interval_that_reaches_over_tells_nothing(tmp_path: Path) -> None:
    maker = paper_studies.ruiz_q3(spread=(0.5, 0.8, 1.0, 1.2, 1.5))
    found = outcomes(beside(maker, "ruiz2015", tmp_path))
    outcome, reason = found["LU takes at least 30 % longer in containers"]
    assert outcome == UNKNOWN and reason.startswith("the interval reaches over: npb kernel=lu")


def test_two_runs_tell_nothing(tmp_path: Path) -> None:
    maker = paper_studies.ruiz_q3(spread=(0.99, 1.01))
    report = beside(maker, "ruiz2015", tmp_path)
    (cg,) = [one for one in report.verdicts if one.claim.words.startswith("CG takes longer")]
    assert (cg.outcome, cg.evidence[0].low) == (UNKNOWN, None)
    assert "2 runs each" in cg.reason and "reaches over" not in cg.reason


def test_the_printed_size_is_told_beside_ours(q3: ComparisonReport) -> None:
    sizes = {one.claim.printed: one.size for one in q3.verdicts}
    assert sizes["180 % with 128 processes"] == "below the printed size"
    assert sizes["from 30 %"] == "above the printed size"
    (lu,) = [one for one in q3.verdicts if one.claim.words.startswith("LU takes")]
    assert lu.evidence[0].remark == "class=S for B, ranks_per_container=8 for 16"
    assert lu.evidence[0].value == pytest.approx(0.5)


def test_table_1_stands_beside_ours(tmp_path: Path) -> None:
    report = beside(paper_studies.ruiz_q2(), "ruiz2015", tmp_path)
    ours = {(*v.value.place, v.value.column): v for v in report.values if v.row}
    one = ours["container", "comm", "MG.C", "share_percent"]
    assert (one.value.printed, one.ours[0]) == (3.0, pytest.approx(30.0))
    one = ours["sm", "cpu", "CG.B", "time_ms"]
    assert (one.value.printed, one.ours[0]) == (4714.92, pytest.approx(7000.0))
    assert len(ours) == 2 * 2 * 3 * 2  # programs, configurations, parts, columns
    lacking = next(v for v in report.values if v.value.place[0] == "multinode")
    assert lacking.remark == "no runs with nodes=8"


def test_invalid_runs_are_in_no_number_beside_a_paper(tmp_path: Path) -> None:
    """One of 1,000 s is invalid: the mean of the other four is 0.995 of 5 s."""
    report = beside(paper_studies.kommeri_local(), "kommeri2016", tmp_path)
    found = {words: outcome for words, (outcome, _) in outcomes(report).items()}
    assert [words for words, outcome in found.items() if outcome == HOLDS] == [
        "Run time grows with the delay to the data",
        "75 ms prolong the run at 100 Mb/s",
        "75 ms raise a run's energy at 100 Mb/s",
        "Joules grow with run time",
    ]
    (over,) = [one for one in draw_figures(report.draws) if one.name == "kommeri2016-delay"]
    means = {(row[0], row[2]): (row[3], row[4]) for row in over.rows}
    assert means["seconds", 75.0] == (4, pytest.approx(0.995 * 5))
    assert means["energy_j", 0.0] == (5, pytest.approx(20.0))


def test_the_thesis_own_runs_stand_in_the_figure(tmp_path: Path) -> None:
    report = beside(paper_studies.jungels_hpc(), "jungels2012", tmp_path)
    (figure,) = [one for one in draw_figures(report.draws) if one.name == "jungels2012-cg"]
    printed = [row for row in figure.rows if row[1] == "printed"]
    series = [s for s in read_measurements().series if s.variant.startswith("npb kernel=CG")]
    assert {row[4] for row in printed} == {v for s in series for v in s.values}
    assert len([row for row in figure.rows if row[1] == "ours"]) == 10
    assert outcomes(report)["CG is slower on virtual nodes"][0] == HOLDS


def test_the_kept_means_are_those_of_the_printed_values() -> None:
    rows = {
        (row.group.variant, *map(str, row.group.condition.values())): row
        for row in read_measurements().summary.rows
        if row.interval and row.metric.name in ("total", "seconds")
    }
    kept: dict[tuple[str, ...], float] = {}
    with (FOLDER / "means_hpc.csv").open(newline="", encoding="utf-8") as lines:
        for one in csv.DictReader(lines):
            name = one["benchmark"]
            variant = "hpl" if name == "XHPL" else f"npb kernel={name} class=B"
            kept[variant, one["node_type"]] = float(one["mean"])
    with (FOLDER / "means_files.csv").open(newline="", encoding="utf-8") as lines:
        for one in csv.DictReader(lines):
            place = (one["filesystem"], one["nodes_at_once"], one["node_type"])
            kept[f"filesystem test={one['test']}", *place] = float(one["mean"])
    assert kept.keys() == rows.keys()
    for key, mean in kept.items():  # the thesis has the arithmetic mean of rates, too
        assert mean == pytest.approx(fmean(rows[key].values), rel=1e-3)


def test_rates_in_turn_stand_stacked_beside_those_at_once(tmp_path: Path) -> None:
    """45 of 50 MB/s: its interval reaches over the 10 % that “close to” is read as."""
    report = beside(paper_studies.bourilkov_trees(), "bourilkov2012", tmp_path)
    words = "Clients at once reach rates close to their rates in turn, stacked (ROOT trees)"
    assert outcomes(report)[words][0] == UNKNOWN
    (figure,) = [one for one in draw_figures(report.draws) if one.name.startswith("bourilkov2012")]
    rates = [(row[1], row[2], row[4]) for row in figure.rows]
    turn, once = "clients=2, mode=sequential", "clients=2, mode=parallel"
    assert rates == [
        (turn, "client 1", pytest.approx(50e6)), (turn, "client 2", pytest.approx(50e6)),
        (once, "client 1", pytest.approx(45e6)), (once, "client 2", pytest.approx(45e6)),
    ]  # fmt: skip


def test_every_figure_can_be_put_into_a_page(q3: ComparisonReport) -> None:
    for one in draw_figures(q3.draws):
        assert "<svg" in inline_svg(one) and one.caption and len(one.rows[0]) == len(one.columns)


@pytest.mark.slow
def test_page_figures_and_tables_are_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    study = paper_studies.ruiz_q2().write(tmp_path)
    options = ["--beside", "ruiz2015", "--figures", "--format", "csv", "--export", "parquet,json"]
    assert main(["report", str(study), *options]) == 0
    words = capsys.readouterr().out
    assert "15 claims of Ruiz et al. 2015, by this study: holds: 0" in words
    assert max(map(len, words[words.index("15 claims") :].splitlines())) <= 80
    page = (tmp_path / "q2.ruiz2015.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(page)
    assert checker.faults == checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    assert {link[1:] for link in checker.links if link.startswith("#")} <= set(checker.ids)
    for text in ("Claims of Ruiz et al. 2015", "4714.92 ms", "4.7\u00a0% less", "Table 1 of Ruiz"):
        assert text in page.replace("&nbsp;", "\u00a0") or text.replace("\u00a0", " ") in page
    assert (tmp_path / "q2.ruiz2015.figures" / "ruiz2015-table-1.csv").is_file()
    tables = tmp_path / "q2.ruiz2015.tables"
    claims = duckdb.sql(f"SELECT verdict FROM '{tables}/claims.parquet'").fetchall()
    assert sorted(set(claims)) == [(UNKNOWN,), (FAILS,)]
    whole = json.loads((tables / "report.json").read_text(encoding="utf-8"))
    assert len(whole["beside"]["printed"]) == 108 and len(whole["beside"]["claims"]) == 15


def test_json_has_all_of_it(q3: ComparisonReport) -> None:
    found: dict[str, Any] = json.loads(json.dumps(q3.document()))["beside"]
    assert found["rule"].startswith("A claim holds when every 95 % interval")
    lu = next(one for one in found["claims"] if one["words"].startswith("LU takes"))
    assert (lu["verdict"], lu["printed"], lu["low"]) == (HOLDS, "from 30 %", 0.3)
    assert lu["seen"][0]["low"] < 0.5 < lu["seen"][0]["high"]
    assert [one["name"] for one in found["figures"]] == ["claims-ruiz2015"]


def test_a_preset_is_beside_no_paper(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "--preset", "jungels2012", "--beside", "ruiz2015"]) == 2
    assert "leave it out, or --beside ruiz2015" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["13.04 %", "873.986", "MB/s"])
def test_the_papers_own_errors_are_named(text: str) -> None:
    assert any(text in one.words for paper in PAPERS.values() for one in paper.contradictions)


def test_ruiz_table_1_contradicts_its_13_percent() -> None:
    """Redone from the printed milliseconds: MG.C in containers takes less, not 13.04 % more."""
    values = [v for v in PAPERS["ruiz2015"].values if v.column == "time_ms"]

    def total(configuration: str) -> float:
        parts = [v.printed for v in values if v.place[0] == configuration and v.place[2] == "MG.C"]
        return sum(part for part in parts if part is not None)

    assert total("container") / total("sm") - 1 == pytest.approx(-0.047, abs=5e-4)


def numbers_of(report: ComparisonReport, table: str) -> dict[tuple[str, str], tuple[float, float]]:
    """(row, column): (printed, ours) of a printed table."""
    return {
        (one.value.place[0], one.value.column): (one.value.printed, one.ours[0])
        for one in report.values
        if one.value.table.startswith(table) and one.row and one.ours[0] is not None
    }  # type: ignore[return-value]


def test_what_a_cache_of_cvmfs_saves_the_following_runs(tmp_path: Path) -> None:
    """Table 2 distinguishes a first run and following ones; ours are iterations of a run."""
    report = beside(paper_studies.kommeri_cvmfs(), "kommeri2016", tmp_path)
    found = numbers_of(report, "Table 2")
    assert found["300", "data_from_cern_mb_first_run"] == (422, pytest.approx(420))
    assert found["300", "data_from_cern_mb_following_runs"] == (300, pytest.approx(300))
    assert found["5000", "data_from_cern_mb_following_runs"] == (0, 0)
    assert found["300", "execution_s_following_runs"] == (249, pytest.approx(250))
    outcome, reason = outcomes(report)[
        "A CVMFS cache of 300 MB prolongs the following runs, against one of 5000 MB"
    ]
    assert outcome == HOLDS
    assert "seconds_following" in reason


def test_round_trips_of_one_client_and_of_ten_stand_beside_table_3(tmp_path: Path) -> None:
    """Of all readings on both nodes of a run: 1 and 3 ms, 100 of each."""
    report = beside(paper_studies.kommeri_blades(), "kommeri2016", tmp_path)
    found = numbers_of(report, "Table 3")
    assert found["mean", "vm_1"] == (7.67, pytest.approx(2.0))
    assert found["mean", "vm_10"] == (10.14, pytest.approx(4.0))
    assert found["max", "vm_1"] == (238.97, pytest.approx(6.0))
    assert found["stdev", "vm_10"] == (32.08, pytest.approx(2 * (200 / 199) ** 0.5))
    assert len(found) >= 8


def test_power_and_traffic_over_time_are_the_shape_of_figure_1(tmp_path: Path) -> None:
    maker = paper_studies.kommeri_local()
    run = maker.run("xrootd", {"mode": "analysis", "clients": 1},
                    {"network": "rate=100mbit"}, 6, elapsed_s=4.0, nodes=("v1",))  # fmt: skip
    maker.result(run, "seconds", 2.0, "s")
    maker.record(run, "v1", 8.0, energy_j=500.0)
    maker.samples(run, "v1", 8.0, watts=60)
    report = beside(maker, "kommeri2016", tmp_path)
    (found,) = [
        one for one in draw_figures(report.draws) if one.name.startswith("kommeri2016-time")
    ]
    labels = {axes.get_ylabel() for axes in found.figure.axes}
    assert {"power (W)", "CPUs busy"} < labels
    assert any(label.startswith("network (") for label in labels)
    assert found.title.startswith("Figure 1 of Kommeri et al.")


def test_the_newest_kernel_of_a_study_stands_for_the_papers(tmp_path: Path) -> None:
    report = beside(paper_studies.ruiz_kernels(), "ruiz2015", tmp_path)
    (found,) = [one for one in report.verdicts if one.claim.words.startswith("With a newer kernel")]
    assert found.outcome == HOLDS
    (seen,) = found.evidence
    assert seen.value == pytest.approx(0.1), "6.12 is newer than 6.2; bare runs are not in it"
    assert kernel_facts("6.1", ["6.1"]) == kernel_facts("6.2", ["6.1", "6.2", "6.12"]) == {}


@pytest.mark.parametrize(("percent", "mark"), [(-400, "<"), (-399, None), (399, None), (400, ">")])
def test_what_lies_beyond_the_axis_is_an_arrow(percent: float, mark: str | None) -> None:
    """A dot stood at 400 % for 580."""
    assert draw_arrow(percent) == mark
