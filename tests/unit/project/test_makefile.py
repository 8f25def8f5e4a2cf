"""The Makefile, where a fresh clone differs from a folder that has been built in."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_check_sanitize_makes_the_folder_that_its_programs_write_to() -> None:
    done = subprocess.run(
        ["make", "-n", "check-sanitize"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert re.search(r"mkdir -p [^;&\n]*build/test\b", done.stdout)
