"""An interrupt while modules are imported, and the man pages of the commands."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.project.test_help import eighty as eighty  # noqa: PLC0414 - a fixture

from steelyard.wrappers.commands import cli, man_pages

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
    pytest.importorskip("argparse_manpage", reason="argparse-manpage is missing: make docs")
    monkeypatch.setattr(sys, "argv", ["man", str(tmp_path)])
    assert man_pages.main() == 0
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
