"""Any end of a job or its sampler: the job is not harmed, and a record states the end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from tests.throwaway_lab import Lab, until

from steelyard.analysis.sources import admin_comment

RUN = "touch running.$SLURM_JOB_ID"
GO = "until [ -e go ]; do sleep 0.2; done"


def test_a_failed_job_has_its_record(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", script="exit 3")
    lab.wait_state(job, "FAILED")
    assert lab.records(job, 1)[0]["complete"]
    assert lab.sacct(job, "ExitCode") == [["3:0"]]
    assert lab.comment(job)["nodes_measured"] == 1


def test_a_cancelled_job_has_its_record(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", script=f"{RUN}; sleep 60")
    lab.wait_running(job)
    lab.run("scancel", job)
    lab.wait_state(job, "CANCELLED")
    assert lab.records(job, 1)[0]["complete"]


def test_a_requeued_job_has_a_record_for_each_start(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", "--requeue", script=f"{RUN}; [ -e again ] || sleep 60")
    lab.wait_running(job)
    (lab.work / "again").touch()
    assert lab.run("scontrol", "requeue", job).returncode == 0
    until(lambda: lab.job(job)["JobState"] == "PENDING", "its first start is over")
    time.sleep(2.1)  # slurmd refuses a job that it has killed in the same second
    # Slurm holds a requeued job for two minutes: shorten that.
    done = lab.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    assert done.returncode == 0, done.stderr
    lab.wait_state(job, "COMPLETED")
    records = lab.records(job, 2)
    assert [record["job"]["restart_count"] for record in records] == ["0", "1"]


@pytest.mark.parametrize("whom", ["parent", "child", "both"])
def test_a_killed_sampler_leaves_the_job_alone_and_a_record_that_says_incomplete(
    lab: Lab, whom: str
) -> None:
    job = lab.sbatch("-w", "n1", "--tag=a=b", script=f"{RUN}; {GO}; sleep 0.5")
    lab.wait_running(job)
    until(
        lambda: any('"a": "b"' in path.read_text() for path in lab.folder(job).glob("*.json")),
        "the job's tag is in the record of the start",
    )
    parent, child = sampler_pair(lab)
    for pid in {"parent": [parent], "child": [child], "both": [parent, child]}[whom]:
        os.kill(pid, signal.SIGKILL)
    (lab.work / "go").touch()
    lab.wait_state(job, "COMPLETED")
    # The extern step's end finishes it: the record has what the samples show, and no reserved
    # space.
    until(lambda: not list(lab.folder(job).glob(".*")), "nothing is left beside the record")
    (record,) = lab.records(job, 1, complete=False)
    assert record["complete"] is False
    assert record["incomplete_reason"]
    assert record["elapsed_s"] >= 0
    assert record["tags"] == {"a": "b"}
    assert lab.sacct(job, "ExitCode") == [["0:0"]]


def sampler_pair(lab: Lab) -> tuple[int, int]:
    """The test's only sampler: the parent, and the child that takes the samples."""

    def pair() -> tuple[int, int] | None:
        found = lab.samplers()
        children = {pid: parent_of(pid) for pid in found}
        pairs = [(parent, pid) for pid, parent in children.items() if parent in found]
        return pairs[0] if len(found) == 2 and pairs else None

    parent, child = until(pair, "a sampler and its child run")
    return parent, child


def parent_of(pid: int) -> int:
    """0: it is gone."""
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[1])
    return 0


# The job's usage after the process that started its sampler has ended: exact bytes.
LATER = f"""{RUN}
{GO}
python3 -S -c 'import os, time
with open("/dev/null", "wb", buffering=0) as sink:
    sink.write(bytes(30_000_000))
while time.process_time() < 1: pass'
"""


def slurms_own_comment(lab: Lab, job: str) -> dict[str, Any]:
    """Slurm's accounting sometimes keeps an older one when a node is lost."""
    shown = lab.run("scontrol", "-o", "show", "job", job).stdout
    document, _ = json.JSONDecoder().raw_decode(shown.partition("AdminComment=")[2])
    return admin_comment.fill_in_defaults(document["steelyard"])


def assert_measured_to_the_end(lab: Lab, job: str, nodes: int = 1) -> None:
    """The record, and AdminComment, hold what LATER has used."""
    (record,) = [r for r in lab.records(job, nodes, complete=False) if r["node"] == "n1"]
    assert (record["complete"], record["incomplete_reason"]) == (True, None)
    said = slurms_own_comment(lab, job)
    for cpu_s, written in (
        (record["cpu"]["cpu_s"], record["io"]["wchar_bytes"]),
        (said["cpu_s"], said["wchar_bytes"]),
    ):
        assert 1 <= cpu_s < 1.9
        assert 30_000_000 <= written < 30_100_000


def test_a_job_whose_extern_step_was_killed_is_measured_to_its_end(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", "--tag=a=b", script=LATER)
    lab.wait_running(job)
    (extern,) = lab.stepds(job, "extern")
    os.kill(extern, signal.SIGKILL)
    until(lambda: not lab.stepds(job, "extern"), "it is dead")
    (lab.work / "go").touch()
    lab.wait_state(job, "COMPLETED")
    assert_measured_to_the_end(lab, job)


def test_a_job_that_lost_its_extern_and_batch_steps_has_a_record_that_says_so(lab: Lab) -> None:
    job = lab.sbatch("-w", "n1", script=f"{RUN}; sleep 60")
    lab.wait_running(job)
    until(lambda: any(p.stat().st_size for p in lab.folder(job).glob("*.json")), "it has begun")
    for step in ("extern", "batch"):
        (pid,) = lab.stepds(job, step)
        os.kill(pid, signal.SIGKILL)
    until(lambda: not lab.samplers(), "the sampler ends")
    (record,) = lab.records(job, 1, complete=False)
    assert record["complete"] is False
    assert "is gone: what" in record["incomplete_reason"]


def test_a_job_that_goes_on_without_a_lost_node_is_measured_to_its_end(lab: Lab) -> None:
    """Slurm ends the extern step on every node then."""
    job = lab.sbatch("-N2", "-w", "n1,n2", "--no-kill", "--no-requeue", "--tag=a=b", script=LATER)
    lab.wait_running(job)
    try:
        down = lab.run("scontrol", "update", "NodeName=n2", "State=down", "Reason=lost")
        assert down.returncode == 0, down.stderr
        until(lambda: not lab.stepds(job, "extern"), "Slurm ends the extern step")
        (lab.work / "go").touch()
        lab.wait_state(job, "COMPLETED")
    finally:
        lab.run("scontrol", "update", "NodeName=n2", "State=resume")
    assert_measured_to_the_end(lab, job, nodes=2)


def test_a_record_folder_that_cannot_be_written_leaves_the_job_alone(lab: Lab) -> None:
    last = lab.sbatch("-w", "n1", script="true")
    lab.wait_state(last, "COMPLETED")
    in_the_way = lab.folder(str(int(last) + 1))
    in_the_way.write_text("a file where the job's folder should be\n")
    try:
        job = lab.sbatch("-w", "n1", script="sleep 0.3")
        assert job == in_the_way.name
        lab.wait_state(job, "COMPLETED")
        assert lab.sacct(job, "ExitCode") == [["0:0"]]
    finally:
        in_the_way.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_a_full_disk_leaves_the_job_alone_and_its_totals_whole(lab: Lab) -> None:
    records = lab.cluster.record_dir
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k,mode=755", "lab", str(records)], check=True
    )
    try:
        # At 100 Hz the samples soon need a page more than they have.
        job = lab.sbatch("-w", "n1", "--sample-rate=100", script=f"{RUN}; {GO}; sleep 1.5")
        lab.wait_running(job)
        until(
            lambda: any(path.stat().st_size for path in lab.folder(job).glob("*.json")),
            "the sampler has begun its record",
        )
        with contextlib.suppress(OSError), (records / "filler").open("wb", buffering=0) as filler:
            while filler.write(b"x" * 4096):
                pass
        (lab.work / "go").touch()
        lab.wait_state(job, "COMPLETED")
        until(lambda: not lab.samplers(), "the sampler has ended")
        (path,) = lab.folder(job).glob("*.json")
        record = json.loads(path.read_text())
        assert record["complete"] is True
        assert record["sampler"]["samples_lost"] > 0
        assert record["sampler"]["samples_lost_reason"] == "No space left on device"
        assert record["elapsed_s"] >= 1.5  # past the last line that could be written
    finally:
        subprocess.run(["umount", "-l", str(records)], check=True)


def test_no_socket_is_left_after_the_jobs(lab: Lab) -> None:
    job = lab.srun("-w", "n1")
    lab.records(job, 1)
    run_dir = lab.cluster.dir / "run" / "steelyard"
    until(
        lambda: not list(run_dir.glob("*.sock")),
        "the sockets are removed, those of killed steps by the next job's start",
    )
