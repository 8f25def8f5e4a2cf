"""setup/man_of_help.py: each program's page has every word of its help, and man(1) finds no fault."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from steelyard.wrappers.commands import cli

ROOT = Path(__file__).parents[3]
MAKER = ROOT / "setup/man_of_help.py"
PROGRAMS = {path.name: path for path in (ROOT / "build/bin").glob("steelyard-*")} | {
    "steelyard-forward": ROOT / "contrib/spool/forward.sh",
    "steelyard-torque": ROOT / "plugins/torque/steelyard-torque.sh",
    "steelyard-redfish": ROOT / "contrib/redfish/steelyard_redfish.py",
}
AS_THE_MAKER = {**os.environ, "COLUMNS": "80", "LC_ALL": "C.UTF-8", "MANWIDTH": "300"}


def make(program: Path, page: Path) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, MAKER, program, page]
    return subprocess.run(argv, capture_output=True, text=True, check=False)


def said(*argv: str | Path) -> str:
    return subprocess.run(
        argv, check=True, capture_output=True, text=True, env=AS_THE_MAKER
    ).stdout.removeprefix("usage: ")


def helps(program: Path, *words: str) -> str:
    """Its help and that of its commands, by the rows below a title."""
    text = said(program, *words, "--help")
    if " --help' tells " not in text:
        return text
    text = re.sub(r"(?m)^'.* --help' tells .*$", "", text)
    names = re.findall(r"(?m)^  ([a-z]+) ", text)
    assert names
    return "\n".join([text, *(helps(program, *words, name) for name in names)])


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_the_page_has_every_word_of_the_help(name: str, tmp_path: Path) -> None:
    page = tmp_path / f"{name}.8"
    done = make(PROGRAMS[name], page)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    if shutil.which("man") is None or shutil.which("groff") is None:
        pytest.skip("man or groff is missing: apt-get install man-db groff-base")
    shown = said("man", "--no-hyphenation", "-l", page)
    missing = set(helps(PROGRAMS[name]).split()) - set(shown.split())
    assert {word for word in missing if word.lower() != word or not word.endswith(":")} == set()
    argv = ["man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", page]
    checked = subprocess.run(argv, capture_output=True, text=True, check=True, env=AS_THE_MAKER)
    assert checked.stderr == ""
    assert name not in {f"steelyard-{command}" for command in cli.COMMANDS}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("usage: x\\n\\nDoes it.\\n\\n  --node NAME what it is called\\n", "expected two blanks"),
        ("Usage: x\\n", "expected a text that begins 'usage: '"),
    ],
)
def test_a_help_that_is_laid_out_otherwise_is_refused(
    text: str, words: str, tmp_path: Path
) -> None:
    program, page = tmp_path / "program", tmp_path / "program.1"
    program.write_text(f'#!/bin/sh\nprintf "{text}"\n')
    program.chmod(0o755)
    done = make(program, page)
    assert (done.returncode, words in done.stderr, page.exists()) == (1, True, False)
