"""`steelyard report` and `steelyard compare`, by exit code and words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


def test_a_home_that_cannot_be_written_costs_no_words(demo_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "r.html"
    done = subprocess.run(
        [Path(sys.executable).with_name("steelyard"), "report", demo_folder, "-o", output],
        env={"HOME": "/proc/none", "PATH": "/usr/bin:/bin"},
        check=False, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "<svg" in output.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", ["report", "compare"])
def test_help_loads_no_heavy_library(command: str) -> None:
    code = (
        "import sys; from steelyard.wrappers.commands.cli import main\n"
        f"try: main(['{command}', '--help'])\n"
        "except SystemExit: pass\n"
        "print({'scipy', 'numpy', 'matplotlib', 'duckdb', 'jinja2'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "set()"
