"""The help of every command: 80 columns, examples that are understood; man pages."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli, man, parsers

Capture = pytest.CaptureFixture[str]
EXAMPLE = re.compile(r"^  (?:sudo )?steelyard (.*)$", re.MULTILINE)


def help_of(name: str) -> str:
    """As on a terminal of any width."""
    return parsers.of(name, cli.COMMANDS[name]).format_help()


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
                parsers.of(name, "").parse_args(words[1:])
        except SystemExit:
            pytest.fail(f"{text}: {said.getvalue()}")


def test_the_first_page_fits_80_columns() -> None:
    assert [line for line in cli.usage().splitlines() if len(line) > 80] == []


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


INTERRUPTED = """
import os, signal, sys
class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, AtImport())
wanted, sys.argv = sys.argv[1], ["steelyard", "collect", "none"]
from steelyard.wrappers.commands import entry
sys.exit(entry.main())
"""


@pytest.mark.parametrize(
    ("module", "code"),
    [
        ("steelyard.wrappers.commands.cli", -2),  # nothing has begun: SIGINT itself
        ("steelyard.wrappers.commands.collect", 130),
        ("steelyard.wrappers.base.console", 130),
    ],
)
def test_ctrl_c_while_modules_are_imported_is_no_traceback(module: str, code: int) -> None:
    command = [sys.executable, "-P", "-c", INTERRUPTED, module]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_man_pages_are_what_the_help_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("argparse_manpage", reason="argparse-manpage is missing: make man")
    monkeypatch.setattr(sys, "argv", ["man", str(tmp_path)])
    assert man.main() == 0
    wanted = {"steelyard.1", *(f"steelyard-{name}.1" for name in cli.COMMANDS)}
    assert {path.name for path in tmp_path.iterdir()} == wanted
    text = (tmp_path / "steelyard-run.1").read_text()
    assert "\\-\\-warmup" in text and ".SH EXAMPLES" in text
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man or groff is missing: apt-get install man-db groff-base")
    for path in sorted(tmp_path.iterdir()):
        done = subprocess.run(
            ["man", "--warnings", "-l", path], capture_output=True, text=True, check=False
        )
        assert done.stderr == "", path.name
