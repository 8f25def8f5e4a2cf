"""collect() when things are missing, cut short, broken or killed: a reason, and nothing lost."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.system.collect.test_collect_trouble import study as study  # noqa: PLC0414 - a fixture
from tests.unit.collect import study as HELP

query, run_id, gap_kinds = HELP.query, HELP.run_id, HELP.gap_kinds
KILLED = """
import os, resource, runpy, signal, sys
from pathlib import Path
help = runpy.run_path(sys.argv[1])
study = help["Study"].__new__(help["Study"])
study.dir, study.record_dir = Path(sys.argv[2]), Path(sys.argv[3])
study.accounting, study.now_unix_s = help["RecordedSacct"](), float(sys.argv[4])
def progress(phase, done, total):
    if phase == sys.argv[5]:
        os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[5] == "full":
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
study.collect(progress=progress)
"""


def collect_elsewhere(study: Any, kill_at: str) -> subprocess.CompletedProcess[str]:
    """Collect in a separate process that kills itself in a phase, or gets write errors."""
    helper = Path(__file__).parents[2] / "unit" / "collect" / "study.py"
    arguments = (helper, study.dir, study.record_dir, study.now_unix_s, kill_at)
    return subprocess.run(
        [sys.executable, "-P", "-c", KILLED, *map(str, arguments)],
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("phase", ["accounting", "samples", "outputs"])
def test_a_killed_collect_leaves_the_old_database(study: Any, phase: str) -> None:
    study.collect()
    before = {t: query(study, f"SELECT * FROM {t} ORDER BY ALL") for t in ("runs", "samples")}
    row = study.task_row("2", 1)
    study.record(row, row.nodes[0])
    assert collect_elsewhere(study, phase).returncode == -signal.SIGKILL
    assert before == {
        t: query(study, f"SELECT * FROM {t} ORDER BY ALL") for t in ("runs", "samples")
    }
    study.collect()
    assert query(study, "SELECT count(*) FROM samples") == [(24,)]
    assert not (study.dir / ".collect").exists()


def test_a_first_collect_that_is_killed_can_be_done_again(study: Any) -> None:
    assert collect_elsewhere(study, "outputs").returncode == -signal.SIGKILL
    study.collect()
    assert query(study, "SELECT count(*) FROM samples") == [(21,)]


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["records", "samples", "outputs", "Parquet"])
def test_after_a_kill_it_comes_to_the_same_end(study: Any, phase: str) -> None:
    study.collect()
    wanted = HELP.content(study)
    shutil.rmtree(study.dir / "records")
    shutil.rmtree(study.dir / "parquet")
    (study.dir / "study.duckdb").unlink()
    assert collect_elsewhere(study, phase).returncode == -signal.SIGKILL
    study.collect()
    assert HELP.content(study) == wanted
    study.now_unix_s += 1
    study.collect()  # and nothing is doubled
    assert HELP.content(study) == wanted


def test_a_full_disk_is_told_and_changes_nothing(study: Any) -> None:
    study.collect()
    before = query(study, "SELECT * FROM samples ORDER BY ALL")
    row = study.task_row("2", 1)
    path = study.record(row, row.nodes[0]).with_suffix(".csv")
    header, *lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text(header + "".join(lines) * 20_000, encoding="utf-8")
    done = collect_elsewhere(study, "full")
    assert done.returncode == 1 and "collect again: nothing is lost" in done.stderr
    assert query(study, "SELECT * FROM samples ORDER BY ALL") == before
