"""A cluster's own database: what comes into it, what does not, and what happens again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.system.cluster_up.test_collect import content, run, several
from tests.unit.cluster.sacct_lab import NOW, Lab, lab

__all__ = ["lab"]

pytestmark = pytest.mark.slow

KILL = """
import importlib, os, signal, sys
module, name, after = sys.argv[1].rsplit(".", 1)[0], sys.argv[1].rsplit(".", 1)[1], int(sys.argv[2])
where = importlib.import_module("pathlib").Path if module == "Path" else importlib.import_module(module)
real, calls = getattr(where, name), 0
def counted(*args, **more):
    global calls
    calls += 1
    if calls > after:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **more)
setattr(where, name, counted)
from pathlib import Path
from steelyard.analysis.cluster.collect import collect
from steelyard.analysis.sources.record_folders import format_day
from steelyard.analysis.sources.cluster_sacct import ClusterSacct
collect(Path(sys.argv[3]), ClusterSacct(), [Path(sys.argv[4])], now=lambda: float(sys.argv[5]),
        since_unix_s=float(sys.argv[5]) - 4 * 86400)
"""
ROOM = "steelyard.analysis.cluster"
MOMENTS = [
    (f"{ROOM}.collect.replace_jobs", 2),  # two days are committed
    (f"{ROOM}.database.check_keys", 1),  # inside of a transaction, rows in place
    (f"{ROOM}.collect.write_end", 0),  # all is committed, nothing exported
    ("Path.replace", 3),  # some of them in place
    (f"{ROOM}.database.transaction", 0),  # all in place, not noted
]


@pytest.mark.parametrize(("where", "after"), MOMENTS, ids=lambda part: str(part).rpartition(".")[2])
def test_killed_at_any_point_nothing_is_lost_or_doubled(
    lab: Lab, tmp_path: Path, where: str, after: int
) -> None:
    several(lab)
    words = [where, str(after), str(lab.dir), str(lab.records), str(NOW)]
    killed = subprocess.run(
        [sys.executable, "-P", "-c", KILL, *words], env=lab.environment, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    run(lab)
    after_kill = content(lab)
    lab.dir = tmp_path / "undisturbed"
    run(lab)
    assert after_kill == content(lab)
