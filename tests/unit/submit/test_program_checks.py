"""A command whose program no run could start is reported before anything is submitted."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli
from steelyard.wrappers.submit import program_checks

Capture = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    ("command", "words", "sure"),
    [
        ("/absent/nope --fast", "/absent/nope is not on this machine", True),
        ("A=1 B='2 3' /absent/nope", "/absent/nope is not on this machine", True),
        ("./tri 100", "./tri: runs begin in an empty folder: give its absolute path, {here}/tri", True),
        ("bin/tri 100 >out", "bin/tri: runs begin in an empty folder", True),
        ("tri-of-nobody 100", "tri-of-nobody is no program in PATH", True),
        ("mine 100", "mine is no program in PATH on this machine: give its absolute path, {here}/mine", True),
        ("{here}/mine 100", "{here}/mine may not be executed: chmod +x", True),
    ],
)  # fmt: skip
def test_a_program_that_is_not_there(
    command: str, words: str, sure: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").touch(0o644)
    problem = program_checks.check_command(
        command.format(here=tmp_path), has_path=False, runs_here=True
    )
    assert problem is not None
    assert (problem.text.startswith(words.format(here=tmp_path)), problem.sure) == (True, sure)


@pytest.mark.parametrize(
    "command",
    ["/bin/true", "true", "cd /tmp && ./a", "for i in 1 2; do ./a; done", "$HOME/a", "~/a", "(a)",
     "[[ -e x ]] && a", "! a", "A=1", "'open"],
)  # fmt: skip
def test_what_is_there_or_needs_a_shell_to_tell(command: str) -> None:
    assert program_checks.check_command(command, has_path=False, runs_here=True) is None


def test_elsewhere_it_is_a_warning() -> None:
    problem = program_checks.check_command("/absent/nope", has_path=False, runs_here=False)
    assert problem is not None
    assert problem.text == "/absent/nope is not on this machine, and maybe not on the nodes"
    assert not problem.sure
    assert (
        program_checks.check_command("nope", has_path=True, runs_here=True) is None
    )  # [benchmark] env PATH


def test_check_and_submit_say_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Seen: "no problem was found", and exit code 127 in 60 of 60 runs."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "a.toml"
    path.write_text('[[benchmark]]\nuse = "app"\ncommand = "/absent/nope"\n')
    assert cli.main(["check", str(path), "--scheduler", "local"]) == 3
    assert "missing: /absent/nope is not on this machine" in capsys.readouterr().out
    assert cli.main(["submit", str(path), "--scheduler", "local"]) == 3
    assert "/absent/nope is not on this machine" in capsys.readouterr().err
    assert not list(tmp_path.glob("a.study/runs/*"))
