"""steelyard sweep: packed, found again, removed; killed anywhere, nothing is lost or doubled."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.sweep.swept_site import Site, several
from tests.unit.sweep.test_sweep import site as site  # noqa: PLC0414 - a fixture

pytestmark = pytest.mark.slow

KILLED = """
import os, sys
from pathlib import Path
from steelyard.wrappers.sweep import sweep
from steelyard.wrappers.sweep.done import Asked
calls, last = 0, int(sys.argv[2])
def event(name, args):
    global calls
    if name in ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir") and sys.argv[1] in str(args):
        calls += 1
        if calls == last:
            os._exit(9)
sys.addaudithook(event)
sweep.sweep(Asked(Path(sys.argv[1]), 7 * 86400))
"""


def test_killed_anywhere(site: Site, tmp_path: Path) -> None:
    """By the kernel's own word for it, at every call that opens, makes, renames or removes."""
    several(site)
    killed = 0
    for call in (3, 1, 14, 19, 23, 24, 25, 26, 27, 28, 29, 31, 33, 36, 40, 60):
        ended = subprocess.run(
            [sys.executable, "-P", "-c", KILLED, str(site.dir), str(call)], check=False, timeout=300
        )
        killed += ended.returncode == 9
        assert site.found() == site.truth, f"killed at call {call}"
    assert killed > 5
    site.sweep()
    assert site.found() == site.truth
    assert site.loose() == set()
    assert not [p for p in site.dir.rglob("*.tmp")]
