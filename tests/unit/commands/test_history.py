"""`steelyard history`: exit codes, files, and messages on wrong input."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from steelyard.facts import json_fields
from steelyard.wrappers.commands import cli

from ..history.stored_sessions import write_sessions

Capture = pytest.CaptureFixture[str]
BEFORE, AFTER = 9, 5


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose sessions are 5 % slower with another kernel from the tenth on; its name."""
    parent = tmp_path_factory.mktemp("history")
    factors = [1 + 0.002 * (place % 3) for place in range(BEFORE)] + [1.05] * AFTER
    write_sessions(parent, factors, ["6.1.0-30"] * BEFORE + ["6.1.0-31"] * AFTER)
    return parent / "nightly"


def test_a_change_is_printed_with_its_tag_and_its_figure(study: Path, capsys: Capture) -> None:
    assert cli.main(["history", str(study)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("nightly: 14 sessions, 2026-11-01 to 2026-11-14")
    assert (
        "longer (" in out
        and "since 10 November 2026; on that day 2 of 2 nodes went from kernel 6.1.0-30 to 6.1.0-31. "
        "Nothing else changed."
        in out
    )
    assert "Not recorded, so not compared: microcode." in out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--fail-on", "3%"], 6, "--fail-on 3%: FAILED, worse: app"),
        (["--fail-on", "3"], 6, "FAILED"),
        (["--fail-on", "8%"], 0, "--fail-on 8%: passed, no figure is worse by that much"),
        (["--fail-on", "3%", "--since", "2026-11-10"], 6, "FAILED"),
        (["--fail-on", "3%", "--since", "2026-11-11"], 0, "passed"),
    ],
)
def test_fail_on(study: Path, options: list[str], code: int, words: str, capsys: Capture) -> None:
    assert cli.main(["history", str(study), *options]) == code
    assert words in capsys.readouterr().out


def test_junit_and_figure_are_files(study: Path, tmp_path: Path, capsys: Capture) -> None:
    junit, figure = tmp_path / "junit.xml", tmp_path / "year.png"
    words = ["--fail-on", "3%", "--junit", str(junit), "--figure", str(figure)]
    assert cli.main(["history", str(study), *words]) == 6
    (case,) = ElementTree.parse(junit).getroot().iter("testcase")
    assert case[0].tag == "failure"
    assert figure.read_bytes().startswith(b"\x89PNG")
    assert f"figure: {figure}" in capsys.readouterr().out


def test_the_figure_goes_beside_the_sessions(study: Path, capsys: Capture) -> None:
    assert cli.main(["history", str(study), "--figure"]) == 0
    figure = study.with_name("nightly.history.svg")
    assert figure.read_text(encoding="utf-8").count("<svg") == 1
    assert f"figure: {figure}" in capsys.readouterr().out


def test_json_is_one_document_and_keeps_the_exit_code(study: Path, capsys: Capture) -> None:
    assert cli.main(["history", str(study), "--json", "--fail-on", "3%"]) == 6
    document = json.loads(capsys.readouterr().out)
    assert json_fields.compare("history", document) == []
    assert document["events"][0]["session"] == "2026-11-10"
    assert len(document["regressions"]) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--fail-on", "much"],
            "--fail-on 'much' is no share: expected percent above 0, such as 3%",
        ),
        (["--fail-on", "0%"], "--fail-on '0%' is no share"),
        (["--narrow"], "--narrow needs --figure"),
        (["--junit", "x.xml"], "--junit needs --fail-on PERCENT"),
        (["--since", "2026-11-10"], "--since needs --fail-on PERCENT"),
        (["--fail-on", "3%", "--since", "May"], "no such session; the last ones are 2026-11-10, "),
        (["--figure", "x.jpg"], "--figure 'x.jpg': expected a file that ends in .svg, .png, .pdf"),
    ],
)
def test_wrong_options(study: Path, options: list[str], words: str, capsys: Capture) -> None:
    assert cli.main(["history", str(study), *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert words in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nightly@2026-11-02", "a history is of all sessions: leave out @2026-11-02"),
        ("nigtly", "did you mean 'nightly'?"),
    ],
)
def test_wrong_names(study: Path, name: str, words: str, capsys: Capture) -> None:
    assert cli.main(["history", str(study.with_name(name))]) == 2
    assert words in capsys.readouterr().err


def test_a_study_without_sessions(tmp_path: Path, capsys: Capture) -> None:
    assert cli.main(["history", str(tmp_path / "weekly")]) == 2
    assert "`steelyard submit STUDY.toml --session` adds one" in capsys.readouterr().err
