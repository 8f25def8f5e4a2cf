"""`--preset jungels2012`: the thesis' own measurements against what is known of them."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from steelyard.analysis.figures.drawing import inline_svg
from steelyard.analysis.findings.finding import Kind
from steelyard.analysis.papers.jungels2012 import measurement_findings
from steelyard.analysis.papers.jungels2012.conclusions import effective_n, lag_correlation
from steelyard.analysis.papers.jungels2012.measurement_findings import (
    KINDS,
    CheckedAverage,
    check_averages,
)
from steelyard.analysis.papers.jungels2012.measurements_report import (
    ThesisReport,
    build_thesis_report,
)
from steelyard.analysis.papers.jungels2012.thesis_study import FOLDER, NAME, Average
from steelyard.analysis.report.export import export_tables
from steelyard.analysis.report.figures import draw_figures
from steelyard.wrappers.commands.cli import main
from steelyard.wrappers.commands.report import PRESETS

from ..report.test_exports import check_latex
from ..report.test_page import Checker

pytestmark = pytest.mark.slow

# The means of the values that the thesis prints, virtual / physical.
MEANS = {
    "npb kernel=BT class=B": (694.61, 629.92),
    "npb kernel=CG class=B": (67.70, 91.75),
    "npb kernel=EP class=B": (42.08, 25.33),
    "npb kernel=FT class=B": (55.30, 116.37),
    "npb kernel=IS class=B": (1.554, 4.275),
    "npb kernel=LU class=B": (868.56, 832.80),
    "npb kernel=MG class=B": (233.69, 467.22),
    "npb kernel=SP class=B": (270.18, 334.90),
    "hpl": (0.8408, 1.7989),
}
PENALTY = "Virtualization, however, comes with a performance penalty."


@pytest.fixture(scope="module")
def report() -> ThesisReport:
    return build_thesis_report()


@pytest.fixture(scope="module")
def found(report: ThesisReport) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(json.dumps(report.document()))
    return document


def test_the_answer_has_a_sentence_a_condition(found: dict[str, Any]) -> None:
    assert len(found["answer"]) == 6 + 1 + 2  # the largest, how many more, counts, conclusions
    assert found["answer"][0].startswith(
        "On virtual instead of physical nodes at filesystem=NFS and concurrent_nodes=3, "
        "filesystem test=large_file_copy takes 2.59 times as long (2.55 to 2.63 times). "
    )
    assert found["answer"][-1].startswith(
        "Of 19 conclusions held against the data at 95 %: 12 hold"
    )


def finding(found: dict[str, Any], code: str) -> dict[str, Any]:
    (one,) = [one for one in found["findings"] if one["code"] == code]
    assert isinstance(one, dict)
    return one


def test_all_measurements_are_there(report: ThesisReport) -> None:
    assert sum(len(one.values) for one in report.measurements.series) == 6581
    assert len(report.measurements.series) == 187


def values_of(report: ThesisReport, variant: str, node_type: str) -> tuple[float, ...]:
    """The printed series of a benchmark on all four nodes."""
    (series,) = [
        series
        for series in report.measurements.series
        if series.variant == variant and series.condition.get("node_type") == node_type
    ]
    return series.values


@pytest.mark.parametrize("variant", MEANS)
def test_means_of_the_printed_values(
    found: dict[str, Any], report: ThesisReport, variant: str
) -> None:
    """The thesis' means of rates are arithmetic; a report's are harmonic, those of its total work."""
    for node_type, mean in zip(("virtual", "physical"), MEANS[variant], strict=True):
        values = values_of(report, variant, node_type)
        (row,) = [
            row
            for row in found["rows"]
            if (row["variant"], row["condition"]) == (variant, f"node_type={node_type}")
        ]
        places = len(str(mean).split(".")[1])
        assert statistics.fmean(values) == pytest.approx(mean, abs=0.6 * 10**-places)
        assert row["mean"] == pytest.approx(statistics.harmonic_mean(values))
        assert row["unit"] == ("Gflop/s" if variant == "hpl" else "Mop/s")


def test_averages_that_are_no_means_are_named(found: dict[str, Any]) -> None:
    places = finding(found, "SP01")["places"]
    told = {
        tuple(match[0])
        for p in places
        if (match := re.findall(r"kernel=(\w+) class=B (\w+): printed ([\d.]+)", p))
    }
    assert told == {
        ("LU", "virtual", "873.986"),
        ("FT", "virtual", "55.106"),
        ("CG", "physical", "91.769"),
        ("SP", "physical", "334.866"),
        ("IS", "physical", "4.274"),
        ("MG", "virtual", "233.6967647"),
    }
    (text,) = [f["text"] for f in found["findings"] if f["code"] == "SP01"]
    assert text.startswith(
        "Of 16 printed averages of totals 10 agree and 6 do not; of those per pr"
    )
    each = [p.split(":")[0] for p in places if "per process" in p]
    assert each[0] == "D2 kernel=CG class=B physical per process" and len(each) == 5
    assert any(p.endswith("it is the mean without iteration 1 (233.53)") for p in places)
    plausible = {a["variant"]: a["next_value_is_plausible"] for a in found["averages"]}
    assert plausible == {v: k not in ["FT", "LU"] for k in ["FT", "LU", "CG", "IS", "SP", "MG"]
                         for v in [f"npb kernel={k} class=B"]}  # fmt: skip


def test_an_average_that_agrees_is_no_finding(report: ThesisReport) -> None:
    series = next(s for s in report.measurements.series if s.figure == "D1")
    assert CheckedAverage(
        Average("D1", "virtual", "total", "694.612", True), series, 694.61171, 0.0
    ).is_equal
    for one in check_averages(report.measurements):
        assert one.is_equal == one.printed.agrees


def test_repeated_short_and_missing_series_are_named(
    found: dict[str, Any], report: ThesisReport
) -> None:
    assert finding(found, "SP02")["places"] == ["B7 prints the values of B6, one for one"]
    places = finding(found, "SP03")["places"]
    assert "B71 (physical): 26 values" in places
    assert sum("small_file_copy · PVFS" in place for place in places) == 10
    assert "filesystem test=small_file_write · PVFS, 1 at once, physical: node 1" in places
    assert not any("B7" in re.split(r"[+ ]", run.run_id) for run in report.summary.data.runs)


def test_the_ramp_of_lustre_is_found_without_being_told(found: dict[str, Any]) -> None:
    ramps = [p for p in finding(found, "SY20")["places"] if "small_file_copy · filesystem=Lus" in p]
    nodes = {tuple(re.findall(r"concurrent_nodes=(\d), node_type=(\w+)", p)[0]) for p in ramps}
    assert nodes == {(n, t) for n in "34" for t in ("physical", "virtual")}
    assert any("the first 12 of 35 runs" in place for place in ramps)


def test_conclusions_hold_or_do_not(found: dict[str, Any]) -> None:
    conclusions = {one["sentence"]: one for one in found["conclusions"]}
    penalty = conclusions[PENALTY]
    assert (penalty["outcome"], penalty["wording"]) == ("holds in part", "thesis")
    assert (penalty["agree"], penalty["oppose"], len(penalty["comparisons"])) == (26, 9, 40)
    assert conclusions["EP is faster on the virtual cluster."]["outcome"] == "holds"
    assert conclusions["XHPL is slower on the virtual cluster."]["outcome"] == "holds"
    assert {one["wording"] for one in found["conclusions"]} == {"thesis", "ours"}
    for one in found["conclusions"]:
        assert one["comparisons"], one["sentence"]
        assert one["agree_order_allowed_for"] <= one["agree"]
    assert any(place.startswith(f"holds in part: {PENALTY}") for place in
               finding(found, "SP04")["places"])  # fmt: skip


def test_iterations_that_resemble_their_neighbours_count_for_less() -> None:
    values = [float(i // 3 % 4) for i in range(36)]
    r = lag_correlation(values)
    assert 0.3 < r < 0.8
    assert effective_n(values) == pytest.approx(36 * (1 - r) / (1 + r))
    assert effective_n([float(i // 5) for i in range(30)]) == 2.0  # the fewest
    assert effective_n([1.0, 2.0] * 15) == 30
    assert lag_correlation([2.0, 2.0, 2.0, 2.0]) == 0.0


def test_21_figures_hold_every_measurement(report: ThesisReport, found: dict[str, Any]) -> None:
    assert len(found["figures"]) == 21
    rows = [row for figure in found["figures"] for row in figure["rows"]]
    assert len(rows) == 6581
    averages = {row[-2] for row in found["figures"][12]["rows"]}
    assert sorted(averages) == [pytest.approx(629.918, abs=1e-3), pytest.approx(694.612, abs=1e-3)]
    assert sum(row[-1] == "B6" for row in rows) == 34
    for drawing in draw_figures(report.draws):
        assert re.search(r"n = \d+ physical \+ \d+ virtual", drawing.caption)
        svg = inline_svg(drawing)
        assert "iteration" in svg and re.search(r"time \(s\)|op/s\)", svg)


def test_exports_hold_conclusions_averages_and_every_measurement(
    report: ThesisReport, found: dict[str, Any], tmp_path: Path
) -> None:
    export_tables(report.content(), tmp_path, ("parquet", "json", "latex"))

    def column(query: str) -> list[Any]:
        return [row[0] for row in duckdb.sql(query.replace("IN", str(tmp_path))).fetchall()]

    assert json.loads((tmp_path / "report.json").read_text(encoding="utf-8")) == found
    assert column("SELECT outcome FROM 'IN/conclusions.parquet'") == [
        one["outcome"] for one in found["conclusions"]
    ]
    assert column("SELECT overhead FROM 'IN/comparisons.parquet'") == [
        one["overhead"] for said in found["conclusions"] for one in said["comparisons"]
    ]
    assert column("SELECT mean FROM 'IN/averages.parquet'") == [
        one["mean"] for one in found["averages"]
    ]
    drawn_rows = {tuple(row) for figure in found["figures"] for row in figure["rows"]}
    stored = duckdb.sql(f"FROM '{tmp_path}/measurements.parquet'").fetchall()
    assert len(stored) == 6581 and set(stored) == drawn_rows
    for name in ("conclusions", "comparisons", "averages"):
        check_latex((tmp_path / f"{name}.tex").read_text(encoding="utf-8"))


def written(folder: Path) -> Iterator[str]:
    return (path.suffix for path in folder.iterdir() if path.name.startswith("published-"))


def test_the_command_writes_page_figures_and_words(
    report: ThesisReport, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "r.html"
    arguments = ["--preset", "jungels2012", "-o", str(output), "--figures", "--format", "svg,csv"]
    assert main(["report", *arguments]) == 0
    words = capsys.readouterr().out
    assert "Of 19 conclusions held against the data at 95 %: 12 hold, 7 hold in part." in words
    assert sorted(written(tmp_path / "figures")) == [".csv"] * 21 + [".svg"] * 21
    page = output.read_text(encoding="utf-8")
    assert len(page.encode()) < 3_000_000
    assert page.count('href="#runs-') > 100
    checker = Checker()
    checker.feed(page)
    assert checker.faults == checker.open == []
    assert len(checker.ids) == len(set(checker.ids))
    assert {link[1:] for link in checker.links if link.startswith("#")} <= set(checker.ids)
    mean = statistics.harmonic_mean(values_of(report, "npb kernel=BT class=B", "physical"))
    for text in ("Conclusions against the data", "873.986", f"{mean:.2f}", "B8+B9+B10+B11 #7"):
        assert text in page
    assert "steelyard submit jungels2012" not in page


def test_a_preset_takes_no_study(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "x.study", "--preset", "jungels2012"]) == 2
    assert "leave out the study 'x.study'" in capsys.readouterr().err


def test_the_data_name_their_source() -> None:
    assert (NAME,) == PRESETS
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert "https://docs.lib.purdue.edu/techmasters/64" in page


def test_the_page_has_the_findings(report: ThesisReport) -> None:
    page = (Path(__file__).parents[3] / measurement_findings.PAGE).read_text(encoding="utf-8")
    assert measurement_findings.update_page(page) == page, (
        f"{measurement_findings.PAGE} is stale: run `make docs`"
    )
    assert page.count("\n| SP") == len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_a_finding_gives_a_true_example(kind: Kind, report: ThesisReport) -> None:
    (told,) = [one for one in report.findings if one.kind is kind]
    assert kind.example in " ".join((told.text, *told.places))
