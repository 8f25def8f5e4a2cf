"""The file in which a status notes what it has read: damaged, another's, or not to be written."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.unit.somebody import open_way
from tests.unit.submit.ended_study import RUNS, told
from tests.unit.submit.test_state_cache_file import study as study  # noqa: PLC0414 - a fixture

from steelyard.wrappers.submit import run_state

NOBODY = 65534
LOOK = """
import sys
from pathlib import Path
from steelyard.analysis.base import file_changes
from steelyard.wrappers.submit import run_state, status
run_state.FEWEST, file_changes.RACE_NS = 1, 0
study = Path(sys.argv[1])
for _ in range(int(sys.argv[2])):
    found = status.read_progress(study)
    print(found.done, found.failed)
    (study / run_state.CACHE_FILE).unlink(missing_ok=True)
"""


def look(study: Path, times: int = 1, **options: Any) -> subprocess.Popen[str]:
    """A process that looks, each time as if there were no earlier look of its own."""
    command = [sys.executable, "-P", "-c", LOOK, str(study), str(times)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)


def test_several_looks_at_once_say_the_same(study: Path) -> None:
    times = 30
    looks = [look(study, times) for _ in range(4)]
    for one in looks:
        out, err = one.communicate(timeout=120)
        assert (one.returncode, err) == (0, "")
        assert out.splitlines() == [f"{RUNS - 2} 2"] * times
    told(study)
    left = {path.name for path in study.iterdir()}
    assert left == {"plan.json", "runs", run_state.CACHE_FILE}


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes somebody else")
@pytest.mark.parametrize("mode", [0o555, 0o755, 0o777])
def test_a_study_that_is_not_ones_own_gets_no_file(study: Path, mode: int) -> None:
    """Read-only, or another's; root's own files in a user's folder are none of his wish either."""
    study.chmod(mode)
    open_way(study)
    one = look(study, user=NOBODY, group=NOBODY)
    out, err = one.communicate(timeout=60)
    assert (out, err) == (f"{RUNS - 2} 2\n", "")
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]
    os.chown(study, NOBODY, NOBODY)
    told(study)
    assert sorted(path.name for path in study.iterdir()) == ["plan.json", "runs"]
