"""Jobs that the accounting does not have yet, from squeue."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from steelyard.analysis.base.errors import MissingError
from steelyard.analysis.job.job_lookup import look_up
from steelyard.analysis.sources.sacct import FIELDS, Sacct

# Slurm 22.05.8, `squeue --noheader --format=FORMAT` (TZ=UTC), the separator as |.
PENDING = "350|350|PENDING|Priority|debug|ann|physics|2026-11-27T08:00:00|2026-11-27T09:00:00|0:00||2|4|odd \nname|30:00"
RUNNING = "351|351|RUNNING|None|debug|ann|physics|2026-11-27T08:00:00|2026-11-27T08:00:02|1:05|n[1-2]|2|4|run|1-02:00:00"
ARRAY = "352_[1-3%2]|352|PENDING|Resources|debug|ann|physics|2026-11-27T08:00:00|N/A|0:00||1|1|a|UNLIMITED"
SACCT = """#!{python}
import sys
if "--helpformat" in sys.argv: print({fields!r}); raise SystemExit
{then}
"""
SQUEUE = """#!{python}
import sys
jobs = {jobs!r}
asked = [a[7:].split(",") for a in sys.argv if a.startswith("--jobs=")][0]
found = [job for job in jobs if job.split("|")[0].split("_")[0] in [a.split("_")[0] for a in asked]]
if not found: raise SystemExit("slurm_load_jobs error: Invalid job id specified")
for job in found: print(job.replace("|", "\\x1f"))
"""


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """sacct knows no job; squeue three."""
    monkeypatch.setenv("PATH", str(tmp_path))
    put(tmp_path / "sacct", SACCT.format(python=sys.executable, fields=" ".join(FIELDS), then=""))
    put(tmp_path / "squeue", SQUEUE.format(python=sys.executable, jobs=[PENDING, RUNNING, ARRAY]))
    return tmp_path


def put(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def test_a_job_just_submitted_is_pending_and_not_unknown(slurm: Path) -> None:
    view = look_up("350", [slurm], Sacct.without_retries())
    assert view.row is not None and view.allocation is not None
    assert (view.row.state, view.row.reason) == ("pending", "waiting: Priority")
    assert (view.row.name, view.row.user, view.row.nodes) == ("odd \nname", "ann", ())
    assert (view.row.submit_unix_s, view.row.start_unix_s) == (1795766400.0, None)
    assert (view.allocation.time_limit_s, view.allocation.cpus_requested, view.allocation.cpus) == (
        1800.0,
        4,
        None,
    )
    assert view.allocation.partition == "debug"
    assert any(note.startswith("squeue answered: ") for note in view.notes)


def test_a_job_that_began_before_slurmdbd_heard_of_it(slurm: Path) -> None:
    view = look_up("351", [slurm], Sacct.without_retries())
    assert view.row is not None and view.allocation is not None
    assert (view.row.state, view.row.nodes) == ("running", ("n1", "n2"))
    assert (view.row.start_unix_s, view.row.elapsed_s) == (1795766402.0, 65)
    assert (view.allocation.time_limit_s, view.allocation.cpus) == (93600.0, 4)
    assert (view.allocation.gpus, view.allocation.missing["gpus"]) == (None, "squeue does not say")


def test_tasks_that_wait(slurm: Path) -> None:
    (row,) = Sacct.without_retries().rows(["352"])
    assert (row.state, row.array_job_id, row.waiting_tasks) == ("pending", "352", (1, 2, 3))  # type: ignore[union-attr]


def test_a_job_that_neither_knows(slurm: Path) -> None:
    with pytest.raises(MissingError, match="job 399 is not known"):
        look_up("399", [slurm], Sacct.without_retries())


def test_squeue_answers_while_slurmdbd_is_away(slurm: Path) -> None:
    away = 'raise SystemExit("sacct: error: slurmdbd: Connection refused")'
    put(slurm / "sacct", SACCT.format(python=sys.executable, fields=" ".join(FIELDS), then=away))
    view = look_up("351", [slurm], Sacct.without_retries())
    assert view.row is not None and view.row.state == "running"
    with pytest.raises(MissingError, match="Connection refused"):
        look_up("399", [slurm], Sacct.without_retries())


def test_a_study_asks_the_accounting_alone(slurm: Path) -> None:
    assert list(Sacct().rows(["350"])) == []
