"""`steelyard report` and `steelyard compare`, by exit code and words."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
from pathlib import Path
from types import ModuleType

import pytest

from steelyard.analysis.findings.registry import find_all
from steelyard.analysis.report.terminal_text import format_summary
from steelyard.analysis.summary.summary import summarize
from steelyard.wrappers.commands.cli import main

Capture = pytest.CaptureFixture[str]


def test_report_writes_one_file_and_says_the_overheads(
    demo_folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "r.html"
    assert main(["report", str(demo_folder), "-o", str(output)]) == 0
    words = capsys.readouterr().out
    assert "slower by 37 % (32 … 43), n = 5 + 5" in words
    summary = summarize(demo_folder)
    assert words.startswith(format_summary(summary, find_all(summary)))
    assert words.endswith(f"report: {output}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["r.html"]


def test_each_study_has_a_report_of_its_own(
    synthetic: ModuleType, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without -o, from any folder: next to the study, with its name."""
    for name in ("one", "two"):
        maker = synthetic.StudyMaker(name, {"clients": [1, 2]}, {"clients": 1})
        for number in range(6):
            run = maker.run("x", {}, {"clients": 1 + number % 2}, 1 + number // 2)
            maker.result(run, "seconds", 10 + number / 10, "s")
        maker.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["report", "one", "--export", "csv"]) == 0
    assert "report: one.html\n" in capsys.readouterr().out
    first = (tmp_path / "one.html").read_bytes()
    monkeypatch.chdir(tmp_path / "two.study")
    assert main(["report", "."]) == 0
    assert capsys.readouterr().out.endswith(f"report: {tmp_path / 'two.html'}\n")
    assert (tmp_path / "one.html").read_bytes() == first
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "one.html", "one.study", "one.tables", "two.html", "two.study",
    ]  # fmt: skip


def test_a_report_that_cannot_be_written_names_the_file_that_was_asked_for(
    demo_folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "nowhere" / "report.html"
    assert main(["report", str(demo_folder), "-o", str(output)]) == 3
    words = f"{output} cannot be written: No such file or directory; choose another place with -o"
    assert capsys.readouterr().err == f"steelyard report: {words}\n"


@pytest.fixture(scope="module")
def drawn(demo_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The folder of a report with its figures as SVG and CSV, and what the command printed."""
    folder = tmp_path_factory.mktemp("drawn")
    arguments = [str(demo_folder), "-o", str(folder / "r.html"), "--figures", "--format", "svg,csv"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert main(["report", *arguments]) == 0
    return folder, printed.getvalue()


def test_report_with_figures_in_the_asked_formats(drawn: tuple[Path, str]) -> None:
    folder, printed = drawn
    written = [path.suffix for path in (folder / "figures").iterdir()]
    assert (written.count(".svg"), written.count(".csv"), len(written)) == (14, 14, 28)
    assert f"figures: 28 files in {folder / 'figures'}" in printed


def test_report_as_json_has_null_for_what_is_not_known(
    demo_folder: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(demo_folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert list(tmp_path.iterdir()) == []
    assert (document["format"], document["version"]) == ("steelyard-report", 1)
    rows = {(r["variant"], r["condition"], r["metric"]): r for r in document["rows"]}
    energy = rows["hpl N=4000", "clients=1", "energy_j"]
    assert (energy["n"], energy["mean"], energy["low"], energy["sd"]) == (0, None, None, None)
    copy = rows["filesystem test=large_file_copy", "clients=2", "seconds"]
    assert copy["meaning"] == "worse"
    assert copy["overhead"] == pytest.approx(0.371, abs=0.001)
    assert copy["overhead_low"] < copy["overhead"] < copy["overhead_high"]
    assert "SY01" in {finding["code"] for finding in document["findings"]}


def test_json_has_every_figure_as_its_csv_has_it(
    demo_folder: Path, drawn: tuple[Path, str], capsys: Capture
) -> None:
    assert main(["report", str(demo_folder), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["figures"]
    assert len(told) == 14
    for figure in told:
        path = drawn[0] / "figures" / f"{figure['name']}.csv"
        with path.open(newline="", encoding="utf-8") as lines:
            heading, *cells = csv.reader(lines)
        assert figure["columns"] == heading
        shown = [["" if cell is None else str(cell) for cell in row] for row in figure["rows"]]
        assert shown == cells
        assert "n = " in figure["caption"] or " runs " in figure["caption"]
    bars = next(figure for figure in told if figure["name"].startswith("bars-"))
    assert {"unit", "n", "mean", "low", "high"} <= set(bars["columns"])


def test_an_unknown_format_lists_the_known_ones(demo_folder: Path, capsys: Capture) -> None:
    assert main(["report", str(demo_folder), "--figures", "--format", "gif"]) == 2
    error = capsys.readouterr().err
    assert error == ("steelyard report: --format: unknown 'gif', allowed: svg, pdf, png, csv\n")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--json", "--export", "csv"], "--json prints, and writes no file: leave out --export"),
        (["--json", "--figures"], "--json prints, and writes no file: leave out --figures"),
        (["--json", "-o", "x.html"], "--json prints, and writes no file: leave out --output"),
        (["--format", "png"], "--format is of the files of --figures: add --figures"),
        (["-o", "."], "-o .: that is a folder; name a file in it: report.html"),
    ],
)
def test_options_that_would_be_ignored_are_refused(
    arguments: list[str],
    words: str,
    demo_folder: Path,
    tmp_path: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", str(demo_folder), *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"steelyard report: {words}")
    assert list(tmp_path.iterdir()) == []


def test_a_study_is_not_taken_for_the_folder_of_figures(
    demo_folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--figures` uses the following argument, though most users will mean the study."""
    monkeypatch.chdir(demo_folder.parent)
    before = sorted(demo_folder.iterdir())
    assert main(["report", "--figures", demo_folder.name]) == 2
    assert f"write `steelyard report {demo_folder.name} --figures`" in capsys.readouterr().err
    assert sorted(demo_folder.iterdir()) == before


def test_figures_that_cannot_be_written_name_their_option(
    demo_folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    output, taken = str(tmp_path / "r.html"), str(tmp_path / "taken")
    assert main(["report", str(demo_folder), "-o", output, "--figures", taken]) == 3
    words = f"{taken} cannot be written: File exists; choose another place with --figures"
    assert capsys.readouterr().err == f"steelyard report: {words}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_a_study_that_was_not_collected_says_what_to_do(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "new.study"
    folder.mkdir()
    (folder / "plan.json").write_text("{}", encoding="utf-8")
    assert main(["report", str(folder)]) == 3
    assert "study.duckdb is not there: run `steelyard collect` first" in capsys.readouterr().err


def test_compare_sets_two_conditions_side_by_side(demo_folder: Path, capsys: Capture) -> None:
    assert main(["compare", str(demo_folder), "clients=1", "clients=2"]) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert "metric A: clients=1 B: clients=2 B against A" in lines
    words = "seconds 800 ± 32 ms, n = 5 1.097 ± 0.025 s, n = 5 slower by 37 % (32 … 43), n = 5 + 5"
    assert words in lines
    assert not any(line.startswith("energy_j") for line in lines)  # nobody measured it


def test_compare_of_a_study_with_one_condition_asks_for_the_other(
    demo_folder: Path, capsys: Capture
) -> None:
    assert main(["compare", str(demo_folder), "clients=1"]) == 2
    words = "is a study, and 'clients=1' is none: expected another study or session (STUDY STUDY), or two"
    assert words in capsys.readouterr().err


def test_compare_the_other_way_round_is_faster(demo_folder: Path, capsys: Capture) -> None:
    assert main(["compare", str(demo_folder), "clients=2", "clients=1", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["a"], document["b"]) == ("clients=2", "clients=1")
    row = next(r for r in document["rows"] if r["metric"] == "seconds")
    assert row["verdict"].startswith("faster by 27.1 % (")
    assert row["overhead"] < 0
    assert row["a"]["n"] == row["b"]["n"] == 5


def test_the_order_of_factors_and_blanks_do_not_matter(
    thesis_folder: Path, capsys: Capture
) -> None:
    a = "filesystem=NFS,node_type=physical,concurrent_nodes=1"
    b = "concurrent_nodes=1, filesystem=NFS, node_type=virtual"
    code = main(["compare", str(thesis_folder), a.replace(",", ", "), b])
    assert code == 0
    assert "slower by 61.3 %" in capsys.readouterr().out


@pytest.mark.parametrize("comma", [", ", " "])
def test_factors_left_out_are_the_baselines(
    synthetic: ModuleType, tmp_path: Path, capsys: Capture, comma: str
) -> None:
    factors = {"node_type": ["physical", "virtual"], "clients": [1, 10], "level": [1, 2]}
    maker = synthetic.StudyMaker("two", factors, {"node_type": "physical", "clients": 1})
    for place, levels in enumerate(itertools.product(*factors.values())):
        condition = dict(zip(factors, levels, strict=True))
        label = comma.join(f"{key}={level}" for key, level in condition.items())
        maker.result(maker.run("x", {}, condition, 1, condition_label=label), "seconds", place, "s")
    folder = str(maker.write(tmp_path))
    assert main(["compare", folder, "level=2", "level=2,clients=10", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    expected = [["node_type=physical", f"clients={n}", "level=2"] for n in (1, 10)]
    assert [document["a"], document["b"]] == [comma.join(parts) for parts in expected]
    assert main(["compare", folder, "clients=1", "level=2"]) == 2  # the baseline names no level
    assert "no condition 'clients=1'" in capsys.readouterr().err


def test_conditions_without_values_say_so(
    synthetic: ModuleType, tmp_path: Path, capsys: Capture
) -> None:
    maker = synthetic.StudyMaker("none", {"clients": [1, 2]}, {"clients": 1})
    for clients in (1, 2):
        maker.run("x", {}, {"clients": clients}, 1, state="failed", elapsed_s=None)
    assert main(["compare", str(maker.write(tmp_path)), "clients=1", "clients=2"]) == 0
    assert capsys.readouterr().out.startswith("x: no values under either condition\n")


def test_an_unknown_condition_lists_the_known_ones(demo_folder: Path, capsys: Capture) -> None:
    assert main(["compare", str(demo_folder), "clients=1", "clients=3"]) == 2
    assert capsys.readouterr().err == (
        "steelyard compare: no condition 'clients=3'; the study has:\n  clients=1\n  clients=2\n"
    )


def test_a_condition_is_not_compared_with_itself(demo_folder: Path, capsys: Capture) -> None:
    assert main(["compare", str(demo_folder), "clients=1", "clients=1"]) == 2
    assert "A and B are both 'clients=1'" in capsys.readouterr().err
