"""steelyard sweep killed anywhere: nothing is lost or doubled, and the next one does the rest."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.collect.study import DATA
from tests.unit.sweep.swept_site import DAY_S, Files, Site, several

from steelyard.analysis.sources import sample_packs

pytestmark = pytest.mark.slow

KILLED = """
import os, signal, sys
from pathlib import Path
from steelyard.wrappers.sweep import sweep
from steelyard.wrappers.sweep.sweep import SweepRequest
calls, last, every = 0, int(sys.argv[2]), int(sys.argv[3])
CALLS = ("open", "os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.chmod", "os.chown")
def event(name, args):
    global calls
    if name in CALLS and sys.argv[1] in str(args):
        calls += 1
        if calls == last:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(event)
sweep.sweep(SweepRequest(Path(sys.argv[1]), 7 * 86400, every_s=every if every >= 0 else None))
"""
ALL, STEP = -1, 6


@pytest.mark.parametrize("every_s", [ALL, 30], ids=["all", "thinned"])
def test_killed_anywhere(tmp_path: Path, every_s: int) -> None:
    """At each sixth call that opens, makes, renames or removes."""
    site = Site(tmp_path / "records")
    several(site)
    (long,) = (DATA / "records" / "long").glob("*.csv")
    site.leave("long", 20 * DAY_S, samples=long.read_bytes())
    whole, swept = dict(site.truth), in_packs(site.truth, every_s)
    before = tmp_path / "before"
    shutil.copytree(site.dir, before)
    call, code = 1, -signal.SIGKILL
    while code:
        shutil.rmtree(site.dir)
        shutil.copytree(before, site.dir)
        words = [sys.executable, "-P", "-c", KILLED, str(site.dir), str(call), str(every_s)]
        code = subprocess.run(words, check=False, timeout=300).returncode
        assert code in (0, -signal.SIGKILL)
        found = site.found()
        assert found.keys() == whole.keys(), f"killed at call {call}"
        assert all(found[name] in (whole[name], swept[name]) for name in found)
        site.sweep(every_s=None if every_s == ALL else every_s)
        assert site.found() == swept and site.loose() == set()
        assert not [p for p in site.dir.rglob("*.tmp")]
        call += STEP
    assert call > 20 * STEP


def in_packs(truth: Files, every_s: int) -> Files:
    """The files as they come back out of packs."""
    if every_s == ALL:
        return dict(truth)
    return {
        (job_id, name): (
            sample_packs.thin(content, every_s) if name.endswith(".csv") else content,
            modified,
        )
        for (job_id, name), (content, modified) in truth.items()
    }
