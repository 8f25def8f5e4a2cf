"""The help of every command: 80 columns, examples that are understood; man pages."""

from __future__ import annotations

import contextlib
import io
import re
import shlex

import pytest

from steelyard.wrappers.commands import cli, parsers

Capture = pytest.CaptureFixture[str]
EXAMPLE = re.compile(r"^  (?:sudo )?steelyard (.*)$", re.MULTILINE)


def help_of(name: str) -> str:
    """Return the help as on a terminal of any width."""
    return parsers.make_parser(name, cli.COMMANDS[name]).format_help()


@pytest.fixture(autouse=True)
def eighty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_help_fits_80_columns(name: str) -> None:
    assert [line for line in help_of(name).splitlines() if len(line) > 80] == []


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_has_examples_that_it_understands(name: str) -> None:
    found = EXAMPLE.findall(help_of(name))
    assert found
    for text in found:
        words = shlex.split(re.split(r"  +| >", text)[0])
        assert words[0] == name
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said):
                parsers.make_parser(name, "").parse_args(words[1:])
        except SystemExit:
            pytest.fail(f"{text}: {said.getvalue()}")


def test_the_first_page_fits_80_columns() -> None:
    assert [line for line in cli.format_usage().splitlines() if len(line) > 80] == []


def test_help_of_a_command_by_name(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(["help", "cancel"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("usage: steelyard cancel")


@pytest.mark.parametrize(
    ("word", "hint"), [("statsu", "did you mean 'status'?"), ("xyz", "`steelyard --help` lists")]
)
@pytest.mark.parametrize("before", [[], ["help"]])
def test_an_unknown_command_is_one_line(
    before: list[str], word: str, hint: str, capsys: Capture
) -> None:
    assert cli.main([*before, word]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"steelyard: unknown command '{word}'; {hint}")
    assert len(err.splitlines()) == 1
