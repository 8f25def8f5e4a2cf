"""A study's own figures are read from kept output: mended or added, they need no run again."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from steelyard.wrappers.commands import cli

STUDY = """
[study]
name = "own"
repeat = 2
blocks = 1
seed = 1
[job]
time_limit = "00:10:00"
[factors]
size = [1, 2]
[[benchmark]]
use = "app"
command = "echo rate: {size}5; echo load: 7; echo spare: {size}"
"""
TYPO = "[benchmark.figures.rate]\npattern = 'Rate: ([0-9]+)'\nunit = '1/s'\n"
MENDED = TYPO.replace("Rate", "rate")
ADDED = "[benchmark.figures.load]\npattern = 'load: ([0-9]+)'\nunit = '1'\n"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study that has run, with a typo in its figure's pattern."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "own.toml"
    path.write_text(STUDY + TYPO)
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    return path


def collected(path: Path, capsys: Capture, given: str | None = None) -> tuple[dict[str, int], str]:
    """Run `steelyard collect`; return the runs by state, and its output."""
    capsys.readouterr()
    assert cli.main(["collect", given or str(path), "--json"]) == 0
    told = capsys.readouterr()
    done = json.loads(told.out)
    return done["runs"], told.err + "".join(gap["reason"] for gap in done["gaps"])


def values(path: Path, metric: str) -> list[float | None]:
    with duckdb.connect(path.with_suffix(".study") / "study.duckdb", read_only=True) as database:
        return [
            value
            for (value,) in database.execute(
                "SELECT value FROM measurements WHERE metric = ? ORDER BY value", [metric]
            ).fetchall()
        ]


def test_a_typo_in_a_pattern_fails_no_run(path: Path, capsys: Capture) -> None:
    states, words = collected(path, capsys)
    assert states == {"completed": 4}
    assert "nothing matches Rate: ([0-9]+)" in words
    assert values(path, "rate") == []
    assert len(values(path, "seconds")) == 4
    assert cli.main(["status", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["done"] == 4


def test_a_mended_pattern_is_applied_to_the_kept_output(path: Path, capsys: Capture) -> None:
    collected(path, capsys)
    path.write_text(STUDY + MENDED)
    states, words = collected(path, capsys)
    assert (states, words) == ({"completed": 4}, "")
    assert values(path, "rate") == [15, 15, 25, 25]
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    assert "nothing to add: all 4 runs" in capsys.readouterr().out


def test_a_figure_is_added_later(path: Path, capsys: Capture) -> None:
    path.write_text(STUDY + MENDED + ADDED)
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 0
    assert "nothing to add: all 4 runs" in capsys.readouterr().out
    collected(path, capsys)
    assert values(path, "load") == [7, 7, 7, 7]


def test_a_study_named_by_its_folder_finds_its_file(path: Path, capsys: Capture) -> None:
    path.write_text(STUDY + MENDED)
    collected(path, capsys, str(path.with_suffix(".study")))
    assert values(path, "rate") == [15, 15, 25, 25]


def test_what_else_has_changed_waits_for_submit(path: Path, capsys: Capture) -> None:
    more = STUDY.replace("[1, 2]", "[1, 2, 3]").replace("repeat = 2", "repeat = 3") + MENDED
    path.write_text(more)
    states, words = collected(path, capsys)
    assert states == {"completed": 4}
    assert "`steelyard submit` takes the rest" in words
    assert values(path, "rate") == [15, 15, 25, 25]
    assert (path.with_suffix(".study") / "study.toml").read_text() == STUDY + TYPO
    path.write_text(more.replace("repeat = 3", "repeat = 0"))
    _, words = collected(path, capsys)
    assert "study.repeat = 0" in words and "as the last submit had them" in words


def test_one_command_with_two_tables_of_figures_is_one_run(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "twice.toml"
    table = '[[benchmark]]\nuse = "app"\ncommand = "true"\n'
    path.write_text(f"{table}{MENDED}{table}{ADDED}")
    assert cli.main(["check", str(path), "--scheduler", "local"]) == 2
    assert "is in the study twice" in capsys.readouterr().err


def test_own_figures_are_main_figures_and_time_is_shown_once(path: Path, capsys: Capture) -> None:
    none = ADDED.replace("load", "spare") + "primary = false\n"
    path.write_text(STUDY + MENDED + ADDED + none)
    collected(path, capsys)
    folder = str(path.with_suffix(".study"))
    assert cli.main(["report", folder, "-o", "x.html", "--export", "latex"]) == 0
    terminal = capsys.readouterr().out
    tex = "".join(one.read_text() for one in path.parent.rglob("*.tex"))
    for name in ("rate", "load", "seconds"):
        assert f"    {name} " in terminal and name in tex
    for name in ("elapsed_s", r"elapsed\_s", "spare"):
        assert name not in terminal.split("\nfindings")[0] and name not in tex
