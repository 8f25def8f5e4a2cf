"""The Makefile, where a fresh clone differs from a folder that has been built in."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_check_sanitize_makes_the_folder_that_its_programs_write_to() -> None:
    done = subprocess.run(
        ["make", "-n", "check-sanitize"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert re.search(r"mkdir -p [^;&\n]*build/test\b", done.stdout)


def test_a_group_says_when_it_begins_that_it_still_runs_and_how_it_ended(tmp_path: Path) -> None:
    until_told = 'until [ -e "$0" ]; do sleep 0.05; done; echo shown; exit 3'
    argv = [ROOT / "tests/run_group.sh", "some", "bash", "-c", until_told, tmp_path / "told"]
    with subprocess.Popen(
        argv, env={**os.environ, "STILL_S": "0.5"}, stdout=subprocess.PIPE, text=True
    ) as group:
        assert group.stdout is not None
        lines = [group.stdout.readline() for _ in range(2)]
        (tmp_path / "told").touch()
        lines += group.stdout.readlines()
    assert group.returncode == 3
    first, still, *rest = (re.sub(r"\[\d\d:\d\d:\d\d\]|\d+ s", "…", line[:-1]) for line in lines)
    assert (first, still) == ("… some begins", "… some still runs after …")
    # Once more on a busy machine.
    assert [line for line in rest if line != still] == ["shown", "… some ends after …: red"]
