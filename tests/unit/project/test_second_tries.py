"""A failed test's second try: told with why it failed first, and red where there are many."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).resolve().parents[2] / "conftest.py"
ONCE = """
from pathlib import Path
import pytest
@pytest.mark.parametrize("n", range({}))
def test_once(n):
    seen = Path(__file__).with_name(f"seen-{{n}}")
    if not seen.exists():
        seen.touch()
        assert n == "the first try"
"""


@pytest.mark.parametrize(("tests", "code"), [(3, 0), (4, 1)])
def test_they_are_told_and_many_are_red(tmp_path: Path, tests: int, code: int) -> None:
    shutil.copy(CONFTEST, tmp_path)
    (tmp_path / "test_once.py").write_text(ONCE.format(tests))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--reruns", "1", "-c", "/dev/null", "--rootdir", "."],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stdout
    assert f"{tests} passed, {tests} rerun" in done.stdout
    for n in range(tests):
        assert f"assert {n} == 'the first try'" in done.stdout
