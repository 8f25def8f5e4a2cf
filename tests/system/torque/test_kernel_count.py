"""Prologue and epilogue of Torque where the kernel counts: in the order of a real pbs_mom, whose
child runs the prologue and becomes the job."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.system.bpf.conftest import PROGRAM
from tests.system.bpf.conftest import able as able  # noqa: PLC0414
from tests.system.bpf.conftest import load as load  # noqa: PLC0414
from tests.system.job.conftest import is_there
from tests.system.torque.conftest import NOBODY, Cluster
from tests.waiting import wait_for

APART = ("unshare", "--mount", "bash", "-c", 'mount -t bpf bpf /sys/fs/bpf; exec "$@"', "-")

MOM_BYTES = 100 << 20  # and more (mom.py)


@pytest.fixture
def cluster(able: None, tmp_path: Path) -> Iterator[Cluster]:
    """Each mom where nobody else sees what it has pinned; it is loaded there, as by a job before."""
    tmp_path.chmod(0o755)
    tool = Cluster(tmp_path, APART)
    shutil.copy2(PROGRAM, tmp_path / "libexec/steelyard")
    tool.turn_on("bpf=yes")
    inside = f"--mount=/proc/{tool.first.process.pid}/ns/mnt"
    subprocess.run(["nsenter", inside, PROGRAM, "load"], check=True)
    yield tool
    for node in (tool.first, tool.sister):
        node.process.kill()
        node.process.communicate()


@pytest.fixture
def folder(load: Path) -> Iterator[Path]:
    """Where nobody may read the load, and write what it has done."""
    with tempfile.TemporaryDirectory(prefix="pytest-counted-") as name:
        shutil.copy2(load, name)
        Path(name).chmod(0o777)
        yield Path(name)


def measured(cluster: Cluster, job: str, folder: Path, children: int) -> dict[str, Any]:
    """Its record, its prologue and its epilogue run as on the first node."""
    script = f"{folder}/load ignore {children} 500 >{folder}/{job}; exit 0"
    given = cluster.given("torque.prologue.0.vm", job)
    marks = {"PBS_JOBID": job, "PBS_NODENUM": "0", "PATH": "/usr/bin:/bin"}
    status, pid = cluster.first.pelog(
        "prologue", given, job=["sh", "-c", script], uid=NOBODY, marks=marks
    )
    assert status == 0
    wait_for("its end", lambda: not is_there(pid))
    cluster.first.order(reap=pid)
    assert cluster.first.pelog("epilogue", cluster.given("torque.epilogue.0.vm", job)) == 0
    record = cluster.record_of(job, "vm")
    assert record["memory"]["max_memory_bytes"] < MOM_BYTES, "a copy of pbs_mom is not the job's"
    return record


def test_a_storm_that_nobody_waits_for(cluster: Cluster, folder: Path) -> None:
    """What is in the record beyond the load is the shell's own, and the same whatever its size."""
    beyond = []
    for job, children in (("1.vm", 100), ("2.vm", 300)):
        record = measured(cluster, job, folder, children)
        assert record["complete"] is True, record["incomplete_reason"]
        assert record["io"]["source"] == "bpf", record["missing"]
        truth = json.loads((folder / job).read_text())
        beyond.append({name: record["io"][name] - truth[name] for name in truth})
    assert beyond[0] == beyond[1]
    assert 0 < beyond[0]["rchar_bytes"] < 20_000
    assert beyond[0]["wchar_bytes"] == 0
