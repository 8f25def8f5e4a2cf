"""A folder of records on a file system that does not respond, like NFS without its server.

Jobs start, end and are reported; no part of them waits for it.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
from tests.hung_folder import Mounted, needed, waiting_samplers
from tests.system.cluster.test_bpf import switched
from tests.throwaway_lab import STILL_RUNNING, Lab, until

from steelyard.analysis.sources.admin_comment import read_own_comment

UNTIL_TOLD = "touch running.$SLURM_JOB_ID; until [ -e go ]; do sleep 0.1; done"


@pytest.fixture
def mounted(lab: Lab) -> Iterator[Mounted]:
    needed()
    made = Mounted(lab.work / "behind", lab.work / "records")
    try:
        yield made
    finally:
        made.end()


def final(mounted: Mounted, job: str) -> dict[str, Any]:
    """Return the job's record."""
    (path,) = mounted.behind.rglob(f"{job}/*.json")
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_a_folder_that_hangs_holds_no_job_and_no_node(lab: Lab, mounted: Mounted) -> None:
    """One job ends while it hangs, another begins and ends. Both records are whole afterwards."""
    with switched(lab, f"record_dir={mounted.at}"):
        first = lab.sbatch("-w", "n1", "--tag=k=first", script=UNTIL_TOLD)
        lab.wait_running(first)
        until(lambda: list(mounted.behind.rglob(f"{first}/*.json")), "its record is begun")
        mounted.hang()
        second = lab.sbatch("-w", "n2", "--tag=k=second", script=UNTIL_TOLD)
        lab.wait_running(second)
        (lab.work / "go").touch()
        for job in (first, second):
            until(lambda job=job: job not in lab.queued(), f"job {job} has ended")
            assert lab.sacct(job, "State") == [["COMPLETED"]]
            assert (lab.work / f"slurm-{job}.out").read_text() == "", "the job's output is its own"
        lab.wait_nodes("idle", what="no node is held or drained")
        text = lab.sacct(first, "AdminComment")[0][0]
        # A node that was too busy has none until `steelyard publish`.
        assert text or os.getloadavg()[0] > (os.cpu_count() or 1)
        if text:
            comment = read_own_comment(text)
            assert comment and comment["tags"] == {"k": "first"}
            # Its sampler hangs over a sample, or it has just written one.
            assert (comment["cpu_s"] is None) == (comment["nodes_measured"] == 0)
        time.sleep(4)  # longer than what a record may be off
        mounted.answer()
        for job in (first, second):
            until(
                lambda job=job: [
                    path
                    for path in mounted.behind.rglob(f"{job}/*.json")
                    if '"end_unix_s"' in (text := path.read_text()) and STILL_RUNNING not in text
                ],
                f"the record of job {job} is final once the folder answers",
            )
        records = [final(mounted, job) for job in (first, second)]
        lab.publish(mounted.at)
        assert lab.comment(first, by_plugin=True)["tags"] == {"k": "first"}
    # What is longer, or shorter, than the job was must not look like the job's.
    for job, record in zip((first, second), records, strict=True):
        if record["complete"]:
            (took_s,) = lab.sacct(job, "ElapsedRaw")[0]
            assert record["elapsed_s"] == pytest.approx(float(took_s), abs=2)
        else:
            assert record["incomplete_of"] == "job"
            assert re.search("record folder|sampler ended early", record["incomplete_reason"])


def test_beside_too_many_samplers_that_wait_a_job_runs_unmeasured(lab: Lab) -> None:
    log = lab.cluster.dir / "log" / "slurmd.n1.log"
    with waiting_samplers(lab.cluster.dir / "run" / "steelyard", 64):
        job = lab.sbatch("-w", "n1", script="true")
        assert lab.sacct(job, "State") == [["COMPLETED"]]
        assert (lab.work / f"slurm-{job}.out").read_text() == "", "the job's output is its own"
        words = f"job {job} on n1 is not sampled: 64 samplers of this node wait already"
        until(lambda: words in log.read_text(), "slurmd's log has it", seen=log.read_text)
        assert not lab.folder(job).exists()
    job = lab.sbatch("-w", "n1", script="true")
    assert lab.records(job, 1)


@pytest.mark.skipif("STEELYARD_HUNG_S" not in os.environ, reason="STEELYARD_HUNG_S: for how long")
def test_an_hour_of_jobs_beside_a_folder_that_hangs(lab: Lab, mounted: Mounted) -> None:
    """Each completes, none takes a minute for its second, no node drains, and samplers that wait do not
    pile up; then the records of all that were measured are whole."""
    jobs: list[str] = []
    most_samplers = 0
    with switched(lab, f"record_dir={mounted.at}"):
        mounted.hang()
        end_s = time.monotonic() + float(os.environ["STEELYARD_HUNG_S"])
        while time.monotonic() < end_s:
            node = ("-w", "n1") if len(jobs) % 2 else ("-w", "n2")
            where = ("-N2",) if len(jobs) % 5 == 4 else node
            jobs.append(lab.sbatch(*where, f"--tag=k={len(jobs)}", script="sleep 1"))
            until(lambda: len(lab.queued()) < 4, "the queue moves")
            most_samplers = max(most_samplers, len(lab.samplers()))
        until(lambda: not lab.queued(), "all have ended")
        lab.wait_nodes("idle", what="no node is held or drained")
        ended = [
            row
            for some in batched(jobs, 500)
            for row in lab.sacct(",".join(some), "JobID", "State", "ElapsedRaw")
        ]
        assert [job for job, *_ in ended] == jobs
        harmed = [row for row in ended if row[1] != "COMPLETED" or int(row[2]) >= 60]
        unmeasured = set(
            re.findall(r"job (\d+) on \w+ is not sampled: 64 samplers", slurmd_logs(lab))
        )
        sys.stdout.write(
            f"{len(jobs)} jobs, {len(unmeasured)} unmeasured, {most_samplers} samplers at most\n"
        )
        assert not harmed
        assert most_samplers <= 2 * 64  # those that have waited for 10 s, and those that have not
        mounted.answer()
        until(
            lambda: {
                path.parent.name
                for path in mounted.behind.rglob("*.json")
                if '"end_unix_s"' in path.read_text()
            } >= set(jobs) - unmeasured,
            "the records of all are final once the folder answers",
        )  # fmt: skip
        until(lambda: not lab.samplers(), "no sampler waits any more")


def batched(jobs: list[str], size: int) -> list[list[str]]:
    return [jobs[at : at + size] for at in range(0, len(jobs), size)]


def slurmd_logs(lab: Lab) -> str:
    return "".join(path.read_text() for path in (lab.cluster.dir / "log").glob("slurmd.*.log"))
