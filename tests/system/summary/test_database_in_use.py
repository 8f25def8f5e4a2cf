"""report and compare on databases that are odd or broken: an exit code and one line, no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.summary.test_bad_databases import folder as folder  # noqa: PLC0414 - a fixture

from steelyard.wrappers.commands.cli import main

Capture = pytest.CaptureFixture[str]


def test_while_a_collect_writes_there_is_one_line(folder: Path, capsys: Capture) -> None:
    database = str(folder / "study.duckdb")
    code = f"import duckdb; c = duckdb.connect({database!r}); print('open', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None and writer.stdout.readline() == "open\n"
        assert main(["report", str(folder)]) == 3
        assert "Is a collect still running? Wait for its end" in capsys.readouterr().err
        writer.communicate("\n", timeout=60)
    assert main(["report", str(folder), "--json"]) == 0
