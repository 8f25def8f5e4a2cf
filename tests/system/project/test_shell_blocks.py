"""Commands of the pages are executed as a reader types them, one page in one shell."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from tests.unit.project.test_shell_blocks import (
    ELSEWHERE,
    commands,
    name_of,
)

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([ROOT / "README.md", *ROOT.glob("docs/**/*.md")])
# In place of what is not here, or would take too long.
SMALLER = {
    "--repeat 10": "--repeat 2",
    "seq 3000000": "seq 3000",
    "--until 2% --export": "--until 90% --export",
    "--until 2% --max-time 10min": "--until 90%",
    "$PWD/build": "$PWD",
    "/data/big.log": "big.log",
    "/mnt/nfs": "/tmp",
    "tests/data/trees/NAME": f"{ROOT}/tests/data/trees/apptainer",
    "clients=4": "clients=2",
}
EVERY = [(name_of(page), command) for page in PAGES for command in commands(page)]


def reason(page: str, command: str) -> str | None:
    """Why it is not executed here."""
    found = (why for what, why in ELSEWHERE.items() if re.fullmatch(what, f"{page}: {command}"))
    return next(found, None)


HERE = [(page, command) for page, command in EVERY if reason(page, command) is None]


@pytest.fixture
def folder(tmp_path: Path, synthetic: ModuleType) -> Path:
    """What the pages speak of: a program, its input, a large file, a collected study."""
    synthetic.demo("disks").write(tmp_path)
    app = tmp_path / "app"
    app.write_text("#!/bin/sh\nexec sleep 0.01\n")
    app.chmod(0o755)
    for name in ("input.dat", "x", "big.log"):
        (tmp_path / name).write_text("".join(f"{n}\n" for n in range(3000)))
    return tmp_path


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[] if page == "README.md" else pytest.mark.slow)
        for page in sorted({page for page, _ in HERE})
    ],
)
def test_it_can_be_typed(page: str, folder: Path) -> None:
    """From the page's top to its end, in one shell."""
    lines = ["set -e", f'export PATH="{Path(sys.executable).parent}:$PATH"']
    for _, command in (one for one in HERE if one[0] == page):
        for old, new in SMALLER.items():
            command = command.replace(old, new)
        lines.append(command)
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, "\n".join(lines) + done.stdout + done.stderr
